"""Runs pytest in processes of their own, and collects the outcome of each test."""

import importlib.metadata
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.programs import execute


@dataclass
class Ended:
    status: int
    said: str
    outcomes: dict[str, str]
    """By the test's name: passed, failed, error or skipped."""
    messages: dict[str, str]
    """What is said of those that did not pass."""

    @property
    def failed(self) -> set[str]:
        return {name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")}


def plugin() -> list[str]:
    """The option by which pytest finds the plugin where the package lies in a source tree."""
    names = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
    return [] if "firsttouch" in names else ["-p", "_firsttouch_start.pytest_entry"]


def pytest_run(folder: Path, *options: str, **more: str) -> Ended:
    (folder / "pytest.ini").write_text("[pytest]\n")  # no settings of ours
    command = [sys.executable, "-m", "pytest", *plugin(), "-p", "no:cacheprovider", "-ra", "--junitxml=junit.xml"]
    said = execute(*command, f"--rootdir={folder}", *options, cwd=folder, env=more, timeout=280)
    outcomes: dict[str, str] = {}
    messages: dict[str, str] = {}
    junit = folder / "junit.xml"
    if junit.exists():
        for case in ElementTree.parse(junit).iter("testcase"):
            name = case.get("name", "")
            outcomes.setdefault(name, "passed")
            for found in case:
                if found.tag in ("failure", "error", "skipped"):
                    outcomes[name] = {"failure": "failed"}.get(found.tag, found.tag)
                    messages[name] = f"{found.get('message')}\n{found.text}"
        junit.unlink()
    return Ended(said.returncode, said.stdout + said.stderr, outcomes, messages)


def suite(folder: Path, **files: str) -> Path:
    """A folder with these files."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text("import pytest\nimport numpy as np\n" + text)
    return folder
