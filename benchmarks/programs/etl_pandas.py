"""Daily files of sales, each of a different length: parsed, cleaned, joined, aggregated, and collected."""

import sys

import numpy as np
import pandas as pd

DAYS, PRODUCTS, SHOPS = 24, 2_000, 60


def extract(random: np.random.Generator) -> pd.DataFrame:
    """Return the records of one day, some of them faulty."""
    rows = int(random.integers(20_000, 150_000))
    return pd.DataFrame(
        {
            "product": random.integers(0, PRODUCTS + 5, rows),
            "shop": random.integers(0, SHOPS, rows),
            "minute": random.integers(0, 1440, rows),
            "count": random.poisson(2.0, rows),
            "discount": np.where(random.random(rows) < 0.1, np.nan, random.beta(1, 8, rows)),
        }
    )


def transform(day: pd.DataFrame, products: pd.DataFrame) -> pd.DataFrame:
    """Clean, join, derive."""
    day = day[day["count"] > 0].drop_duplicates()
    day = day.fillna({"discount": 0.0})
    day = day.merge(products, on="product", how="inner")
    day["revenue"] = day["count"] * day["price"] * (1.0 - day["discount"])
    day["hour"] = day["minute"] // 60
    day["rank"] = day.groupby("shop")["revenue"].rank(pct=True)
    return day[day["rank"] > 0.05].sort_values(["shop", "minute"])


def run(days: int = DAYS) -> float:
    """Process all days, and aggregate them."""
    random = np.random.default_rng(5)
    products = pd.DataFrame(
        {
            "product": np.arange(PRODUCTS),
            "price": random.lognormal(2.0, 0.7, PRODUCTS),
            "category": random.integers(0, 30, PRODUCTS),
        }
    )
    summaries: list[pd.DataFrame] = []
    for number in range(days):
        day = transform(extract(random), products)
        hourly = day.pivot_table(values="revenue", index="hour", columns="category", aggfunc="sum", fill_value=0.0)
        summaries.append(hourly.stack().rename("revenue").reset_index().assign(day=number))
    everything = pd.concat(summaries, ignore_index=True)
    trend = everything.groupby(["category", "day"])["revenue"].sum().unstack()
    smooth = trend.T.rolling(5, min_periods=1).mean()
    return float(smooth.to_numpy().std() + everything["revenue"].sum())


if __name__ == "__main__":
    print(run(*map(int, sys.argv[1:])))
