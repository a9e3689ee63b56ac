"""In a memory cgroup: a program that fits plainly is not killed, and idle memory is bounded by what is left."""

import pytest

from tests.limits.cgroups import group
from tests.limits.programs import PROGRAMS, plainly, pooled

MIB = 1 << 20

#: A bound on idle memory is enforced within a tenth of a second; a program that asks elsewhere sooner may meet it.
FITTING = {name: text.replace("text =", "import time; time.sleep(0.3); text =") for name, text in PROGRAMS.items()}


@pytest.mark.parametrize("name", FITTING)
def test_who_fits_plainly_is_not_killed(name: str) -> None:
    with group() as place:
        said, _ = plainly(FITTING[name], preexec_fn=place.enter)
        peak = place.peak()
    with group(limit=int(peak * 1.2) + 8 * MIB) as place:
        assert pooled(FITTING[name], preexec_fn=place.enter) == said
