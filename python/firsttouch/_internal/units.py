"""Bytes, durations, shares and counts, formatted for people; small tables for notebooks."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_DURATIONS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def size(amount: float, decimals: int = 2) -> str:
    """Format a number of bytes: "1.25 GiB"."""
    step = min(max(int(abs(amount)).bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    text = f"{amount / (1 << 10 * step):,.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {_UNITS[step]}"


def seconds(amount: float) -> str:
    """Format a duration with three significant digits: "1.25 s", "12.3 ms"."""
    if not amount:
        return "0 s"
    unit, name = next((each for each in _DURATIONS if amount >= each[0]), _DURATIONS[-1])
    return f"{digits(amount / unit)} {name}"


def digits(value: float) -> str:
    """Format a number with three significant digits and no exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share(part: float, whole: float) -> str:
    """Format a part as a percentage, with one decimal below 10 % and above 90 %."""
    percent = 100 * part / whole if whole else 0.0
    decimals = 0 if 10 <= percent <= 90 or percent in (0, 100) else 1
    return f"{percent:.{decimals}f} %".replace("100.0", "100")


def shares(low: float, high: float, whole: float) -> str:
    """Format a range of parts as percentages, both with one decimal if the lower is below 10 %: "36 to 94 %"."""
    decimals = 0 if low >= whole / 10 else 1
    return f"{100 * low / whole:.{decimals}f} to {100 * high / whole:.{decimals}f} %"


def count(number: int, noun: str) -> str:
    """Format a count with its noun: "1 array", "1,200 arrays"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rate(bytes_per_second: float) -> str:
    """Format a bandwidth in powers of ten, as is usual for bandwidths."""
    return f"{digits(bytes_per_second / 1e9)} GB/s"


def times(ratio: float) -> str:
    """Format a ratio: "2.50 times", with two digits below one."""
    return f"{digits(ratio) if ratio >= 1 else format(ratio, '.2g')} times"


def listed(words: "Sequence[str]") -> str:
    """Join words as `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def table(title: str, rows: "Iterable[tuple[str, ...]]") -> str:
    """Return rows of texts, the first of each a label, as a table in HTML."""
    from html import escape  # it loads all entities that there are

    cells = (
        f"<th>{escape(label)}</th>" + "".join(f"<td>{escape(text)}</td>" for text in rest) for label, *rest in rows
    )
    return f"<table><caption>{escape(title)}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
