"""Programs that need more than their cgroup has: some of those that `python -m benchmarks beyond` runs."""

import pytest

from benchmarks.experiments import beyond
from tests.limits.cgroups import group


@pytest.mark.parametrize(
    "part", ["cache[key]", "np.abs(", "array.tobytes()", "values.append", "pd.read_csv", "xr.concat("]
)
def test_a_program_beyond_its_limit_ends_in_a_memoryerror_that_names_its_line(part: str) -> None:
    kind, program = next(each for each in beyond.programs() if part in each[1])
    if kind != "numpy":
        pytest.importorskip(kind)
    with group() as place:
        ending = beyond.ended(kind, program, place)
    assert ending.word == beyond.NAMED, ending.error
