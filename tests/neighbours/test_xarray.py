"""xarray objects built on our arrays keep their memory; its coordinates make arrays that begin at other indices."""

from tests.neighbours.needs import needs
from tests.programs import run

pytestmark = needs("xarray")


def test_arrays_and_data_sets_share_memory_also_with_shifted_indices() -> None:
    """What OffsetArrays is to Julia: indices from -5 to 5 over memory of one's choice, without a copy."""
    run(
        """
        import xarray as xr
        x = ft.aligned(64).zeros((11, 100))
        x[:] = np.arange(1100).reshape(11, 100)
        array = xr.DataArray(x, dims=("i", "j"))
        data = xr.Dataset({"u": array, "v": (("i", "j"), x)})
        for values in (array.values, array.T.values, array[2:5].values, data.u.values, data.v.values):
            assert np.shares_memory(values, x)
        array[3, 4] = -1
        assert x[3, 4] == -1
        shifted = xr.DataArray(x, dims=("i", "j"), coords={"i": np.arange(-5, 6), "j": np.arange(1, 101)})
        assert shifted.loc[-5, 1] == 0 and shifted.loc[5, 100] == 1099 and shifted.sel(i=0, j=50) == 549
        part = shifted.sel(i=slice(-1, 1))
        assert part.i.values.tolist() == [-1, 0, 1] and np.shares_memory(part.values, x)
        shifted.loc[{"i": 0}] = 7
        assert (x[5] == 7).all()
        assert shifted.data.ctypes.data % 64 == 0
        # Sums go by index, not by place.
        assert (shifted + part).i.values.tolist() == [-1, 0, 1]
        """
    )
