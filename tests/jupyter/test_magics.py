"""%firsttouch and %%firsttouch in IPython's own shell: what they install and print, and how they fail."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft

pytest.importorskip("IPython", reason="IPython is not installed")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output


@pytest.fixture(name="shell")
def _shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()  # the one that display() finds
    shell.run_line_magic("colors", "nocolor")
    shell.user_ns["np"] = np
    shell.run_line_magic("load_ext", "firsttouch")
    yield shell
    shell.run_line_magic("unload_ext", "firsttouch")
    InteractiveShell.clear_instance()


def said(shell: Any, cell: str, fails: bool = False) -> str:
    with capture_output() as captured:
        result = shell.run_cell(cell)
    assert result.success is not fails, captured.stdout + captured.stderr
    shown = [output.data["text/plain"] + "\n" for output in captured.outputs]
    return "".join([captured.stdout, captured.stderr, *shown])


def serves() -> ft.Allocator | None:
    return ft.get_allocator(np.empty(100_000))


def test_loading_installs_nothing(shell: Any) -> None:
    assert not ft.is_installed()
    assert said(shell, "%firsttouch") == "NumPy's own memory serves NumPy's arrays\n"


def test_a_line_installs_and_off_ends_it(shell: Any) -> None:
    assert "pool(" in said(shell, "%firsttouch pool")
    assert serves() == ft._firsttouch.default_pool()
    assert "limited(" in said(shell, '%firsttouch limited(pool(), "1 GiB")')
    assert repr(serves()).startswith("limited(")
    said(shell, "%firsttouch off")
    assert not ft.is_installed()


def test_an_allocator_by_its_variable(shell: Any) -> None:
    shell.user_ns["mine"] = mine = ft.tracked(ft.pool())
    said(shell, "%firsttouch mine")
    assert serves() == mine


def test_stats_and_trim_are_about_what_serves(shell: Any) -> None:
    said(shell, "%firsttouch limited(pool(max_idle='1 GiB', decay=None), '1 GiB')")
    shell.run_cell("a = np.ones(5_000_000); del a")
    assert "allocations" in said(shell, "%firsttouch stats")
    given = said(shell, "%firsttouch trim")
    assert given.startswith("returned: ")
    assert not given.startswith("returned: 0")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%firsttouch poool", "off, stats, trim"),
        ("%firsttouch malloc()", "install() cannot take malloc()"),
        ("%%firsttouch off\n1", "'off' is for a line"),
        ("%%firsttouch\nawait x", "await at its top level"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_works(shell: Any, line: str, expected: str) -> None:
    (text,) = said(shell, line, fails=True).splitlines()
    assert text.startswith("UsageError: ")
    assert expected in text
    assert not ft.is_installed()


def test_a_cell_is_served_and_reported_on(shell: Any) -> None:
    shell.user_ns["ft"] = ft
    text = said(shell, "%%firsttouch\nfor _ in range(5): b = np.ones(1_000_000) * 2\nseen = ft.is_installed()")
    assert shell.user_ns["seen"] is True
    assert not ft.is_installed()
    assert text.startswith("firsttouch, process ")
    assert re.search(r"^  large blocks +\d+, \d.* on recycled memory$", text, re.MULTILINE)
    for label in ("time", "first touched", "page faults", "resident"):
        assert re.search(rf"^  {label} +(at most )?\d", text, re.MULTILINE), text
    assert shell.user_ns["b"].sum() == 2_000_000


def test_a_semicolon_hides_the_value_of_a_cell(shell: Any) -> None:
    assert "98765" in said(shell, "%%firsttouch\n98764 + 1")
    quiet = said(shell, "%%firsttouch\nx = 98764 + 1\nx;  # not shown")
    assert "98765" not in quiet
    assert "page faults" in quiet
    assert shell.user_ns["x"] == 98765
    assert "SyntaxError" in said(shell, "%%firsttouch\n(;", fails=True)


def test_a_cells_own_allocator_ends_with_it(shell: Any) -> None:
    said(shell, "%firsttouch pool")
    text = said(shell, "%%firsttouch limited(pool(), '1 MiB')\nnp.ones(1_000_000)", fails=True)
    assert "MemoryError" in text
    assert re.search(r"^  last failure +cannot allocate 7.63 MiB: limited\(\) allows 1 MiB", text, re.MULTILINE)
    assert serves() == ft._firsttouch.default_pool()


def test_a_failed_cell_has_its_traceback_once_and_a_report(shell: Any) -> None:
    text = said(shell, "%%firsttouch\n1 / 0", fails=True)
    assert text.count("ZeroDivisionError: division by zero") == 1
    assert "CellError" not in text
    assert re.search(r"^  time +\d", text, re.MULTILINE)
