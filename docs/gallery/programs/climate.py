"""Temperatures of a reanalysis with xarray: climatology, anomalies, and the warming of each decade."""

import sys

import numpy as np
import pandas as pd
import xarray as xr


def reanalysis(years, random):
    """Return monthly temperatures on a grid of one degree: seasons, a trend, and weather."""
    time = pd.date_range("1980-01", periods=12 * years, freq="MS")
    lat, lon = np.arange(-89.5, 90), np.arange(0.5, 360)
    season = np.cos(2 * np.pi * (time.month.to_numpy() - 7) / 12)[:, None, None]
    trend = 0.02 * np.arange(len(time))[:, None, None] / 12
    climate = 28 - 45 * np.sin(np.radians(lat))[:, None] ** 2 + 12 * np.sin(np.radians(lat))[:, None] * season
    weather = random.normal(scale=1.5, size=(len(time), lat.size, lon.size))
    coordinates = {"time": time, "lat": lat, "lon": lon}
    return xr.DataArray(climate + trend + weather, coordinates, ("time", "lat", "lon"), name="t2m")


years = int(sys.argv[1]) if len(sys.argv) > 1 else 10
temperature = reanalysis(years, np.random.default_rng(3))
monthly = temperature.groupby("time.month")
anomaly = monthly - monthly.mean("time")
standardized = anomaly.groupby("time.month") / monthly.std("time")

weights = np.cos(np.radians(temperature.lat))
world = anomaly.weighted(weights).mean(("lat", "lon"))
smooth = anomaly.rolling(time=12, center=True).mean()
decade = 10 * 365.25 * 86_400e9  # nanoseconds, in which xarray fits
warming = decade * world.polyfit("time", 1).polyfit_coefficients.sel(degree=1)
extreme = (abs(standardized) > 2).groupby("time.year").mean().weighted(weights).mean(("lat", "lon"))

print(f"{temperature.sizes['time']} months, {temperature.nbytes / 2**20:.0f} MiB")
print(f"warming {float(warming):.3f} K in ten years; {float(extreme.mean()):.2%} of the months are extreme")
print(f"warmest year around {str(smooth.mean(('lat', 'lon')).idxmax().values)[:7]}")
