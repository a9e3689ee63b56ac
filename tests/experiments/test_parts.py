"""Sizes, shuffled cells, and the doubts that are reported."""

from pathlib import Path

import pytest

from _firsttouch_start.units import listed, rate, seconds, share, times
from firsttouch.tools.bench import settings, touch
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.shuffled import Cell, Reply, order_effect, run
from firsttouch.tools.bench.touch import WAYS, Key, every, rows
from firsttouch.tools.measuring import machine, sizes
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.rounds import Call

MIB = 1 << 20


def test_sizes_are_sorted_and_each_once() -> None:
    assert settings.parse("1MiB, 4 KiB,1024KiB,") == (4096, MIB)


def test_sizes_that_do_not_fit_are_refused_with_what_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "available", lambda: 10 << 30)
    settings.check((2 << 30,), "triad", 3)
    with pytest.raises(ValueError, match=r"triad: 4 GiB is too large: 3 such arrays .* 10 GiB are free; up to 2 GiB"):
        settings.check((MIB, 4 << 30), "triad", 3)
    settings.check((1 << 50,), "numa", 0)


def test_a_user_s_sizes_win() -> None:
    assert settings.chosen(Settings(sizes=(8,)), (16,), (32,), 1) == ([8], [])
    assert settings.chosen(Settings(quick=True), (16,), (32,), 1)[0] == [32]


def test_cells_run_in_processes_of_their_own_once_a_round() -> None:
    call = Call("firsttouch.tools.bench.tasks.faults", "identity")
    done: list[float] = []
    replies = run({"a": Cell(NUMPY, call, 0), "b": Cell(NUMPY, call, 0)}, 2, done.append)
    assert len({reply.values["pid"] for reply in replies}) == 4
    assert sorted((reply.round, reply.key) for reply in replies) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert done == [0.25, 0.5, 0.75, 1.0]


def test_the_effect_of_the_order_is_late_against_early() -> None:
    replies = [Reply(key, 0, after, {"rate": 2.0 if after else 1.0}) for key in "abc" for after in (0.0, 0.6)]
    effect = order_effect(replies, "rate")
    assert effect is not None
    assert (effect.value, effect.low, effect.high) == (2.0, 2.0, 2.0)
    assert order_effect(replies[:1], "rate") is None


def found_rates() -> dict[Key, dict[str, float]]:
    rates = dict.fromkeys(WAYS, 2e9) | {"memset, memory that exists": 9e9, "memcpy, memory that exists": 5e9}
    cell = {"bytes": MIB, "missing": 0, "huge": 0, "fallbacks": 0}
    return {("settings", row, "glibc"): {**cell, "rate": value} for row, value in rates.items()}


def test_plausible_rates_are_not_doubted() -> None:
    assert touch.doubts(found_rates()) == [
        "Huge page faults that the kernel answered with small pages, machine-wide: 0."
    ]


def test_a_memset_of_new_memory_that_beats_one_of_old_is_doubted() -> None:
    found = found_rates()
    found["settings", "malloc, memset", "glibc"]["rate"] = 30e9
    assert any("Implausible" in text and "malloc, memset" in text for text in touch.doubts(found))


def test_a_memset_far_above_memcpy_is_doubted() -> None:
    found = found_rates()
    found["settings", "memset, memory that exists", "glibc"]["rate"] = 50e9
    assert any("more than 3 times" in text for text in touch.doubts(found))


def test_work_that_was_not_done_is_doubted() -> None:
    found = found_rates()
    found["settings", "malloc, touched", "glibc"]["missing"] = MIB // 2
    assert any("Not written" in text and "50 %" in text for text in touch.doubts(found))


def test_rows_go_from_one_thread_to_all() -> None:
    assert list(rows(1)) == ["touched, 1 thread", "populated, 1 thread"]
    assert rows(6)["populated, 6 threads on one processor"] == (6, 6, 1)
    assert [row for row in rows(6) if row.startswith("touched")] == [
        *(f"touched, {count}" for count in ("1 thread", "2 threads", "4 threads", "6 threads")),
        "touched, 6 threads on one processor",
    ]


def test_settings_of_the_c_library_are_left_out_of_a_quick_run() -> None:
    columns = {key[2] for key in every(MIB, 2, quick=False)}
    assert columns - {key[2] for key in every(MIB, 2, quick=True)} == {
        "never mapped or trimmed",
        "hugetlb=1 (THP)",
        "hugetlb=2 (pool)",
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [(2.5, "2.50 s"), (0.0125, "12.5 ms"), (3.21e-4, "321 us"), (5e-8, "50.0 ns"), (0.0, "0 s")],
)
def test_times_are_told_with_three_digits(value: float, words: str) -> None:
    assert seconds(value) == words


def test_other_figures_are_told_as_people_read_them() -> None:
    assert (rate(19.6e9), times(133.2), times(0.42)) == ("19.6 GB/s", "133 times", "0.42 times")
    assert (share(1, 3), share(0, 0), listed(["a"]), listed(["a", "b", "c"])) == ("33 %", "0 %", "a", "a, b and c")


def test_where_nothing_fits_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "available", lambda: 10 * MIB)
    assert sizes.fitting([MIB, 4 * MIB], 3) == ([MIB], ["Left out for lack of memory: 4 MiB."])
    assert sizes.fitting([], 3) == ([], [])
    with pytest.raises(RuntimeError, match=r"3 arrays of 4 MiB must fit into 60 % of what is free, which is 10 MiB"):
        sizes.fitting([4 * MIB, 8 * MIB], 3)


def test_the_tightest_control_group_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = tmp_path
    for folder, limit, used, cache in [("job", 1000, 900, 0), ("step", 2000, 1950, 1500), ("task", "max", 10, 0)]:
        group = group / folder
        group.mkdir()
        (group / "memory.max").write_text(f"{limit}\n")
        (group / "memory.current").write_text(f"{used}\n")
        (group / "memory.stat").write_text(f"anon 5\ninactive_file {cache}\n")
    monkeypatch.setattr(machine, "cgroup_files", lambda v2, _: (each / v2 for each in [group, *group.parents[:2]]))
    assert machine.cgroup_bound() == (1000, 900)
    assert machine.available() == 100
    (group / "memory.max").write_text("40\n")
    assert machine.available() == 30
