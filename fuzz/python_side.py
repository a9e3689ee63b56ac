"""Fuzz what Python parses: settings of the environment, handles of shared arrays, expressions as Python passes them.

usage: python fuzz/python_side.py [-max_total_time=60] [-seed=N] [CORPUS]

It is guided by coverage where atheris is installed (`pip install atheris`), and else changes good inputs at random.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
import sys
import time

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["firsttouch", "_firsttouch_start"]) if atheris else contextlib.nullcontext():
    import numpy as np

    import firsttouch as ft
    from _firsttouch_start import VARIABLE, settings
    from firsttouch import sharing

KEPT = ft.shared((7, 11), "f4")
GOOD = list(KEPT.__reduce_ex__(5)[1])
SEEDS = [
    b'0{"pid": 1, "json": "a", "quiet": false, "allocator": "pool()", "decay": 1.5}',
    b"1" + repr([*GOOD[:5], "f4", True]).encode(),
    b"1[None, None, 8, (3,), (4,), 'u1', False]",
    b"2limited(pool(pages(huge='2M'), decay=None), '4 GiB')",
    b"31.5 GiB",
]


def read_settings(text: str) -> None:
    """Options that `firsttouch run` passes on."""
    os.environ[VARIABLE] = text
    with contextlib.suppress(ValueError):
        found = settings.load()
        assert isinstance(found, dict)
        json.loads(text)  # no more than JSON is taken


#: Of shapes, data types and the like that are none.
MALFORMED = (TypeError, ValueError, OverflowError, AttributeError, LookupError)


def open_handle(text: str) -> None:
    """Literals in place of the parts of a good handle."""
    try:
        found = ast.literal_eval(text)
        words = found if isinstance(found, (list, tuple)) else [found]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return
    given = [words[at] if at < len(words) and words[at] is not None else part for at, part in enumerate(GOOD)]
    with contextlib.suppress(TypeError, ValueError, SyntaxError):
        given[5] = np.dtype(given[5])
    sharing._mapped.clear()  # so that the memory is opened, as in another process
    try:
        array = sharing.arrive(*given)
    except (ft.sharing.SharedArrayError, MemoryError, *MALFORMED):
        return
    if array.size:  # strides of 0 may make it look larger than it is
        assert array[(0,) * array.ndim] is not None
        assert array[(-1,) * array.ndim] is not None


def make_allocator(text: str) -> None:
    """Expressions, as a string in place of an allocator."""
    try:
        made = ft.filled(text)
    except (ValueError, TypeError, MemoryError, ft.process.UnsupportedError):
        return
    assert repr(made)


def read_size(text: str) -> None:
    """Sizes, as a string."""
    with contextlib.suppress(ValueError, TypeError, MemoryError):
        ft.limited("malloc()", text)


PARSERS = (read_settings, open_handle, make_allocator, read_size)


def one(data: bytes) -> None:
    """The first byte says which parser gets the rest."""
    text = data[1:].decode("utf-8", "surrogateescape").replace("\0", "")
    if data:
        PARSERS[data[0] % len(PARSERS)](text)


def changed(good: bytes, dice: random.Random) -> bytes:
    """Change a good input in a few places."""
    text = bytearray(good)
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(1, len(text) + 1)
        match dice.randrange(4):
            case 0:
                text[at:at] = dice.choice((b"9", b"-1", b"(", b"'", b"None", b"\xff", b"1e999", b"\\u", b"[]"))
            case 1:
                del text[at : at + dice.randrange(4)]
            case 2:
                text[at:at] = text[1 : dice.randrange(2, 20)]
            case _ if at < len(text):
                text[at] = dice.randrange(256)
    return bytes(text)


def main() -> None:
    """Fuzz with atheris, or without."""
    if atheris:
        folder = next((each for each in sys.argv[1:] if not each.startswith("-")), None)
        for number, seed in enumerate(SEEDS if folder else ()):
            with open(os.path.join(str(folder), f"seed-{number}"), "wb") as file:
                file.write(seed)
        atheris.Setup(sys.argv, one)
        atheris.Fuzz()
        return
    options = dict(each[1:].split("=") for each in sys.argv[1:] if each.startswith("-"))
    seed = int(options.get("seed", time.time()))
    dice, end, count = random.Random(seed), time.monotonic() + float(options.get("max_total_time", 60)), 0
    while time.monotonic() < end:
        data = changed(dice.choice(SEEDS), dice)
        count += 1
        try:
            one(data)
        except BaseException:
            print(f"seed {seed}, input {count}: {data!r}")
            raise
    print(f"{count} inputs from seed {seed}, without coverage (atheris is not installed): nothing found")


if __name__ == "__main__":
    main()
