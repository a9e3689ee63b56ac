"""Two seconds after the last array, without further requests: as little memory as plain NumPy leaves."""

import subprocess
import sys
import time

import pytest

from tests.limits.cgroups import group
from tests.programs import ask, environment

MIB = 1 << 20

PROGRAMS = {
    "temporaries": "a = np.ones(8 << 20)\nfor _ in range(5): (a * 2 + a) / (a + 1)\ndel a",
    "many middling": "a = [np.ones(70_000 + 100 * n, np.uint8) for n in range(2000)]\ndel a",
    "mixed, freed in disorder": """
a = [np.ones(20_000 + n * 7919 % (4 << 20), np.uint8) for n in range(400)]
while a:
    a.pop(len(a) * 7 % len(a) if len(a) % 2 else 0)
""",
    "sparse zeros": "a = [np.zeros(1 << 20, np.uint8) for _ in range(500)]\nfor z in a: z[::4096] = 1\ndel a, z",
    "grown": "a = np.ones(1000)\nfor _ in range(14): a.resize(a.size * 2, refcheck=False); a[:] = 1\ndel a",
    "freed by another thread": """
import threading
a = [np.ones(1 << 20, np.uint8) for _ in range(200)]
thread = threading.Thread(target=a.clear)
thread.start(); thread.join()
""",
}


def left(program: str, install: str = "") -> int:
    """Resident bytes at the end, two seconds later where somebody may still give back."""
    wait = "time.sleep(2)" if install else ""
    return int(ask(f"import json, time\n{install}\n{program}\n{wait}\nprint(json.dumps(probe.rss()))\n"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_little_as_plain(name: str) -> None:
    assert left(PROGRAMS[name], "ft.install()") <= left(PROGRAMS[name]) + 16 * MIB


@pytest.mark.parametrize("idle", [0, 8 * MIB])
def test_soon_after_a_bound_is_passed(idle: int) -> None:
    """Without decay; a tenth of a second is the promise, a second allows for a busy machine."""
    kept = ask(f"""
        import json
        pool = ft.pool(max_idle={idle}, decay=None)
        ft.install(pool)
        arrays = [np.ones(1 << 20, np.uint8) for _ in range(100)]
        arrays.clear()
        probe.wait_until(lambda: ft.stats(pool).idle <= {idle}, 1)
        print(json.dumps([ft.stats(pool).idle, probe.rss()]))
    """)
    plain = ask("import json\nprint(json.dumps(probe.rss()))")
    assert kept[0] <= idle
    assert kept[1] <= plain + idle + 16 * MIB


def test_never_means_never() -> None:
    assert left("a = np.ones(50 << 20, np.uint8)\ndel a", "ft.install(ft.pool(decay=None))") > 50 * MIB


def used(program: str, install: str) -> int:
    """Anonymous bytes that the container is charged for at the end of a program."""
    text = f"import numpy as np, sys\nimport firsttouch as ft\n{install}\n{program}\nprint(1, flush=True)\ninput()"
    with group() as place:
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            env=environment(),
            preexec_fn=place.enter,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        time.sleep(2 if install else 0)
        found = place.used()
        process.communicate("\n", timeout=30)
        assert process.returncode == 0
    return found


@pytest.mark.parametrize("name", ["mixed, freed in disorder", "many middling"])
def test_the_container_sees_it_too(name: str) -> None:
    """What RSS does not show: half a huge page given back frees nothing."""
    assert used(PROGRAMS[name], "ft.install()") <= used(PROGRAMS[name], "") + 16 * MIB
