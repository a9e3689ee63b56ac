"""In a memory cgroup: a program that fits plainly is not killed, and idle memory is bounded by what is left."""

import textwrap

import pytest

from tests.limits.cgroups import Group, group
from tests.limits.programs import PROGRAMS
from tests.programs import start

MIB = 1 << 20
PLAIN = "import numpy as np\nfrom tests import probe\n"
POOLED = "import numpy as np\nimport firsttouch as ft\nft.install()\nfrom tests import probe\n"


def inside(place: Group, prologue: str, program: str) -> tuple[int, str, str]:
    finished = start(textwrap.dedent(program), prologue=prologue, preexec_fn=place.enter)
    return finished.returncode, finished.stdout, finished.stderr


#: A bound on idle memory is enforced within a tenth of a second; a program that asks elsewhere sooner may meet it.
FITTING = {name: text.replace("text =", "import time; time.sleep(0.3); text =") for name, text in PROGRAMS.items()}


@pytest.mark.parametrize("name", FITTING)
def test_who_fits_plainly_is_not_killed(name: str) -> None:
    with group() as place:
        plain = inside(place, PLAIN, FITTING[name])
        peak = place.peak()
    assert plain[0] == 0
    with group(limit=int(peak * 1.2) + 8 * MIB) as place:
        assert inside(place, POOLED, FITTING[name]) == plain
