"""What is recorded of tests in Rust is what their programs said."""

import pytest

from tests.trust.rust_tests import said

PASSED = "\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; finished in 1s\n"
FAILED = "test result: FAILED. 1500 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s\n"


@pytest.mark.parametrize(
    ("output", "status", "did", "found"),
    [
        (PASSED, 0, "2 tests passed, 1 left out", "nothing"),
        (PASSED + FAILED, 101, "1,502 tests passed, 1 left out", "4 failed"),
        (PASSED + "error: Undefined Behavior", 1, "2 tests passed, 1 left out", "ended with status 1"),
        ("error: could not compile", 101, "0 tests passed", "ended with status 101"),
    ],
)
def test_what_test_programs_said(output: str, status: int, did: str, found: str) -> None:
    assert said(output, status) == (did, found)
