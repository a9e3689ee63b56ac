"""The first line in which two outputs differ."""

from pathlib import Path

import pytest

from firsttouch.tools.compare.trial import difference


def words(folder: Path, first: bytes, second: bytes) -> str | None:
    (folder / "a").write_bytes(first)
    (folder / "b").write_bytes(second)
    found = difference(folder / "a", folder / "b")
    return None if found is None else found.words("here", "there")


@pytest.mark.parametrize("text", [b"", b"\n", b"one\ntwo", b"\x00\xff\n" * 10_000])
def test_equal_outputs(tmp_path: Path, text: bytes) -> None:
    assert words(tmp_path, text, text) is None


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (b"same\none\n", b"same\ntwo\n", "line 2 is 'one' here and 'two' there"),
        (b"", b"two\n", "line 1 is missing here and 'two' there"),
        (b"one\ntwo\n", b"one\n", "line 2 is 'two' here and missing there"),
        (b"\xff\n", b"\xfe\n", r"line 1 is '\\xff' here and '\\xfe' there"),
        (b"one\n", b"one", "line 1 is 'one' with a line break here and 'one' without one there"),
    ],
)
def test_the_first_line_that_differs(tmp_path: Path, first: bytes, second: bytes, said: str) -> None:
    assert words(tmp_path, first, second) == said


def test_a_long_line_is_shown_where_it_differs(tmp_path: Path) -> None:
    said = words(tmp_path, b"a" * 1000 + b"1" + b"b" * 1000, b"a" * 1000 + b"2" + b"b" * 1000)
    assert said is not None
    assert "...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1b" in said
    assert len(said) < 200
