"""The public names: where they are defined, what a star import brings, and errors for names that are elsewhere."""

import builtins
import sys

import firsttouch as ft
from tests.programs import ask

UNSTARRED = ("array", "inspect")


def test_a_star_import_hides_nothing() -> None:
    assert not set(ft.__all__) & (set(dir(builtins)) | set(sys.stdlib_module_names))
    assert not [name for name in ft.__all__ if name.startswith("_")]


def test_every_public_name_is_in_a_public_module() -> None:
    found = {name: getattr(module, name) for module in ft._public_modules() for name in module.__all__}
    assert all(found[name] is getattr(ft, name) for name in (*ft.__all__, *UNSTARRED))


def test_an_import_loads_no_tools() -> None:
    """Nor a plugin, nor anything heavier than NumPy."""
    loaded = ask("import json, sys\nprint(json.dumps(sorted(sys.modules)))")
    tools = {f"firsttouch.{name}" for name in ("tools", "dask", "numba", "pytest_plugin")}
    assert "firsttouch.process" in loaded
    assert not [name for name in loaded if name in tools or name.partition(".")[0] in ("pandas", "matplotlib", "numba")]
