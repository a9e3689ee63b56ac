"""`firsttouch --info`, and the machine as everything here sees it: on this one, and on trees of files made here."""

import json
import os
import resource
from pathlib import Path

import pytest

from firsttouch import _firsttouch
from firsttouch.tools.measuring.machine import describe

from .conftest import Start

GIB = 1 << 30


def test_facts_and_files(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("--info", "--json", "info.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in done.stdout.splitlines() if len(line) > 80 and "preload" not in line] == []
    found = json.loads((tmp_path / "info.json").read_text())
    assert found["page"] == f"{resource.getpagesize() >> 10} KiB"
    assert found["processors"].split()[0] == str(len(os.sched_getaffinity(0)))
    assert os.uname().release in found["system"]
    assert {"CPU", "transparent huge pages", "overcommit", "Python", "NumPy", "firsttouch"} <= set(found)
    assert all(label in done.stdout for label in found)
    assert firsttouch("--info", "-q").stdout == ""
    assert json.loads(firsttouch("--info", "--json", "-").stdout)["page"] == found["page"]


def test_limits_are_inherited(firsttouch: Start) -> None:
    limit = 64 << 30
    done = firsttouch("--info", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert "address space           64 GiB" in done.stdout


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert {"page", "Python"} <= set(describe(tmp_path))


def test_a_control_group_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [(9 * GIB, GIB), (4 * GIB, 4 * GIB - (64 << 20)), None, None]
    monkeypatch.setattr(_firsttouch, "memory_bounds", lambda: bounds)
    assert describe()["control group"].startswith("4 GiB, of which 3.9")
    assert 0 < _firsttouch.headroom() < 1 << 50
