"""NumPy's constructors with an allocator."""

import pytest

pytest.register_assert_rewrite("tests.creation.kinds")
