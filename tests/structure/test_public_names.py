"""The public names: where they are defined, what a star import brings, and errors for names that are elsewhere."""

import builtins
import sys

import pytest

import firsttouch as ft
from firsttouch import _public


def test_a_star_import_hides_nothing() -> None:
    assert not set(ft.__all__) & (set(dir(builtins)) | set(sys.stdlib_module_names))
    assert not [name for name in ft.__all__ if name.startswith("_")]


@pytest.mark.parametrize("name", [*ft.__all__, *_public.UNSTARRED])
def test_every_name_is_an_attribute(name: str) -> None:
    assert getattr(ft, name) is getattr(_public, name)


def test_every_name_is_in_one_group() -> None:
    assert len(ft.__all__) == len(set(ft.__all__))


@pytest.mark.parametrize("module", _public.MODULES, ids=lambda module: module.__name__)
def test_public_modules_have_what_they_list(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert sorted(names) == names
    assert all(hasattr(module, name) for name in names)


def test_every_public_name_is_in_a_public_module() -> None:
    listed = {name for module in _public.MODULES for name in module.__all__}
    assert {*ft.__all__, *_public.UNSTARRED} - listed == {"UnsupportedError", "__version__"}


@pytest.mark.parametrize(
    ("name", "found"), [("PageState", "firsttouch.inspection"), ("Policy", "firsttouch.placement")]
)
def test_the_error_for_a_name_elsewhere_says_where(name: str, found: str) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': it is {found}\.{name}"):
        getattr(ft, name)


def test_the_error_for_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"^module 'firsttouch' has no attribute 'nothing'$"):
        getattr(ft, "nothing")  # noqa: B009 (mypy knows, too)
