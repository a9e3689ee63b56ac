"""The messages about arrays that outlive their scope."""

import gc
import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firsttouch.buffers import escapes
from firsttouch.buffers.errors import EscapeError, EscapeWarning
from firsttouch.buffers.escapes import Survivor

pytestmark = pytest.mark.quick


class Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


def block(array: Any) -> tuple[int, int]:
    return array.ctypes.data, array.nbytes


def said(*survivors: Any, escape: Any = "raise") -> str:
    with pytest.raises(EscapeError) as error:
        escapes.report("step", survivors, escape, "ScratchBuffer(chunk_size=1048576)")
    assert isinstance(error.value, RuntimeError)
    return str(error.value)


def test_keeping_says_nothing_and_neither_does_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        escapes.report("step", [(64, 8)], "keep", "buffer")
        escapes.report("step", [], "raise", "buffer")
        escapes.report("step", [], "warn", "buffer")


def test_an_error_names_everything() -> None:
    text = said((64, 800, (10, 10), "float64", "solver.py:12"))
    assert "an array (800 bytes) made in step() outlived it in ScratchBuffer(chunk_size=1048576)" in text
    assert "float64 (10, 10), made at solver.py:12" in text
    assert text.endswith(
        "It stays valid, and its memory is not reused: return it, copy it before it is stored, or make it with "
        "another allocator"
    )


def test_a_shape_that_is_given_is_not_searched() -> None:
    kept = [np.ones(5)]
    assert "int8 (40,)" in said((*block(kept[0]), (40,), "int8"))


def test_fields_by_name_and_the_errors_own() -> None:
    with pytest.raises(EscapeError) as error:
        escapes.report("step", [{"address": 64, "nbytes": 800, "dtype": "f8", "shape": (100,)}], "raise", "b")
    assert error.value.survivors == (Survivor(64, 800, (100,), "f8"),)
    assert f"{EscapeError.__module__}.{EscapeError.__name__}" == "firsttouch.buffers.EscapeError"
    assert issubclass(EscapeWarning, RuntimeWarning)


def test_what_nothing_shows_is_named_by_bytes_and_address() -> None:
    assert "2 KiB at 0x40, made at a.py:3" in said((64, 2048, None, None, "a.py:3"))
    assert "an array (1.5 MiB)" in said((64, 3 << 19))


def test_the_largest_come_first_and_the_rest_is_counted() -> None:
    text = said(*((64 * size, size, (size,), "uint8") for size in range(1, 10)))
    assert "9 arrays (45 bytes)" in text
    assert "They stay valid, and their memory is not reused: return them, " in text
    assert text.index("uint8 (9,)") < text.index("uint8 (5,)")
    assert "uint8 (4,)" not in text
    assert "and 4 more" in text


HOLDERS: dict[str, Any] = {
    "list": lambda array: [array],
    "dict": lambda array: {"a": array},
    "tuple in tuple": lambda array: ((array,),),
    "attribute": Holder,
    "default of a function": lambda array: lambda x=array: x,
    "cell": lambda array: lambda: array,
    "array of objects": lambda array: np.array([array, None], object),
    "view": lambda array: [array[3:5]],
    "memoryview": lambda array: memoryview(array),
    "masked array": lambda array: np.ma.array(array, copy=False),
    "generator": lambda array: (x for x in array),
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_shape_and_type_are_found_by_whatever_holds_the_array(holder: Any) -> None:
    array = np.ones((12, 34), np.float32)
    found, kept = block(array), {"kept": [holder(array)]}
    del array
    assert "float32 (12, 34)" in said(found)
    kept.clear()
    assert "float32" not in said(found)


def test_objects_that_pretend_to_be_something_are_not_asked() -> None:
    class Proxy:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise AssertionError

    kept = [Proxy()]
    said((64, 8))
    assert kept


def test_a_warning_points_to_the_line_outside_the_package() -> None:
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with pytest.warns(EscapeWarning, match=r"float64 \(3,\)") as caught:
        escapes.report("step", [(64, 24, (3,), "float64")], "warn", "buffer")
    assert caught[0].filename == __file__
    assert caught[0].lineno == line


def test_a_warning_points_there_through_frames_of_the_package() -> None:
    package = Path(escapes.__file__).parents[1]
    code = compile("def call(report, *rest): report(*rest)", str(package / "scratch" / "wrapper.py"), "exec")
    names: dict[str, Any] = {}
    exec(code, names)
    with pytest.warns(EscapeWarning) as caught:
        names["call"](escapes.report, "step", [(64, 24)], "warn", "buffer")
    assert caught[0].filename == __file__


def test_a_warning_that_is_an_error() -> None:
    with warnings.catch_warnings(action="error"), pytest.raises(EscapeWarning):
        escapes.report("step", [(64, 24)], "warn", "buffer")


def failing(arrays: list[tuple[int, int]]) -> None:
    one, more = np.ones((5, 6)), [np.zeros(7)]
    arrays += [block(one), block(more[0])]
    raise ValueError("mine")


def test_a_note_on_an_exception_shows_the_locals_of_its_frames() -> None:
    blocks: list[tuple[int, int]] = []
    with pytest.raises(ValueError, match="mine") as error:
        failing(blocks)
    escapes.note(error.value, blocks)
    (note,) = error.value.__notes__
    assert "2 arrays (296 bytes)" in note
    assert "float64 (5, 6)" in note
    assert "float64 (7,)" in note
    escapes.note(error.value, blocks)  # one that is raised again and again
    assert len(error.value.__notes__) == 1
    escapes.note(error.value, [])
    assert len(error.value.__notes__) == 1


def test_a_note_costs_little_and_holds_nothing() -> None:
    error = ValueError("never raised")
    escapes.note(error, [(64, 8)])
    assert "8 bytes at 0x40" in error.__notes__[0]
    array = np.ones(3)
    before = len(gc.get_referrers(array))
    try:
        raise ValueError
    except ValueError as raised:
        escapes.note(raised, [block(array)])
    assert len(gc.get_referrers(array)) == before


def test_a_file_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"d-\xff")
    folder.mkdir()
    (folder / "script.py").write_text(
        "import warnings\nimport numpy as np, firsttouch as ft\nkept = []\n"
        "@ft.scratch(debug=True, escape='warn')\ndef work(fails):\n"
        "    kept.append(np.ones(10**5))\n    if fails:\n        raise ValueError('own')\n    return 5\n"
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n"
        "    print(work(False), 'script.py:6' in str(told[0].message))\n"
        "    try:\n        work(True)\n    except ValueError as error:\n        print(error)\n"
    )
    said = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("5 True\nown\n", "")
