"""Bytes, seconds, counts and shares as people read them."""

_STEPS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(amount: float) -> str:
    """Say a number of bytes in the largest unit that leaves at least one: "1.25 GiB"."""
    step = 0
    while abs(amount) >= 1024 and step < len(_STEPS) - 1:
        amount /= 1024
        step += 1
    return f"{amount:,.{0 if amount == int(amount) else 2}f} {_STEPS[step]}"


def seconds(amount: float) -> str:
    """Two decimals for what a person would wait for, milliseconds below."""
    return f"{amount:,.2f} s" if amount >= 1 else f"{amount * 1000:,.0f} ms"


def share(part: float, whole: float) -> str:
    """Say a part as a percentage, with a decimal where it is small or nearly all."""
    percent = 100 * part / whole if whole else 0.0
    decimals = 0 if 10 <= percent <= 90 or percent in (0, 100) else 1
    return f"{percent:.{decimals}f} %".replace("100.0", "100")
