"""A handler behind NumPy's default capsule that is not NumPy's own is rejected and left alone."""

from pathlib import Path

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick

PROLOGUE = """
import numpy as np
import firsttouch as ft
from tests import probe
from tests.handlers import swap
"""


def test_it_is_refused() -> None:
    """Another name, one that only begins like NumPy's, none; another version; NumPy's name and others' functions."""
    run(
        """
        import ctypes, sys
        libc = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
        functions = {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p) for name in ("malloc", "free")}
        names = ({"name": name} for name in (b"somebody_elses", b"default_allocator2", b""))
        for changes in (*names, {"version": 0}, {"version": 2}, functions):
            for call in (ft.install, lambda: ft.install(ft.pages()), lambda: ft.use().__enter__()):
                handler = swap.copy(**changes)
                before = swap.swap(handler)
                said = probe.message(ft.process.UnsupportedError, call)
                assert swap.default() != before and not ft.is_installed()
                swap.swap(before)
                assert said.startswith("NumPy's default memory handler is "), said
                assert said.endswith("is left alone"), said
        assert issubclass(ft.process.UnsupportedError, RuntimeError)
        """,
        prologue=PROLOGUE,
    )


def test_it_is_refused_also_when_it_came_after_install() -> None:
    run(
        """
        ft.install()
        array = np.ones(1 << 20)
        handler = swap.copy(name=b"somebody_elses")
        ours = swap.swap(handler)
        ft.uninstall()
        probe.message(ft.process.UnsupportedError, ft.install)
        swap.swap(ours)
        ft.install()
        assert ft.is_installed() and array.all()
        """,
        prologue=PROLOGUE,
    )


def test_numpy_still_calls_its_handler_by_its_name() -> None:
    """NumPy's own tests ask for it, and so may others."""
    run("""
        name = np._core.multiarray.get_handler_name
        plain = name()
        ft.install()
        assert name() == plain == "default_allocator", name()
        with ft.use(ft.pages()):
            assert name() == "firsttouch", name()
    """)


def test_an_old_numpy_is_refused() -> None:
    said = run(
        """
        import sys
        import numpy
        sys.modules["numpy._core.multiarray"] = None
        import firsttouch as ft
        from tests import probe
        print(probe.message(ft.process.UnsupportedError, ft.install))
        """,
        prologue="",
    )
    assert said.startswith("firsttouch needs NumPy 2.0 or newer, and could not load it: ")


def test_a_second_copy_of_the_package_is_refused(tmp_path: Path) -> None:
    """What stands there is another library's to it, whose memory it could not tell."""
    said = run(
        f"""
        import importlib.machinery, importlib.util, shutil
        from firsttouch import _firsttouch as first
        copy = shutil.copy(first.__file__, {str(tmp_path)!r})  # another file, so another library with data of its own
        loader = importlib.machinery.ExtensionFileLoader("second._firsttouch", copy)
        second = importlib.util.module_from_spec(importlib.util.spec_from_loader("second._firsttouch", loader))
        loader.exec_module(second)
        ft.install()
        array = np.ones(1 << 20)
        print(probe.message(second.UnsupportedError, second.install))
        assert ft.is_installed() and not second.is_installed() and array.all()
        """,
        prologue=PROLOGUE,
    )
    assert "is left alone" in said
