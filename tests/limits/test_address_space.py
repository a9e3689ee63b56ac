"""RLIMIT_AS at 1.2 times a program's own peak: it runs with firsttouch as it does without."""

import functools

import pytest

from tests.limits.programs import PROGRAMS, plainly, pooled

_plainly = functools.cache(plainly)


@pytest.mark.parametrize(
    ("name", "when"), [*((name, "before") for name in PROGRAMS), *((name, "after") for name in list(PROGRAMS)[::3])]
)
def test_a_fifth_more_than_its_own_peak(name: str, when: str) -> None:
    said, peak = _plainly(PROGRAMS[name])
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({int(peak * 1.2)},) * 2)\n"
    assert pooled(PROGRAMS[name], **{when: limit}) == said
