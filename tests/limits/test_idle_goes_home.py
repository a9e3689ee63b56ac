"""Two seconds after the last array, without further requests: as little memory as plain NumPy leaves."""

import subprocess
import sys
import time

import pytest

from tests.limits.cgroups import group
from tests.programs import ask, running

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


#: Each runs in a child, all at once: what is resident at its end, or two seconds later where somebody may give back.
EACH = """
import json, os, time
reader, writer = os.pipe()
for name, program in {programs}.items():
    if not os.fork():
        {install}
        exec(program)
        time.sleep({wait})
        os.write(writer, json.dumps([name, probe.rss()]).encode() + bytes([10]))
        os._exit(0)
os.close(writer)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print(json.dumps(dict(map(json.loads, os.read(reader, 65536).splitlines()))))
"""


def left(install: str, programs: dict[str, str] = PROGRAMS) -> dict[str, int]:
    found: dict[str, int] = ask(EACH.format(programs=programs, install=install, wait=2 if install != "pass" else 0))
    return found


def test_as_little_as_plain() -> None:
    pooled, plain = left("ft.install()"), left("pass")
    assert pooled.keys() == plain.keys() == PROGRAMS.keys()
    assert {name: size for name, size in pooled.items() if size > plain[name] + 16 * MIB} == {}


def used(program: str, install: str) -> int:
    """Anonymous bytes that the container is charged for at the end of a program."""
    text = f"import numpy as np\nimport firsttouch as ft\n{install}\n{program}\nprint('ready', flush=True)\ninput()"
    command = (sys.executable, "-c", text)
    with group() as place, running(*command, ready="ready", stdin=subprocess.PIPE, preexec_fn=place.enter):
        time.sleep(2 if install else 0)
        return place.used()


@pytest.mark.parametrize("name", ["mixed, freed in disorder", "many middling"])
def test_the_container_sees_it_too(name: str) -> None:
    """What RSS does not show: half a huge page given back frees nothing."""
    assert used(PROGRAMS[name], "ft.install()") <= used(PROGRAMS[name], "") + 16 * MIB
