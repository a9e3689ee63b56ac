"""NumPy's own tests of array creation end alike, plainly and with our functions in the place of NumPy's."""

from pathlib import Path

import pytest

from tests.numpy_suite.__main__ import differing
from tests.numpy_suite.runs import Result, Run, chosen

FILES = [
    *(f"_core/tests/test_{name}.py" for name in ("numeric", "multiarray", "function_base", "array_coercion")),
    *(f"_core/tests/test_{name}.py" for name in ("overrides", "api", "dtype", "dlpack", "records", "regression")),
    *(f"_core/tests/test_{name}.py" for name in ("stringdtype", "datetime", "shape_base", "item_selection")),
    *(f"_core/tests/test_{name}.py" for name in ("_exceptions", "array_interface", "half", "memmap", "nditer")),
    *(f"lib/tests/test_{name}.py" for name in ("twodim_base", "function_base", "index_tricks", "stride_tricks")),
    "_core/tests/test_custom_dtypes.py",
    "ma/tests/test_core.py",
    "matrixlib/tests",
    "tests/test_public_api.py",
]
WAYS = ["install", "current"]

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
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Every way at the same time, each in a process of its own."""
    folder = tmp_path_factory.mktemp("suite")
    tests = [path for path in chosen([f"numpy/{name}" for name in FILES]) if Path(path).exists()]
    runs = {way: Run(way, folder / way, tests, "tests.creation.numpy_plugin") for way in ("plain", *WAYS)}
    try:
        return {way: run.finish() for way, run in runs.items()}
    finally:
        for run in runs.values():
            run.stop()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", WAYS)
def test_every_test_ends_alike(results: dict[str, Result], way: str) -> None:
    assert list(results["plain"].outcomes.values()).count("passed") > 10_000
    assert results[way].pooled["allocations"] > 10_000
    found = differing(results["plain"], results[way])
    assert [(name, *end) for name, end in found.items() if not any(known in name for known in OF_FUNCTIONS)] == []
