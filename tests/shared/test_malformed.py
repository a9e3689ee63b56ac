"""Handles that were corrupted or forged: an error, never a crash."""

import json
import pickle
import random
from typing import Any

import pytest

import firsttouch as ft
from firsttouch import sharing
from tests.programs import ask


@pytest.mark.parametrize("size", [2**30, 2**62, 2**64 - 1, 0])
def test_a_size_that_exceeds_the_file_is_refused(size: int) -> None:
    """Else what lies beyond it would be a SIGBUS."""
    found = ask(f"""
        import json
        from firsttouch import sharing
        a = ft.shared(1000)
        remake, (place, words, offset, shape, strides, dtype, write) = a.__reduce_ex__(5)
        sharing._mapped.clear()
        try:
            big = remake(place, (*words[:3], {size}, *words[4:]), 0, ({min(size, 2**40)} // 8,), None, dtype, write)
            found = float(big[-1])
        except ft.sharing.SharedArrayError as error: found = str(error)
        sharing.arrive(place, words, offset, shape, strides, dtype, write)
        print(json.dumps(found))
    """)
    assert "not a valid handle" in found


@pytest.mark.parametrize("page", [3, 4097, 12288, 2**40, 2**63, 2**64 - 1])
def test_a_page_that_is_none_is_refused(page: int) -> None:
    a = ft.shared(1000)
    reduced: Any = a.__reduce_ex__(5)
    remake, (place, words, *rest) = reduced
    sharing._mapped.clear()
    with pytest.raises(ft.sharing.SharedArrayError, match="not a valid handle"):
        remake(place, (*words[:4], page, words[5]), *rest)
    remake(place, words, *rest)


def test_objects_would_be_addresses() -> None:
    a = ft.shared(1000)
    reduced: Any = a.__reduce_ex__(5)
    remake, (place, words, offset, shape, strides, _, write) = reduced
    with pytest.raises(ft.sharing.SharedArrayError, match="not a valid handle"):
        remake(place, words, offset, shape, strides, __import__("numpy").dtype(object), write)
    remake(*reduced[1])


_ODD: list[object] = [
    None,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**64,
    1e300,
    "",
    "x" * 100,
    b"\0",
    (),
    (1, 2),
    [],
    {},
    object,
    "\0/../..",
    True,
]


def test_anything_in_the_place_of_anything() -> None:
    chance = random.Random(7)
    a = ft.shared((20, 30))
    reduced: Any = a[1::2, ::-3].__reduce_ex__(5)
    remake, (place, words, *rest) = reduced
    survived = 0
    for turn in range(3_000):
        parts = [list(place), list(words[:5]), list(words[5]), rest[:]]
        for _ in range(chance.randint(1, 3)):
            part = chance.choice(parts)
            part[chance.randrange(len(part))] = chance.choice(_ODD)
        ticket = chance.choice(_ODD) if chance.random() < 0.05 else tuple(parts[2])
        given: list[Any] = [tuple(parts[0]), (*parts[1], ticket), *parts[3]]
        if chance.random() < 0.1:
            given[chance.randrange(len(given))] = chance.choice(_ODD)
        if turn % 3 == 0:
            sharing._mapped.clear()
        try:
            found = remake(*given)
        except (ft.sharing.SharedArrayError, MemoryError):
            continue
        survived += 1
        assert found.size == 0 or found.max() == found.min() == 0
    assert survived > 5
    remake(place, words, *rest)


def test_damaged_pickles_never_crash() -> None:
    """Of the bytes that are the handle's: others could name any function, as in every pickle."""
    ended = ask("""
        import json, pickle, random
        from firsttouch import sharing
        chance = random.Random(3)
        a = ft.shared((20, 30))
        reduced = a.__reduce_ex__(5)
        class Safe(pickle._Unpickler):  # in C, a damaged memo index clears gigabytes
            def find_class(self, module, name):
                if (module, name) in {("firsttouch.sharing", "arrive"), ("numpy", "dtype")}:
                    return super().find_class(module, name)
                raise pickle.UnpicklingError(name)
        import io
        good = pickle.dumps(a, 5)
        kinds = set()
        for turn in range(1_500):
            bad = bytearray(good)
            for _ in range(chance.randint(1, 4)):
                bad[chance.randrange(len(bad))] = chance.randrange(256)
            if turn % 3 == 0: bad = bad[:chance.randrange(len(bad))]
            if turn % 2: sharing._mapped.clear()
            try:
                found = Safe(io.BytesIO(bytes(bad))).load()
                if isinstance(found, np.ndarray) and found.size: found.flat[0], found.flat[-1]
            except ft.sharing.SharedArrayError: kinds.add("shared")
            except Exception as error: kinds.add(type(error).__name__)
        pickle.loads(good)
        sharing.arrive(*reduced[1])
        print(json.dumps(sorted(kinds)))
    """)
    assert "shared" in ended
    assert json.dumps(ended)


def test_the_pickle_of_an_array_is_still_small() -> None:
    assert len(pickle.dumps(a := ft.shared(1000))) < 1000
    assert pickle.loads(pickle.dumps(a)).shape == (1000,)
