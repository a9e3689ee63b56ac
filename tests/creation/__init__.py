"""NumPy's constructors on memory of one's choice."""

import pytest

pytest.register_assert_rewrite("tests.creation.kinds")
