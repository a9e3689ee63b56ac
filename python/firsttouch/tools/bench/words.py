"""Figures as people read them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """A time with its unit, three digits."""
    for unit, word in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= unit:
            return f"{digits(value / unit)} {word}"
    return f"{digits(value * 1e9)} ns"


def rate(bytes_per_second: float) -> str:
    """Bytes per second, in powers of ten as bandwidths are told."""
    return f"{digits(bytes_per_second / 1e9)} GB/s"


def times(ratio: float) -> str:
    """How often; where it is less than once, with two digits."""
    return f"{digits(ratio) if ratio >= 1 else format(ratio, '.2g')} times"


def percent(part: float, whole: float) -> str:
    """A share; none of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def digits(value: float) -> str:
    """Three of them that count, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def listed(words: list[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
