"""A handler behind NumPy's default capsule that is not NumPy's own is rejected and left alone."""

from pathlib import Path

import pytest

from tests.programs import ask, run

pytestmark = pytest.mark.quick

PROLOGUE = """
import numpy as np
import firsttouch as ft
from tests import probe
from tests.handlers import swap
"""

CHANGES = {
    "another name": "name=b'somebody_elses'",
    "a name that only begins like it": "name=b'default_allocator2'",
    "no name": "name=b''",
    "a newer version": "version=2",
    "an older version": "version=0",
    "no malloc": "malloc=None",
    "no realloc": "realloc=None",
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("call", ["ft.install()", "ft.install(ft.pages())", "ft.use().__enter__()"])
def test_it_is_refused(changes: str, call: str) -> None:
    said, left_alone, error = ask(
        f"""
        import json
        handler = swap.copy({changes})
        before = swap.swap(handler)
        try:
            {call}
        except ft.process.UnsupportedError as refused:
            said = str(refused)
        left_alone = swap.default() != before and not ft.is_installed()
        swap.restore(before)
        print(json.dumps([said, left_alone, isinstance(ft.process.UnsupportedError(), RuntimeError)]))
        """,
        prologue=PROLOGUE,
    )
    assert said.startswith("NumPy's default memory handler is ")
    assert said.endswith("is left alone")
    assert left_alone
    assert error


def test_it_is_refused_also_where_it_goes_by_numpys_name() -> None:
    assert (
        run(
            """
            import ctypes
            libc = ctypes.CDLL(None)
            functions = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p) for name in ("malloc", "free")}
            handler = swap.copy(**functions)
            before = swap.swap(handler)
            try:
                ft.install()
            except ft.process.UnsupportedError as error:
                refused = error
            swap.restore(before)
            assert "is left alone" in str(refused) and not ft.is_installed()
            """,
            prologue=PROLOGUE,
        )
        == ""
    )


def test_it_is_refused_also_when_it_came_after_the_first_use() -> None:
    assert (
        run(
            """
            with ft.use():
                array = np.ones(1 << 20)
            handler = swap.copy(name=b"somebody_elses")
            before = swap.swap(handler)
            probe.message(ft.process.UnsupportedError, ft.install)
            assert swap.default() != before and not ft.is_installed()
            swap.restore(before)
            ft.install()
            assert ft.is_installed() and array.all()
            """,
            prologue=PROLOGUE,
        )
        == ""
    )


def test_it_is_refused_also_when_it_came_after_install() -> None:
    assert (
        run(
            """
            ft.install()
            array = np.ones(1 << 20)
            handler = swap.copy(name=b"somebody_elses")
            ours = swap.swap(handler)
            ft.uninstall()
            probe.message(ft.process.UnsupportedError, ft.install)
            swap.restore(ours)
            ft.install()
            assert ft.is_installed() and array.all()
            """,
            prologue=PROLOGUE,
        )
        == ""
    )


def test_numpy_still_calls_its_handler_by_its_name() -> None:
    """NumPy's own tests ask for it, and so may others."""
    assert (
        run("""
            name = np._core.multiarray.get_handler_name
            plain = name()
            ft.install()
            assert name() == plain == "default_allocator", name()
            with ft.use(ft.pages()):
                assert name() == "firsttouch", name()
        """)
        == ""
    )


def test_an_old_numpy_is_refused() -> None:
    said = run(
        """
        import sys
        import numpy
        sys.modules["numpy._core.multiarray"] = None
        import firsttouch as ft
        try:
            ft.install()
        except ft.process.UnsupportedError as error:
            print(error)
        """,
        prologue="",
    )
    assert said.startswith("firsttouch needs NumPy 2.0 or newer, and could not load it: ")


def test_a_second_copy_of_the_package_is_refused(tmp_path: Path) -> None:
    """What stands there is another library's to it, whose memory it could not tell."""
    copy = tmp_path / "_firsttouch.abi3.so"
    said = run(
        f"""
        import importlib.machinery, importlib.util, shutil
        from firsttouch import _firsttouch as first
        shutil.copy(first.__file__, {str(copy)!r})  # another file, so another library with data of its own
        loader = importlib.machinery.ExtensionFileLoader("second._firsttouch", {str(copy)!r})
        second = importlib.util.module_from_spec(importlib.util.spec_from_loader("second._firsttouch", loader))
        loader.exec_module(second)
        ft.install()
        array = np.ones(1 << 20)
        try:
            second.install()
        except second.UnsupportedError as error:
            print(error)
        assert ft.is_installed() and not second.is_installed() and array.all()
        """,
        prologue=PROLOGUE,
    )
    assert "is left alone" in said
