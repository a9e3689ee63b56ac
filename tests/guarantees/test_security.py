"""Security: see the page."""

import os
import pickle
import pickletools
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import ask, environment

pytestmark = pytest.mark.quick

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

#: Counts the copies of a marker in this process's memory. What is read may be counted again, and stays behind: so it is
#: called once, and only whether there are any tells something.
SEARCH = """
MARK = [167, 3, 94, 251, 18, 77, 201, 9, 140, 33, 222, 61, 5, 116, 189, 48]
def write(array):
    view = array.view(np.uint8)
    for at in range(0, view.size - 16, 16):
        view[at : at + 16] = MARK
def copies():
    found, first = 0, bytes([MARK[0], MARK[1]])
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps.readlines():
            ends, rights = line.split()[:2]
            start, end = (int(word, 16) for word in ends.split("-"))
            if not rights.startswith("rw") or "[v" in line:
                continue
            for at in range(start, end, 1 << 20):
                try:
                    memory.seek(at)
                    part = memory.read(min(1 << 20, end - at))
                except (OSError, ValueError, OverflowError):
                    continue
                index = part.find(first)
                while index >= 0:
                    found += all(part[index + n] == MARK[n] for n in range(2, 16) if index + n < len(part))
                    index = part.find(first, index + 1)
                del part
    return found
"""


@pytest.mark.parametrize(
    ("upstream", "wiped"),
    [("pool(decay=None)", False), *((each, True) for each in ("pool(decay=None)", "mimalloc()", "malloc()"))],
)
def test_under_filled_with_on_free_nothing_of_a_freed_array_stays_in_memory(upstream: str, wiped: bool) -> None:
    found = ask(
        SEARCH
        + f"""
import json
upstream = {upstream!r}
chosen = f"filled({{upstream}}, on_allocate=None, on_free=0)" if {wiped} else upstream
with ft.use(chosen):
    array, small, grown = np.empty(1 << 20, np.uint8), np.empty(2000, np.uint8), np.empty(50_000, np.uint8)
for each in (array, small, grown):
    write(each)
grown.resize(5_000_000, refcheck=False)
grown.resize(40_000, refcheck=False)
assert (array[:1600] != 0).all()
del array, small, grown, each
print(json.dumps(copies()))
"""
    )
    assert (found == 0) == wiped


def test_a_shared_array_has_no_name_in_any_file_system() -> None:
    array = ft.shared(100_000)
    lines = [line for line in Path("/proc/self/maps").read_text().splitlines() if "firsttouch:" in line]
    assert lines
    assert all("/memfd:" in line and line.endswith("(deleted)") for line in lines)
    assert array.size == 100_000


@pytest.fixture
def anybodys() -> Iterator[Path]:
    """A folder in which every user may write; pytest's own may not be entered."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@needs_root
@pytest.mark.parametrize(("maker", "opener", "may"), [(1234, 4321, False), (1234, 1234, True), (1234, 0, True)])
def test_only_the_user_that_made_a_shared_array_can_open_it(maker: int, opener: int, may: bool, anybodys: Path) -> None:
    handle = anybodys / "handle"
    as_user = "import os; os.setresgid({0}, {0}, {0}); os.setresuid({0}, {0}, {0})\n"
    writer = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import pickle, ctypes, firsttouch as ft\n"
            + as_user.format(maker)
            + "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  # PR_SET_DUMPABLE, which a change of user takes away
            + f"a = ft.shared(1000); a[:] = 7; pickle.dump(a, open({str(handle)!r}, 'wb'))\n"
            + f"import os; os.chmod({str(handle)!r}, 0o644); print(1, flush=True); input()",
        ],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "1\n"
        text = (
            "import pickle, firsttouch as ft\n"
            + as_user.format(opener)
            + f"try:\n    print(pickle.load(open({str(handle)!r}, 'rb')).sum())\n"
            + "except ft.sharing.SharedArrayError as error: print(error)"
        )
        found = subprocess.run(
            [sys.executable, "-c", text], env=environment(), capture_output=True, text=True, check=True
        )
        assert (found.stdout == "7000.0\n") == may, found.stdout
    finally:
        writer.communicate("\n", timeout=30)


CODE = "__import__('os').system('touch {}')"


@pytest.mark.parametrize("form", ["{}", "pool({})", "pool(max_idle={})", "limited(pool(), {})", "{}.pool()", "'{}'"])
def test_an_expression_is_parsed_and_never_evaluated(form: str, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    text = form.format(CODE.format(trap))
    for call in (
        lambda: ft.install(text),
        lambda: ft.empty(10, allocator=text),
        lambda: ft.limited(text, "1 GiB"),
        lambda: ft.limited(budget=text),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert not trap.exists()
    assert not ft.is_installed()


def test_a_handle_of_a_shared_array_names_no_code_of_its_own() -> None:
    """A pickle names two functions, ours and NumPy's; a text in the place of a number is never called or imported."""
    array = ft.shared((100, 10))
    handle = pickle.dumps(array)
    strings: list[str] = []
    named = set()
    for opcode, value, _ in pickletools.genops(handle):
        if isinstance(value, str):
            strings.append(value)
        if opcode.name == "STACK_GLOBAL":
            named.add((strings[-2], strings[-1]))
    assert {module.partition(".")[0] for module, _ in named} == {"firsttouch", "numpy"}
    assert {name for _, name in named} == {"arrive", "dtype"}, named
    assert np.array_equal(pickle.loads(handle), array)
