"""pandas objects built on our arrays keep their memory."""

from tests.neighbours.needs import needs
from tests.programs import run

pytestmark = needs("pandas")


def test_series_and_frames_share_memory_and_work_on_them_is_served() -> None:
    run(
        """
        import pandas as pd
        x = ft.aligned(64).zeros(10_000)
        x[:] = np.arange(10_000)
        series = pd.Series(x, copy=False)
        frame = pd.DataFrame(x.reshape(1000, 10), columns=list("abcdefghij"), copy=False)
        columns = pd.DataFrame({"x": series}, copy=False)
        assert np.shares_memory(series.to_numpy(), x)
        assert np.shares_memory(frame.to_numpy(), x)
        assert np.shares_memory(frame["c"].to_numpy(), x)
        assert np.shares_memory(columns["x"].to_numpy(), x)
        assert np.shares_memory(pd.Index(x, copy=False).to_numpy(), x)
        assert frame["b"].sum() == x[1::10].sum()
        ft.install()
        frame = pd.DataFrame({"key": np.arange(100_000) % 10, "value": np.ones(100_000)})
        assert frame.groupby("key").value.sum().tolist() == [10_000.0] * 10
        product = (frame.value * 2.0).to_numpy()
        owner = product
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        assert repr(ft.get_allocator(owner)).startswith("pool("), ft.get_allocator(owner)
        """
    )
