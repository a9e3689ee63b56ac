"""One run of NumPy's tests in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("_core", "lib", "ma", "fft", "linalg", "random")

#: The tests that make most arrays, and those of NumPy's memory handlers.
_CORE = ("mem_overlap", "mem_policy", "multiarray", "numeric", "indexing", "nditer", "shape_base", "umath")
SHARE = (*(f"numpy/_core/tests/test_{name}.py" for name in _CORE), "numpy/lib/tests/test_function_base.py")

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

    def counts(self) -> str:
        found = Counter(self.outcomes.values())
        return ", ".join(f"{number} {name}" for name, number in found.most_common())


class Crashed(Exception):
    """The run ended without outcomes; says how, with the last it wrote."""


def _site() -> Path:
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        raise Crashed("NumPy is not installed")
    return Path(found.origin).parent.parent


class Run:
    """NumPy's tests under way; `finish` waits for them."""

    def __init__(self, way: str, scratch: Path, tests: Sequence[str]) -> None:
        self.way = way
        scratch.mkdir(parents=True)
        self._outcomes, self._log = scratch / "outcomes.json", scratch / "log"
        (scratch / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", f"{__package__}.plugin"]
        options += ["-c", str(scratch / "pytest.ini"), "--basetemp", str(scratch / "tmp")]
        # Without it pytest collects the folders above, where they have none in common with the settings: on Windows
        # those of a whole drive.
        options += ["--rootdir", str(_site()), "--confcutdir", str(_site())]
        options += [f"-Wignore:{text}" for text in _IGNORED]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FIRSTTOUCH_")}
        environment |= {
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NPY_AVAILABLE_MEM": "4GB",  # otherwise what is free at the moment decides what is skipped
            "FIRSTTOUCH_SUITE": way,
            "FIRSTTOUCH_SUITE_OUTCOMES": str(self._outcomes),
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=scratch,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def finish(self) -> Result:
        status = self._process.wait(timeout=3600)
        if status not in (0, 1) or not self._outcomes.exists():  # 1: a test failed, perhaps plainly too
            tail = self._log.read_text(encoding="utf-8", errors="replace")[-4000:]
            raise Crashed(f"the {self.way} run ended with status {status}; it wrote at last:\n{tail}")
        found = json.loads(self._outcomes.read_text(encoding="utf-8"))
        if self.way != "plain" and not found["pooled"]["installed"]:
            raise Crashed(f"a test of the {self.way} run has uninstalled firsttouch")
        return Result(found["outcomes"], found["pooled"])

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def modules() -> list[str]:
    """The folders of NumPy's tests."""
    return [str(_site() / "numpy" / module) for module in MODULES]


def chosen(names: Sequence[str]) -> list[str]:
    """Single tests by the names that outcomes have."""
    return [str(_site() / name) for name in names]
