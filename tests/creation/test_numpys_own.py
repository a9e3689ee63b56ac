"""NumPy's own tests of array creation have the same outcomes with our functions in place of NumPy's."""

from pathlib import Path

import pytest

from tests.numpy_suite.__main__ import differing
from tests.numpy_suite.runs import Result, Run, chosen

#: What is about making arrays.
CLOSE = [
    *(f"_core/tests/test_{name}.py" for name in ("numeric", "multiarray", "function_base", "array_coercion")),
    *(f"_core/tests/test_{name}.py" for name in ("overrides", "api", "dlpack", "stringdtype", "_exceptions")),
    "lib/tests/test_twodim_base.py",
]
#: What makes arrays all the time.
FAR = [
    *(f"_core/tests/test_{name}.py" for name in ("dtype", "records", "regression", "datetime", "shape_base")),
    *(f"_core/tests/test_{name}.py" for name in ("array_interface", "indexing", "custom_dtypes")),
    "lib/tests/test_function_base.py",
    "ma/tests/test_core.py",
    "matrixlib/tests",
    "tests/test_public_api.py",
]
FILES = {"plain": CLOSE + FAR, "install": CLOSE + FAR, "current": CLOSE}

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


def there(way: str) -> list[str]:
    """The paths of those files that this NumPy has."""
    return [path for path in chosen([f"numpy/{name}" for name in FILES[way]]) if Path(path).exists()]


def of(result: Result, way: str) -> Result:
    """The part of a run that is also in another."""
    files = tuple(f"numpy/{name}" for name in FILES[way])
    return Result({name: end for name, end in result.outcomes.items() if name.startswith(files)}, result.pooled)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """Every way at the same time, each in a process of its own."""
    folder = tmp_path_factory.mktemp("suite")
    runs = {way: Run(way, folder / way, there(way), "tests.creation.numpy_plugin") for way in FILES}
    try:
        return {way: run.finish() for way, run in runs.items()}
    finally:
        for run in runs.values():
            run.stop()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("way", ["install", "current"])
def test_every_test_ends_alike(results: dict[str, Result], way: str) -> None:
    plain = of(results["plain"], way)
    assert list(plain.outcomes.values()).count("passed") > 5_000
    assert way == "current" or results[way].pooled["allocations"] > 1_000
    found = differing(plain, results[way])
    assert [(name, *end) for name, end in found.items() if not any(known in name for known in OF_FUNCTIONS)] == []
