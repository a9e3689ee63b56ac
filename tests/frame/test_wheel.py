"""The contents of the wheel as installed."""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.programs import execute

pytestmark = pytest.mark.quick

INSTALLED = distribution("firsttouch")
FILES = {str(path) for path in INSTALLED.files or ()}


def test_one_native_module_for_all_pythons() -> None:
    native = {name for name in FILES if name.endswith((".so", ".pyd"))}
    module, abi = "_firsttouch.abi3.so", "cp311-abi3"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):  # there each version has a wheel of its own
        version = f"cp3{sys.version_info[1]}"
        module, abi = f"_firsttouch{sysconfig.get_config_var('EXT_SUFFIX')}", f"{version}-{version}t"
    preload = {"firsttouch/_lib/libfirsttouch_preload.so"} if platform.libc_ver()[0] == "glibc" else set[str]()
    assert native == {f"firsttouch/{module}", *preload}
    tags = [line for line in (INSTALLED.read_text("WHEEL") or "").splitlines() if line.startswith("Tag:")]
    assert tags, "for one platform, which may have several names"
    assert all(tag.startswith(f"Tag: {abi}-") for tag in tags)


def test_only_our_names_lie_in_site_packages_and_all_of_them() -> None:
    expected = {"firsttouch/py.typed", "firsttouch/_firsttouch.pyi", "_firsttouch_start/__init__.py"}
    assert expected <= FILES
    version = INSTALLED.version
    top = {name.split("/")[0] for name in FILES if not name.startswith("../")}
    start = {"_firsttouch_start", "firsttouch_start.pth", "firsttouch_start.start"}
    assert top == {"firsttouch", *start, f"firsttouch-{version}.dist-info"}


def test_what_it_needs_and_promises() -> None:
    needed = [need for need in INSTALLED.requires or () if "extra ==" not in need]
    assert needed == ["numpy>=2.0"]
    assert INSTALLED.metadata["Requires-Python"] == ">=3.11"
    assert INSTALLED.metadata["License-Expression"] == "MIT OR Apache-2.0"
    scripts = {entry.name: entry.value for entry in INSTALLED.entry_points if entry.group == "console_scripts"}
    assert scripts == {"firsttouch": "_firsttouch_start:main"}


def test_both_licences_travel_along() -> None:
    for name, title in (("APACHE", "Apache License"), ("MIT", "MIT License")):
        assert (INSTALLED.read_text(f"licenses/LICENSE-{name}") or "").lstrip().startswith(title)


@pytest.mark.parametrize("words", [["-c", "import firsttouch"], ["-m", "firsttouch", "--info"]])
def test_a_package_without_its_native_module_says_so(tmp_path: Path, words: list[str]) -> None:
    """As in a checkout that is not built, or in a zip archive."""
    for package in ("firsttouch", "_firsttouch_start"):
        folder = sysconfig.get_path("purelib") + f"/{package}"
        shutil.copytree(folder, tmp_path / package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    said = execute(sys.executable, *words, env={"PYTHONPATH": str(tmp_path)})
    assert said.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'firsttouch._firsttouch'"
