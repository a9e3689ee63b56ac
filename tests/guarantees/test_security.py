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
from tests.programs import run, running

pytestmark = pytest.mark.quick

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

#: No constant, or it would be in every copy of this text.
MARK = [167, 3, 94, 251, 18, 77, 201, 9, 140, 33, 222, 61, 5, 116, 189, 48]

#: Writes it into arrays that come, grow, shrink and go.
WRITES = f"""
import numpy as np
import firsttouch as ft
with ft.use({{chosen!r}}):
    array, small, grown = np.empty(1 << 20, np.uint8), np.empty(2000, np.uint8), np.empty(50_000, np.uint8)
for each in (array, small, grown):
    for at in range(0, each.size - 16, 16):
        each[at : at + 16] = {MARK}
grown.resize(5_000_000, refcheck=False)
grown.resize(40_000, refcheck=False)
assert (array[:1600] != 0).all()
del array, small, grown, each
print("freed", flush=True)
input()
"""


def copies(process: int) -> int:
    """How often the marker is in the memory of a process."""
    found = 0
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        for line in maps:
            ends, rights = line.split()[:2]
            if rights.startswith("rw") and "[v" not in line:
                start, end = (int(word, 16) for word in ends.split("-"))
                memory.seek(start)
                found += memory.read(end - start).count(bytes(MARK))
    return found


@pytest.mark.parametrize(
    ("upstream", "wiped"),
    [("pool(decay=None)", False), *((each, True) for each in ("pool(decay=None)", "mimalloc()", "malloc()"))],
)
def test_under_filled_with_on_free_nothing_of_a_freed_array_stays_in_memory(upstream: str, wiped: bool) -> None:
    chosen = f"filled({upstream}, on_allocate=None, on_free=0)" if wiped else upstream
    command = (sys.executable, "-c", WRITES.format(chosen=chosen))
    with running(*command, ready="freed", stdin=subprocess.PIPE) as process:
        assert (copies(process.pid) == 0) == wiped


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
    writer = (
        "import pickle, ctypes, firsttouch as ft\n"
        + as_user.format(maker)
        + "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  # PR_SET_DUMPABLE, which a change of user takes away
        + f"a = ft.shared(1000); a[:] = 7; pickle.dump(a, open({str(handle)!r}, 'wb'))\n"
        + f"import os; os.chmod({str(handle)!r}, 0o644); print(1, flush=True); input()"
    )
    with running(sys.executable, "-c", writer, ready="1", stdin=subprocess.PIPE):
        text = (
            "import pickle, firsttouch as ft\n"
            + as_user.format(opener)
            + f"try:\n    print(pickle.load(open({str(handle)!r}, 'rb')).sum())\n"
            + "except ft.sharing.SharedArrayError as error: print(error)"
        )
        assert (run(text, prologue="") == "7000.0\n") == may


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
