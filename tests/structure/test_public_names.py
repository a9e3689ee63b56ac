"""The public names: where they are defined, what a star import brings, and errors for names that are elsewhere."""

import builtins
import sys

import pytest

import firsttouch as ft
from tests.programs import ask

UNSTARRED = ("array", "inspect")


def test_a_star_import_hides_nothing() -> None:
    assert not set(ft.__all__) & (set(dir(builtins)) | set(sys.stdlib_module_names))
    assert not [name for name in ft.__all__ if name.startswith("_")]


def test_every_public_name_is_in_a_public_module() -> None:
    found = {name: getattr(module, name) for module in ft._public_modules() for name in module.__all__}
    assert all(found[name] is getattr(ft, name) for name in (*ft.__all__, *UNSTARRED))


@pytest.mark.parametrize(
    ("name", "found"), [("PageState", "firsttouch.inspection"), ("topology", "firsttouch.placement")]
)
def test_the_error_for_a_name_elsewhere_says_where(name: str, found: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': it is {found}\.{name}"):
        getattr(ft, name)


def test_modules_that_bring_packages_are_imported_by_name() -> None:
    said = ask("import json, firsttouch\ntry: firsttouch.dask\nexcept AttributeError as e: print(json.dumps([str(e)]))")
    assert said == ["module 'firsttouch' has no attribute 'dask': import firsttouch.dask"]


def test_an_import_loads_no_tools() -> None:
    """Nor a plugin, nor anything heavier than NumPy."""
    loaded = ask("import json, sys\nprint(json.dumps(sorted(sys.modules)))")
    tools = {f"firsttouch.{name}" for name in ("tools", "dask", "numba", "ipython", "pytest_plugin")}
    assert "firsttouch.process" in loaded
    assert not [name for name in loaded if name in tools or name.partition(".")[0] in ("pandas", "matplotlib", "numba")]
