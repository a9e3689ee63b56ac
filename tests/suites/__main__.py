"""Other people's tests: each must end under firsttouch as it ends without it.

``python -m tests.suites`` runs NumPy's own, all or those that are named, plainly and under install(); ``--share`` those
that make most arrays; ``--foreign`` parts of other packages', under several allocators. Exit status 0 if all end alike.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs import running

NUMPY = [f"numpy/{module}" for module in ("_core", "lib", "ma", "fft", "linalg", "random")]

#: The tests that make most arrays, and those of NumPy's memory handlers.
_CORE = ("mem_overlap", "mem_policy", "multiarray", "numeric", "indexing", "nditer", "shape_base", "umath")
SHARE = [*(f"numpy/_core/tests/test_{name}.py" for name in _CORE), "numpy/lib/tests/test_function_base.py"]

#: Which parts of which packages' tests are run: those that make many arrays, in a few minutes each.
FOREIGN = {
    "bottleneck": ["bottleneck/tests"],
    "h5py": ["h5py/tests/test_dataset.py", "h5py/tests/test_slicing.py"],
    "numexpr": ["numexpr/tests/test_numexpr.py"],
    "pandas": ["pandas/tests/groupby/test_groupby.py", "pandas/tests/reshape/merge", "pandas/tests/internals"],
    "pyarrow": ["pyarrow/tests/test_array.py", "pyarrow/tests/test_pandas.py"],
    "pywt": ["pywt/tests"],
    "scipy": ["scipy/ndimage/tests", "scipy/fft/tests", "scipy/sparse/tests/test_base.py"],
    "sklearn": ["sklearn/cluster/tests", "sklearn/decomposition/tests"],
    "xarray": ["xarray/tests/test_variable.py", "xarray/tests/test_dataarray.py"],
}
ALLOCATORS: tuple[str, ...] = ("install", "mimalloc()", "guarded()", "filled(pool())")

#: How often tests that ended differently run again, alone, before that counts.
RERUNS = 2

#: NumPy's own runner ignores these too.
_IGNORED = (
    "Not importing directory",
    "numpy.dtype size changed",
    "numpy.ufunc size changed",
    ":UserWarning:cpuinfo",
    "the matrix subclass is not",
    "Importing from numpy.matlib is",
)


@dataclass(frozen=True)
class Result:
    """How every test ended, and what the pool did meanwhile (nothing in a plain run)."""

    outcomes: dict[str, str]
    pooled: dict[str, int]

    def __str__(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in Counter(self.outcomes.values()).most_common())


class Crashed(Exception):
    """The run ended without outcomes; says how, with the last it wrote."""


def site() -> Path:
    found = importlib.util.find_spec("numpy")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent.parent


@contextmanager
def started(way: str, scratch: Path, tests: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Tests under way in one of the plugin's ways, by the names that outcomes have."""
    scratch.mkdir(parents=True)
    (scratch / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    words = ["-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", f"{__package__}.plugin"]
    words += ["-c", str(scratch / "pytest.ini"), "--basetemp", str(scratch / "tmp")]
    # Without it pytest collects the folders above, where they have none in common with the settings: on Windows those
    # of a whole drive.
    words += ["--rootdir", str(site()), "--confcutdir", str(site())]
    words += [*(f"-Wignore:{text}" for text in _IGNORED), *(str(site() / test) for test in tests)]
    env = {
        "NPY_AVAILABLE_MEM": "4GB",  # otherwise what is free at the moment decides what is skipped
        "FIRSTTOUCH_SUITE": way,
        "FIRSTTOUCH_SUITE_OUTCOMES": str(scratch / "outcomes.json"),
    }
    with (scratch / "log").open("wb") as log:
        streams: Any = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        with running(sys.executable, *words, cwd=scratch, env=env, **streams) as process:
            yield process


def result(way: str, scratch: Path, status: int) -> Result:
    """How the tests ended that were started there."""
    outcomes = scratch / "outcomes.json"
    if status not in (0, 1) or not outcomes.exists():  # 1: a test failed, perhaps plainly too
        tail = (scratch / "log").read_text(encoding="utf-8", errors="replace")[-4000:]
        raise Crashed(f"the {way} run ended with status {status}; it wrote at last:\n{tail}")
    found = json.loads(outcomes.read_text(encoding="utf-8"))
    if way != "plain" and not found["pooled"]["installed"]:
        raise Crashed(f"a test of the {way} run has uninstalled firsttouch")
    return Result(found["outcomes"], found["pooled"])


def ended(way: str, scratch: Path, tests: Sequence[str]) -> Result:
    """How the tests end in a way."""
    with started(way, scratch, tests) as process:
        return result(way, scratch, process.wait(timeout=3600))


def endings(ways: Sequence[str], scratch: Path, tests: Sequence[str]) -> dict[str, Future[Result]]:
    """How the tests end in some ways, two of which run at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return {way: pool.submit(ended, way, scratch / way, tests) for way in ways}


def differing(plain: Result, other: Result) -> dict[str, tuple[str, str]]:
    """Tests that did not end alike, with how they ended plainly and in the other way."""
    names = plain.outcomes.keys() | other.outcomes.keys()
    ends = {name: (plain.outcomes.get(name, "absent"), other.outcomes.get(name, "absent")) for name in names}
    return {name: end for name, end in sorted(ends.items()) if end[0] != end[1]}


def differences(plain: Result, way: str, other: Result, scratch: Path) -> int:
    """Print what came of a way; how many tests end differently every time, where these run again."""
    arrays = other.pooled["allocations"]
    print(f"plainly: {plain}\n{way}: {other}, {arrays} arrays, {other.pooled['recycled']} of them recycled")
    if "passed" not in plain.outcomes.values() or not arrays:
        raise Crashed("the tests did not run, or not under firsttouch")
    open_ = differing(plain, other)
    for turn in range(RERUNS if len(open_) < 100 else 0):
        if open_:
            print("to be run again:", *open_, sep="\n  ")
            again = endings(("plain", way), scratch / f"{way} again {turn}", list(open_))
            found = differing(again["plain"].result(), again[way].result())
            open_ = {name: end for name, end in found.items() if name in open_}
    for name, (first, second) in open_.items():
        print(f"DIFFERENT: {name}: {first} plainly, {second} under {way}")
    print(f"{len(plain.outcomes)} tests, {len(open_)} different")
    return len(open_)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("names", nargs="*", help="files, as numpy/ma/tests/test_core.py; with --foreign, packages")
    parser.add_argument("--share", action="store_true", help="only those of NumPy's tests that make most arrays")
    parser.add_argument("--foreign", action="store_true", help="tests of other packages, under several allocators")
    given = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    for tool in ("meson", "ninja", "cc"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: NumPy skips its tests of memory handlers")
    suites, ways = {"numpy": given.names or (SHARE if given.share else NUMPY)}, ALLOCATORS[:1]
    if given.foreign:
        suites, ways = {name: FOREIGN[name] for name in given.names or FOREIGN}, ALLOCATORS
    failed = ran = 0
    for package, tests in suites.items():
        if not importlib.util.find_spec(package):
            print(f"-- {package} is not installed")
            continue
        print(f"-- {package} plainly and under {', '.join(ways)}, on Python {sys.version.split()[0]}")
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            found = endings(("plain", *ways), Path(scratch), tests)
            for way in ways:
                ran += 1
                try:
                    failed += differences(found["plain"].result(), way, found[way].result(), Path(scratch))
                except Crashed as crash:
                    print(crash)
                    failed += 1
        print(f"   {time.monotonic() - began:.0f} s")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    raise SystemExit(main())
