"""A library with a bug in every function: each is found, in its own test, and their correct twins pass."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.plugin.suites import Ended, pytest_run

SAMPLE = Path(__file__).with_name("sample")
BEFORE = "guarded(side='before', keep='1 MiB')"

#: Which way of running finds what, and the words it says.
FOUND = {
    "guarded": {
        "test_write_past_the_end": "out of bounds: wrote right behind an array of 64 bytes",
        "test_read_past_the_end": "out of bounds: read right behind an array of 128 bytes",
        "test_use_after_free": "use after free: read byte 0 of an array of 8000 bytes that was freed",
        "test_pointer_from_before_a_resize": "use after free: read byte 0 of an array of 8000 bytes that was freed",
        "test_one_byte_into_the_gap": "out of bounds: something wrote right behind an array of 60 bytes",
    },
    BEFORE: {
        "test_write_before_the_beginning": "8 bytes before an array of 64 bytes",
        "test_read_before_the_beginning": "out of bounds: read 8 bytes before an array of 64 bytes",
        "test_use_after_free": "use after free",
        "test_pointer_from_before_a_resize": "use after free",
        "test_write_past_the_end": "out of bounds: something wrote right behind an array of 64 bytes",
        "test_one_byte_into_the_gap": "out of bounds: something wrote right behind an array of 60 bytes",
    },
    "filled": {
        "test_added_to_what_was_never_set": "fails where new memory is filled with 0xff (NaN in floats",
        "test_limits_never_set": "fails where new memory is filled with 0x7f (huge numbers",
        "test_index_never_set": "fails where new memory is filled with 0xff (NaN in floats, -1 in integers)",
    },
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample in a folder of its own, its library compiled there."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("planted") / "sample"
    shutil.copytree(SAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    flags = ["-O1", "-std=gnu11", "-shared", "-fPIC", "-o", "libplanted.so"]
    subprocess.run([compiler, *flags, "planted.c"], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def plain(built: Path) -> Ended:
    return pytest_run(built)


def test_plainly_nothing_is_found_and_every_bug_has_a_way_that_finds_it(plain: Ended) -> None:
    assert plain.status == 0, plain.said
    assert set(plain.outcomes.values()) == {"passed"}
    assert {test for tests in FOUND.values() for test in tests} == set(plain.outcomes)


@pytest.mark.parametrize("way", FOUND)
def test_each_bug_is_found_under_its_own_test(built: Path, plain: Ended, way: str) -> None:
    ended = pytest_run(built, f"--firsttouch={way}")
    assert ended.status == 1, ended.said
    assert set(ended.outcomes) == set(plain.outcomes), "a crash took others along"
    others = ended.failed - set(FOUND[way])
    if way == "filled":  # where arrays lie is a pool's affair: what is out of bounds may crash here too
        assert all("died of SIGSEGV" in ended.messages[test] for test in others), ended.said
        assert not any("never written" in ended.messages[test] for test in others), ended.said
    else:
        assert not others, ended.said
    for test, words in FOUND[way].items():
        assert words in ended.messages[test], ended.messages[test]
        assert f"FAILED test_planted.py::{test} - " in ended.said
    if way == "guarded":  # the lines that called are shown
        for words in ("planted.py", "in test_read_past_the_end"):
            assert words in ended.messages["test_read_past_the_end"]


@pytest.mark.parametrize("way", FOUND)
def test_correct_twins_pass(built: Path, plain: Ended, way: str) -> None:
    ended = pytest_run(built, "--twin=right", f"--firsttouch={way}")
    assert ended.status == 0, ended.said
    assert set(ended.outcomes) == set(plain.outcomes)
    assert set(ended.outcomes.values()) == {"passed"}
