"""Rules of retention on traces made by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.retention.flows import Flow, flows
from benchmarks.retention.rules import EPOCH, SLACK, Fixed, Learned
from benchmarks.retention.simulation import simulate
from benchmarks.retention.spans import Region
from benchmarks.tasks.retention import record

MIB, SECOND = 1 << 20, 1_000_000


def number(value: int) -> bytes:
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def trace(*events: tuple[int, ...]) -> bytes:
    """Encode a trace: each event is a tag and its operands."""
    head = b"\x89FTRC\r\n\x1a" + number(1) + number(1) + number(2) + b"as" + number(1) + b"x"
    return head + b"".join(number(operand) for event in events for operand in event) + number(7)


def test_a_trace_is_read_as_what_is_taken_and_given_back() -> None:
    data = trace(
        (4, 1),  # another thread
        (5, 17, 1, ord("f")),  # a line
        (1, 16_383),  # block 0: NumPy's own
        (1 | 8, 250, 16_384),  # block 1, 250 us later
        (1 | 16, 3 * MIB),  # block 2: zeroed, so on base pages
        (1 | 8 | 32, 300, 2 * MIB, 1, 5, 9),  # block 3, with its line and pages
        (3, 1, 5 * MIB),  # block 1 is resized
        (2 | 32, 2, 768),
        (1, 20_000),  # block 2 again
        (2, 0),
        (6, 3, 512),  # lives at the end
        (2 | 8, 10, 2),
    )
    assert list(flows(data)) == [
        Flow(250, 0, 16_384, 1),
        Flow(250, 0, 3 * MIB, 2),
        Flow(550, 1, 2 * MIB, 3),
        Flow(550, 0, -16_384, 1),
        Flow(550, 1, 5 * MIB, 1),
        Flow(550, 0, -3 * MIB, 2),
        Flow(550, 0, 20_000, 2),
        Flow(560, 0, -20_000, 2),
    ]
    with pytest.raises(ValueError, match="not a trace"):
        list(flows(b"something else"))


def test_a_recorded_program_is_read_to_its_end(tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(3):
            np.ones(1 << 17)

    file = tmp_path / "t.ft"
    record(program, str(file))
    sizes = [flow.size for flow in flows(file.read_bytes())]
    assert sizes == [MIB, -MIB] * 3


def turns(count: int, pause: int) -> Iterator[Flow]:
    """Yield turns in which 40 MiB of one region are used, then of the other, beside 60 MiB that stay."""
    yield Flow(0, 0, 60 * MIB, 0)
    for turn in range(count):
        for region in (0, 1):
            yield from (Flow(turn * pause, region, sign * 40 * MIB, 1) for sign in (1, -1))


def test_what_a_bound_gives_back_is_faulted_in_again() -> None:
    kept = simulate(turns(10, 20_000), Fixed("whole", 1.0))
    assert (kept.again, kept.peak_active, kept.peak_held) == (0, 100 * MIB, 140 * MIB)
    tight = simulate(turns(10, 20_000), Fixed("tenth", 0.1))
    assert 9 * 2 * 25 * MIB < tight.again <= 9 * 2 * 40 * MIB
    assert tight.peak_held < 140 * MIB


def test_the_rule_of_the_pool_learns_what_is_regretted() -> None:
    first, more = (simulate(turns(count, 20_000), Learned("pool", 0.1, most=0.35)) for count in (6, 30))
    assert 0 < first.again == more.again < 9 * 25 * MIB
    capped = simulate(turns(30, 20_000), Learned("pool", 0.1))  # a quarter is too little here
    assert capped.again > 20 * MIB
    assert capped.peak_held <= 1.35 * 100 * MIB + SLACK


def test_a_pause_that_was_longer_than_decay_is_learned() -> None:
    used = [Flow(int(n * 1.5 * SECOND), 0, sign * 64 * MIB, 0) for n in (0, 1, 2, 3, 9) for sign in (1, -1)]
    assert simulate(used, Fixed("fixed", 0.1)).again == 4 * 64 * MIB
    assert simulate(used, Learned("pool", 0.1)).again == 2 * 64 * MIB
    assert simulate(used, Fixed("long", 0.1, 10.0)).again == 0


def test_idle_bytes_are_counted_as_long_as_they_are_held() -> None:
    once = [Flow(0, 0, 8 * MIB, 0), Flow(0, 0, -8 * MIB, 0), Flow(4 * SECOND, 0, 20_000, 0)]
    found = simulate(once, Fixed("tenth", 0.1))
    assert (found.peak_idle, found.idle) == (8 * MIB, 8 * MIB / 4)


def test_spans_are_split_joined_and_purged_in_whole_pages() -> None:
    region = Region(huge=True)
    assert [region.take(block, 3 * MIB - 5) for block in (0, 1, 2)] == [(3 * MIB, 3 * MIB)] * 3
    assert region.give(1, tick=5) == 3 * MIB
    assert region.take(3, MIB) == (MIB, 0)  # the first third of the hole
    assert region.purge(4, float("inf")) == 0  # too young
    assert region.purge(5, float("inf")) == 2 * MIB  # the page from 4 to 6 MiB
    assert region.take(4, 2 * MIB) == (2 * MIB, 2 * MIB)
    for block in (0, 2, 3, 4):
        region.give(block, tick=6)
    assert region.take(5, 9 * MIB) == (9 * MIB, 0)  # joined again


def test_the_constants_are_those_of_the_pool() -> None:
    text = (Path(__file__).parents[2] / "crates/firsttouch/src/adaptors/pool/retention.rs").read_text()
    rule = Learned("pool", 0.1)
    expected = {
        "SLACK: usize": f"{SLACK >> 20} << 20",
        "EXTRA_MAX: usize": f"{1 / rule.most:g}",
        "PATIENT_EPOCHS: u8": f"{rule.longer * SECOND / EPOCH:g}",
    }
    for name, value in expected.items():
        assert re.search(rf"const {name} = {re.escape(value)};", text), name
