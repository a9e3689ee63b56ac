"""NumPy's own tests of array creation have the same outcomes with our functions in place of NumPy's."""

from pathlib import Path

import pytest

from tests.suites.__main__ import differing, endings, site

#: What is about making arrays, and what makes them all the time.
FILES = [
    *(f"_core/tests/test_{name}.py" for name in ("numeric", "multiarray", "function_base", "array_coercion")),
    *(f"_core/tests/test_{name}.py" for name in ("overrides", "api", "dlpack", "stringdtype", "_exceptions")),
    "lib/tests/test_twodim_base.py",
    *(f"_core/tests/test_{name}.py" for name in ("dtype", "records", "regression", "datetime", "shape_base")),
    *(f"_core/tests/test_{name}.py" for name in ("array_interface", "indexing", "custom_dtypes")),
    "lib/tests/test_function_base.py",
    "ma/tests/test_core.py",
    "matrixlib/tests",
    "tests/test_public_api.py",
]

#: Tests that look at the functions themselves, not at what they do.
OF_FUNCTIONS = (
    "test_signatures[full]",  # counts the parameters: allocator is one more
    "TestTextSignatures::",  # of functions in C, and their __wrapped__
    "test_nep35_functions_as_array_functions",  # which of NumPy's functions are registered for dispatch
    "TestArrayLike::test_array_like[False-full-",  # NumPy hands its own function to __array_function__
    "TestArrayLike::test_array_like[False-ones-",
    "test_public_api.py::test_numpy_namespace",  # the names' home is NumPy
    "test_public_api.py::test___module___attribute",
    "test_public_api.py::test___qualname___and___module___attribute",
    "TestCreation::test_malloc_fails",  # asks for a private subclass of MemoryError
)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_test_ends_alike(tmp_path: Path) -> None:
    there = [name for name in (f"numpy/{file}" for file in FILES) if (site() / name).exists()]
    plain, ours = (end.result() for end in endings(("plain", "functions"), tmp_path, there).values())
    assert list(plain.outcomes.values()).count("passed") > 5_000
    assert ours.pooled["allocations"] > 1_000
    found = differing(plain, ours)
    assert [(name, *end) for name, end in found.items() if not any(known in name for known in OF_FUNCTIONS)] == []
