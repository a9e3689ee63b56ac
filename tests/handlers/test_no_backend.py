"""On a platform without a backend the package imports, says so, and leaves everything to NumPy."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.programs import ROOT, execute, quiet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust toolchain"),
]

PROGRAM = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import firsttouch as ft
from firsttouch import _firsttouch
assert ft.__file__.startswith(sys.argv[1]), ft.__file__
assert not _firsttouch.BACKEND

def arrays():
    made = [np.full(size, 7, np.uint8) for size in (10, 50_000, 5 << 20, 40 << 20)]
    for array in made:
        array.resize(array.size * 2, refcheck=False)
    assert [int(array.sum()) for array in made] == [70, 350_000, 35 << 20, 280 << 20]
    assert not np.zeros(9 << 20, np.uint8).any()
    return made

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    ft.install()
[warning] = seen
assert warning.category is RuntimeWarning and warning.filename == "<string>", warning
assert "no backend for this platform" in str(warning.message)
assert not ft.is_installed()
arrays()
with ft.use() as given:
    kept = arrays()
assert given == ft.numpy_default()
for allocator in (ft.malloc(), ft.calloc(), ft.aligned(4096), ft.numpy_default()):
    with ft.use(allocator):
        kept += arrays()
for allocator in (ft.pool(), ft.pages(), ft.pages("thp")):
    with ft.use(allocator):
        try:
            np.ones(5 << 20)
        except MemoryError:
            assert ft.last_failure().limit == "platform", ft.last_failure()
            assert "no backend for this platform" in str(ft.last_failure())
        else:
            raise SystemExit(f"{allocator} served without a backend")
assert ft.stats().allocations == 0 and ft.trim(ft.pool()) == 0
ft.uninstall()
assert ft.get_allocator(kept[0]) == ft.numpy_default()
import os
child = os.fork()
if not child:
    arrays()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_it_says_so_and_arrays_work(tmp_path: Path) -> None:
    target = tmp_path / "target"
    build = {
        "CARGO_TARGET_DIR": str(target),
        "RUSTFLAGS": "--cfg firsttouch_no_backend",
        "PYO3_PYTHON": sys.executable,
        "CARGO_PROFILE_RELEASE_LTO": "off",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    }
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "firsttouch-python"]
    command += ["--no-default-features"]  # what others wrote has its own backends
    made = execute(*command, cwd=ROOT, env=build, timeout=280)
    assert made.returncode == 0, made.stderr[-3000:]
    assert "warning" not in made.stderr, made.stderr[-3000:]
    package = tmp_path / "package" / "firsttouch"
    shutil.copytree(ROOT / "python" / "firsttouch", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(target / "release" / "lib_firsttouch.so", package / "_firsttouch.abi3.so")
    site = os.pathsep.join([str(package.parent), sysconfig.get_path("purelib")])
    quiet(execute(sys.executable, "-c", PROGRAM, package.parent, env={"PYTHONPATH": site}))
