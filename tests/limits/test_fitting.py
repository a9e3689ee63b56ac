"""Programs that fit plainly into an address space or a container, with a fifth to spare, do so with firsttouch."""

import functools
import textwrap
from typing import Any

import pytest

from tests.limits.cgroups import group
from tests.programs import quiet, start

#: Every one ends by printing a number, the same whoever serves its arrays.
PROGRAMS = {
    "temporaries": """
        a = np.arange(4_000_000.0)
        total = 0.0
        for turn in range(12):
            total += float(((a * 2 + turn) / (a + 1) - a)[::1000].sum())
        print(total)
    """,
    "a growing list": """
        arrays = [np.full(25_000 + 100 * number, number) for number in range(400)]
        print(sum(int(array[-1]) for array in arrays))
    """,
    "big zeros": """
        arrays = [np.zeros(12_000_000) for _ in range(5)]
        for array in arrays:
            array[::100_000] = 1
        print(sum(int(array.sum()) for array in arrays))
    """,
    "a bytearray after arrays are freed": """
        arrays = [np.ones(1_000_000) for _ in range(30)]
        arrays.clear()
        text = bytearray(200_000_000)
        text[::1000] = b"x" * 200_000
        print(text.count(b"x"))
    """,
    "threads started after arrays are freed": """
        import threading
        arrays = [np.ones(1_000_000) for _ in range(30)]
        arrays.clear()
        sums = []
        def body():
            sums.append(float((np.ones(500_000) * 2).sum()))
        for _ in range(5):
            group = [threading.Thread(target=body) for _ in range(6)]
            [thread.start() for thread in group]
            [thread.join() for thread in group]
        print(sum(sums))
    """,
    "lists of small arrays": """
        rows = [np.arange(number % 500) for number in range(60_000)]
        print(int(np.concatenate(rows).sum()))
    """,
}

_PLAIN = "import numpy as np\nfrom tests import probe\n"
_POOLED = "import numpy as np\nimport firsttouch as ft\nft.install()\nfrom tests import probe\n"


def plainly(program: str, **options: Any) -> tuple[str, int]:
    """What a program prints without us, and the most address space it had."""
    text = textwrap.dedent(program) + "print(probe.status('VmPeak'))\n"
    said, peak = quiet(start(text, prologue=_PLAIN, **options)).rstrip().rsplit("\n", 1)
    return said, int(peak)


def pooled(program: str, before: str = "", after: str = "", **options: Any) -> str:
    """What it prints with us; `before` runs before NumPy is imported, `after` after install()."""
    prologue = textwrap.dedent(before) + _POOLED
    return quiet(start(textwrap.dedent(after) + textwrap.dedent(program), prologue=prologue, **options)).rstrip()


_plainly = functools.cache(plainly)


@pytest.mark.parametrize(
    ("name", "when"), [*((name, "before") for name in PROGRAMS), *((name, "after") for name in list(PROGRAMS)[::3])]
)
def test_an_address_space(name: str, when: str) -> None:
    said, peak = _plainly(PROGRAMS[name])
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({int(peak * 1.2)},) * 2)\n"
    assert pooled(PROGRAMS[name], **{when: limit}) == said


#: A bound on idle memory is enforced within a tenth of a second; a program that asks elsewhere sooner may meet it.
FITTING = {name: text.replace("text =", "import time; time.sleep(0.3); text =") for name, text in PROGRAMS.items()}


@pytest.mark.parametrize("name", FITTING)
def test_a_container(name: str) -> None:
    with group() as place:
        said, _ = plainly(FITTING[name], preexec_fn=place.enter)
        peak = place.peak()
    with group(limit=int(peak * 1.2) + (8 << 20)) as place:
        assert pooled(FITTING[name], preexec_fn=place.enter) == said
