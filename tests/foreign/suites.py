"""Which parts of which packages' tests are run: those that make many arrays, in a few minutes each."""

SUITES: dict[str, tuple[str, ...]] = {
    "bottleneck": ("bottleneck/tests",),
    "h5py": ("h5py/tests/test_dataset.py", "h5py/tests/test_slicing.py"),
    "numexpr": ("numexpr/tests/test_numexpr.py",),
    "pandas": ("pandas/tests/groupby/test_groupby.py", "pandas/tests/reshape/merge", "pandas/tests/internals"),
    "pyarrow": ("pyarrow/tests/test_array.py", "pyarrow/tests/test_pandas.py"),
    "pywt": ("pywt/tests",),
    "scipy": ("scipy/ndimage/tests", "scipy/fft/tests", "scipy/sparse/tests/test_base.py"),
    "sklearn": ("sklearn/cluster/tests", "sklearn/decomposition/tests"),
    "xarray": ("xarray/tests/test_variable.py", "xarray/tests/test_dataarray.py"),
}
ALLOCATORS = ("install", "mimalloc()", "guarded()", "filled(pool())")
