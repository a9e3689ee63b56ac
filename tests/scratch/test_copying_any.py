"""copied(): any views of any array, in any order."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.scratch.test_copying_aliases import assert_alike, content, copied_out

pytestmark = pytest.mark.quick

slices = st.builds(slice, st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([-3, -2, -1, 1, 2, 3]))
kinds = st.sampled_from(["u1", "i2", "f4", "f8", "c16", "M8[s]", "u1,f8", "S3"])


@given(kinds, st.lists(st.tuples(slices, slices, st.booleans()), max_size=5), st.booleans(), st.sampled_from("CF"))
def test_any_views(kind: str, cuts: list[tuple[slice, slice, bool]], owner: bool, order: Any) -> None:
    count = 11 * 9 * np.dtype(kind).itemsize
    x = np.asarray(np.arange(count, dtype=np.uint8).view(kind).reshape(11, 9), order=order).copy(order="K")
    old = [x[one, two].T if turned else x[one, two] for one, two, turned in cuts] + [x] * owner
    new = copied_out(old)
    assert_alike(new, old)
    for one, other in zip(new, old, strict=True):
        if other.size:
            one[...], other[...] = other[0, 0], other[0, 0].copy()
    assert all(content(one) == content(other) for one, other in zip(new, old, strict=True))
