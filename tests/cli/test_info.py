"""`firsttouch --info`, and the machine as everything here sees it: on this one, and on trees of files made here."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch import _firsttouch
from firsttouch.tools.measuring import machine
from firsttouch.tools.measuring.machine import available, describe

from .conftest import Start

Tree = Callable[[dict[str, str]], Path]
THP = "sys/kernel/mm/transparent_hugepage"
GIB = 1 << 30


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def plant(content: dict[str, str]) -> Path:
        for name, text in content.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return plant


def meaning(root: Path = machine.ROOT) -> str:
    return " ".join(machine.meaning(root))


def test_facts_and_files(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("--info", "--json", "info.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if len(line) > 80 and "preload" not in line] == []
    found = json.loads((tmp_path / "info.json").read_text())
    assert found["page"] == f"{resource.getpagesize() >> 10} KiB"
    assert found["processors"].split()[0] == str(len(os.sched_getaffinity(0)))
    assert os.uname().release in found["system"]
    assert {"CPU", "transparent huge pages", "overcommit", "Python", "NumPy", "firsttouch"} <= set(found)
    assert all(label in done.stdout for label in found if label != "meaning")
    assert firsttouch("--info", "-q").stdout.startswith("what it means\n")
    assert json.loads(firsttouch("--info", "--json", "-").stdout)["page"] == found["page"]


def test_limits_are_inherited_and_explained(firsttouch: Start) -> None:
    limit = 64 << 30
    done = firsttouch("--info", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert "address space           64 GiB" in done.stdout
    assert "ulimit -v is 64 GiB" in done.stdout


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert {"page", "Python"} <= set(describe(tmp_path))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("always madvise [never]", "transparent huge pages are off"),
        ("[always] madvise never", "THP is `always`"),
        ("always [madvise] never", ""),
    ],
)
def test_transparent_huge_pages(tree: Tree, mode: str, said: str) -> None:
    root = tree({f"{THP}/enabled": mode, f"{THP}/hpage_pmd_size": str(512 << 20)})
    assert describe(root)["huge page"] == "512 MiB"
    assert said in meaning(root)


def test_a_control_group_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [(9 * GIB, GIB), (4 * GIB, 4 * GIB - (64 << 20)), None, None]
    monkeypatch.setattr(_firsttouch, "memory_bounds", lambda: bounds)
    assert describe()["control group"].startswith("4 GiB, of which 3.9")
    assert "limited to 4 GiB (64 MiB left)" in meaning()
    assert 0 < available() < 1 << 50
