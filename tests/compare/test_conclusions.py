"""What is run, how often, and what the figures allow to conclude, on invented figures and small files."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firsttouch.tools import preload
from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.candidates import environment
from firsttouch.tools.compare.comparison import (
    FEWEST,
    MOST,
    Outcome,
    Row,
    Schedule,
    Wish,
    compare,
    enough,
    planned,
    seconds,
)
from firsttouch.tools.compare.report import LOADED, Advice, judged, loading
from firsttouch.tools.compare.trial import Run, first_difference, speedup, told
from firsttouch.tools.measuring.contenders import TUNED, Contender, mmap_threshold
from firsttouch.tools.measuring.statistics import Estimate, around_median, difference, margin

# --- The conclusions that figures allow, checked on invented figures.

QUIET = Estimate(1.0, 0.995, 1.005)
OURS = ("pool()", "mimalloc()", "guarded()")


@pytest.mark.parametrize(
    ("speedup", "equals", "said"),
    [
        (Estimate(1.01, 1.005, 1.019), QUIET, "none"),  # two per cent are the least
        (Estimate(1.03, 1.01, 1.05), QUIET, "unsure"),
        (Estimate(1.62, 1.55, 1.70), QUIET, "faster"),
        (Estimate(0.80, 0.78, 0.82), QUIET, "slower"),
        (Estimate(0.97, 0.95, 0.99), QUIET, "none"),
        (Estimate(1.10, 1.08, 1.11), Estimate(1.01, 0.9, 1.12), "none"),  # within the noise of equals
    ],
)
def test_the_rule(speedup: Estimate, equals: Estimate, said: str) -> None:
    assert difference(speedup, equals) == said


def test_the_noise_is_also_what_equals_are_off_by() -> None:
    assert margin(QUIET) == 0.02
    assert round(margin(Estimate(0.8, 0.79, 0.81)), 2) == 0.25
    assert round(margin(Estimate(1.25, 1.24, 1.26)), 2) == 0.25


def advice(speedups: dict[str, float | list[float]], default: list[float] | None = None, **processor: float) -> Advice:
    """What is said of contenders that are so many times as fast in each of ten rounds."""
    walls = default or [1.0] * 10
    times = {"the default": walls, "the same again": walls[::-1]}
    for name, factor in speedups.items():
        factors = factor if isinstance(factor, list) else [factor] * len(walls)
        times[name] = [wall / each for wall, each in zip(walls, factors, strict=True)]
    needed = {"the default": 1.0, "the same again": 1.0} | {name: processor.get("pool", 1.0) for name in speedups}
    rows = [
        Row(
            Contender(name, install=name in OURS),
            [Run(wall, 0.9 * needed[name], 0.1 * needed[name], 0, 0, 0, 0) for wall in each],
        )
        for name, each in times.items()
    ]
    return judged(Outcome(rows, len(walls), "", 1.0, []))


@pytest.mark.parametrize(
    ("speedups", "said"),
    [
        ({"pool()": 1.01}, ["No difference: nothing here is faster than the default by more than 2 %."]),
        ({"pool()": 1.62}, ["pool() is faster here: 1.62 times as fast as the default (95 %: 1.62 to 1.62)."]),
        (
            {"pool()": 0.8},
            [
                "Nothing here is faster than the default by more than 2 %.",
                "Slower here: pool() takes 25 % (95 %: 25 to 25) longer than the default.",
            ],
        ),
        (
            {"pool()": 1.3, "tcmalloc preloaded": 1.7},
            [
                "tcmalloc preloaded is faster here: 1.70 times as fast as the default (95 %: 1.70 to 1.70).",
                "The best of firsttouch is pool(): 1.30 times (95 %: 1.30 to 1.30).",
            ],
        ),
        (
            {"pool()": 1.0, "tuned glibc": 1.2},
            [
                "tuned glibc is faster here: 1.20 times as fast as the default (95 %: 1.20 to 1.20).",
                "firsttouch itself gains nothing here.",
            ],
        ),
        (
            {"pool()": 1.62, "tuned glibc": 1.61, "mimalloc()": 1.2},
            [
                "pool() is faster here: 1.62 times as fast as the default (95 %: 1.62 to 1.62).",
                "Not clearly behind it: tuned glibc (1.61 times).",
            ],
        ),
        ({}, ["No conclusion: every contender had a failed run."]),
    ],
    ids=str,
)
def test_sentences(speedups: dict[str, float | list[float]], said: list[str]) -> None:
    assert list(advice(speedups).sentences) == said


def test_who_is_faster_and_slower_is_named_the_most_extreme_first() -> None:
    found = advice({"pool()": 1.62, "mimalloc()": 1.2, "guarded()": 0.5, "tuned glibc": 0.9})
    assert (found.faster, found.slower) == (("pool()", "mimalloc()"), ("guarded()", "tuned glibc"))


def test_an_interval_that_allows_a_gain_is_no_absence_of_one() -> None:
    unsure: list[float] = [1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.9, 0.9, 0.9]
    (said,) = advice({"pool()": unsure}).sentences
    assert said.startswith("No certain difference: pool() is 1.50 times as fast as the default (95 %: 0.9")
    assert said.endswith("More runs, as with --budget 5m, may tell.")
    said = advice({"pool()": unsure, "guarded()": 0.5}).sentences[0]
    assert said.startswith("Nothing here is certainly faster than the default: pool() is 1.50 times")
    (_, processor) = advice({"pool()": unsure}, pool=0.67).sentences
    assert processor == "By processor time, which other programs disturb less, pool() needs 0.67 times the default's."


def test_processor_time_tells_where_the_clock_is_too_noisy() -> None:
    noisy = [1.0, 2.0, 1.1, 1.9, 1.0, 2.2]
    (clock, processor) = advice({"pool()": 1.0}, noisy, pool=0.8).sentences
    assert clock.startswith("No difference beyond the noise")
    assert processor == "By processor time, which other programs disturb less, pool() needs 0.80 times the default's."
    assert len(advice({"pool()": 1.0}, noisy, pool=1.01).sentences) == 1  # nor does it tell anything
    assert len(advice({"pool()": 1.0}, pool=0.8).sentences) == 1  # the clock decides
    assert len(advice({"pool()": 2.0}, pool=1.01).sentences) == 1
    # A second thread makes it faster.
    paid = ("But pool() needs 1.40 times the default's processor time.",)
    assert advice({"pool()": 2.0}, pool=1.4).sentences[1:] == paid


def test_few_runs_are_no_ground_for_advice() -> None:
    found = advice({"pool()": 5.0}, [1.0] * 4)
    assert (found.faster, "4 runs" in found.sentences[0]) == ((), True)


# --- Confidence intervals have their nominal coverage on simulated times whose true values are known.


def timed(walls: np.ndarray) -> list[Run]:
    return [Run(float(wall), 0.0, 0.0, 0, 0, 0, 0) for wall in walls]


@pytest.mark.parametrize("rounds", [5, 7, 10])
def test_equals_seem_to_differ_in_one_of_twenty_comparisons(rounds: int) -> None:
    random = np.random.default_rng(3)
    turns, missed = 400, 0
    for _ in range(turns):
        first, second = np.exp(random.normal(0.0, 0.05, (2, rounds)))
        found = speedup(timed(first), timed(second))
        assert found.low <= found.value <= found.high
        missed += not found.low <= 1 <= found.high
    assert missed / turns < 0.085  # the sign test's interval for five is one of 93.75 %; two deviations of chance


def test_few_figures_have_their_ends_as_an_interval() -> None:
    assert around_median(np.array([3.0])) == (3.0, 3.0)
    assert around_median(np.array([5.0, 1.0, 2.0, 3.0, 4.0])) == (1.0, 5.0)


def test_many_figures_have_an_interval_between_two_of_them() -> None:
    # Of ten, the second to the ninth cover 97.9 %, and the third to the eighth 89.1 %.
    low, high = around_median(np.arange(1.0, 11.0))
    assert 2.0 < low < 3.0
    assert low - 1.0 == pytest.approx(10.0 - high)


@pytest.mark.parametrize("count", [1023, 1024, 10_000])
def test_any_number_of_runs_has_an_interval(count: int) -> None:
    low, high = around_median(np.arange(count, dtype=float))
    middle, wide = (count - 1) / 2, 0.98 * np.sqrt(count)  # as of a normal distribution
    assert low == pytest.approx(middle - wide, rel=0.01)
    assert high == pytest.approx(middle + wide, rel=0.01)


# --- The number of rounds.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90),
        ("90s", 90),
        ("5m", 300),
        ("5 min", 300),
        ("1.5h", 5400),
        ("1h30m", 5400),
        (".5", 0.5),
        ("250ms", 0.25),
    ],
)
def test_times_people_write(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "5 minutes", "-1", "0", "m", "5m soon", "nan", "1e3", "5m5"])
def test_what_is_no_time(text: str) -> None:
    if text == "5m5":  # five minutes and five seconds, as a clock is read
        assert seconds(text) == 305
        return
    with pytest.raises(ValueError, match="not a duration"):
        seconds(text)


def test_the_budget_is_filled() -> None:
    found = planned(1.0, contenders=4, warmups=1, runs=None, budget=60)
    assert 12 <= found.rounds <= 14
    assert 50 < found.expected <= 60
    assert not found.over


def test_a_long_program_gets_the_fewest_runs_and_a_word() -> None:
    found = planned(30.0, contenders=4, warmups=1, runs=None, budget=None)
    assert found.rounds == FEWEST
    assert found.over


def test_a_short_program_does_not_run_forever() -> None:
    assert planned(0.01, contenders=4, warmups=1, runs=None, budget=3600).rounds == MOST


def test_a_number_of_runs_is_kept() -> None:
    found = planned(30.0, contenders=4, warmups=2, runs=3, budget=None)
    assert (found.rounds, found.fixed, found.over) == (3, True, False)
    assert [enough(found, done, 1e9, list) for done in (0, 2, 3)] == [False, False, True]


def test_rounds_end_early_where_all_is_settled_or_time_is_up() -> None:
    found = planned(1.0, contenders=4, warmups=1, runs=None, budget=300)
    settled, wide = Estimate(2.0, 1.99, 2.01), Estimate(1.0, 0.9, 1.1)
    assert enough(found, 10, 50, lambda: [settled, settled])
    assert not enough(found, 10, 50, lambda: [settled, wide])
    assert not enough(found, 4, 1e9, lambda: [settled])
    assert enough(found, 5, 400, lambda: [wide])


def test_preparing_counts() -> None:
    class Slow:
        def first(self, default: object) -> Run:
            time.sleep(0.3)  # as --prepare does
            return Run(0.01, 0.01, 0, 0, 0, 0, 0)

        def run(self, contender: object, check: bool = False) -> None:
            raise KeyboardInterrupt

    class Seen:
        def planned(self, one_run: float, plan: Schedule, contenders: object) -> None:
            plans.append((one_run, plan))

        def done(self, part: float) -> None:
            """Nothing."""

    plans: list[tuple[float, Schedule]] = []
    with pytest.raises(KeyboardInterrupt):
        compare(Slow(), [Contender("a"), Contender("b")], Wish(runs=10), Seen())  # type: ignore[arg-type]
    ((one_run, found),) = plans
    assert one_run == 0.01
    assert found.expected > 6


# --- The environments of the contenders.


def test_the_default_and_its_double_come_first() -> None:
    few, absent = candidates.chosen(False, [])
    assert [one.name for one in few] == ["the default", "the same again", "pool()", "tuned glibc"]
    assert absent == []


def test_everything_is_more_and_nobody_comes_twice() -> None:
    more, absent = candidates.chosen(True, ["pool()", "mimalloc()", "pool(decay=5)", "pool(decay=5)"])
    names = [one.name for one in more]
    assert len(set(names)) == len(names)
    assert {"mimalloc()", "jemalloc()", "pool(decay=5)"} < set(names)
    assert len([name for name in names if name.endswith(" preloaded")]) + len(absent) == 4


def test_programs_in_any_language_are_compared_by_their_malloc() -> None:
    few, _ = candidates.chosen(False, [], any_program=True)
    names = ["the default", "the same again", "pool()", "preloaded pool", "tuned glibc", "tuned glibc, huge pages"]
    assert [one.name for one in few] == names
    told = candidates.environment(candidates.PRELOADED, "/x")
    assert (told["LD_PRELOAD"], told["FIRSTTOUCH_PRELOAD"]) == (str(preload.FILE), "quiet=1 json=/x/%p.json")
    assert "FIRSTTOUCH_RUN" not in told
    assert candidates.how(candidates.PRELOADED, ["./a b"], []) == "firsttouch run './a b'"
    assert candidates.how(candidates.PRELOADED, ["a.py"], ["python3"]) == "firsttouch run --all a.py"


def test_settings_of_the_callers_reach_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setenv("FIRSTTOUCH_RUN", '{"json": "x"}')
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2:/usr/lib/libother.so")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "junk:true")  # of the bundled jemalloc
    monkeypatch.setenv("MINE", "1")
    default = candidates.environment(candidates.DEFAULT)
    assert "MALLOC_TRIM_THRESHOLD_" not in default
    assert "FIRSTTOUCH_RUN" not in default
    assert "_RJEM_MALLOC_CONF" not in default
    assert default["MINE"] == "1"
    assert default["LD_PRELOAD"] == "/usr/lib/libother.so"
    assert candidates.left_out() == ["FIRSTTOUCH_RUN", "LD_PRELOAD", "MALLOC_TRIM_THRESHOLD_", "_RJEM_MALLOC_CONF"]
    library = candidates.environment(Contender("x preloaded", {"LD_PRELOAD": "/lib/x.so"}))
    assert library["LD_PRELOAD"] == "/lib/x.so:/usr/lib/libother.so"
    assert json.loads(candidates.environment(candidates.POOL)["FIRSTTOUCH_RUN"]) == {"quiet": True}


def test_a_contender_alone_can_be_typed() -> None:
    words, python = ["a b.py", "1"], ["python3"]
    assert candidates.how(candidates.POOL, words, python) == "firsttouch run 'a b.py' 1"
    own = Contender("x", install='pool(pages(huge="thp"))')
    assert candidates.how(own, words, python) == "firsttouch run --allocator 'pool(pages(huge=\"thp\"))' 'a b.py' 1"
    tuned = candidates.how(Contender("tuned glibc", TUNED), words, [])
    assert tuned.startswith("MALLOC_TRIM_THRESHOLD_=")
    assert tuned.endswith(" 'a b.py' 1")


@pytest.mark.parametrize(
    ("libc", "most"),
    [(("glibc", "2.17"), 32), (("glibc", "2.34.9000"), 32), (("glibc", "2.35"), 4096), (("", ""), 4096)],
)
def test_old_glibc_takes_no_large_threshold(libc: tuple[str, str], most: int) -> None:
    assert mmap_threshold(libc) == most << 20


# --- The first line in which two outputs differ.


def words(folder: Path, first: bytes, second: bytes) -> str | None:
    (folder / "a").write_bytes(first)
    (folder / "b").write_bytes(second)
    found = first_difference(folder / "a", folder / "b")
    return None if found is None else found.words("here", "there")


@pytest.mark.parametrize("text", [b"", b"\n", b"one\ntwo", b"\x00\xff\n" * 10_000])
def test_equal_outputs(tmp_path: Path, text: bytes) -> None:
    assert words(tmp_path, text, text) is None


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (b"same\none\n", b"same\ntwo\n", r"line 2 is 'one\n' here and 'two\n' there"),
        (b"", b"two\n", r"line 1 is missing here and 'two\n' there"),
        (b"one\ntwo\n", b"one\n", r"line 2 is 'two\n' here and missing there"),
        (b"\xff\n", b"\xfe\n", r"line 1 is '\\xff\n' here and '\\xfe\n' there"),
        (b"one\n", b"one", r"line 1 is 'one\n' here and 'one' there"),
    ],
)
def test_the_first_line_that_differs(tmp_path: Path, first: bytes, second: bytes, said: str) -> None:
    assert words(tmp_path, first, second) == said


def test_a_long_line_is_shown_where_it_differs(tmp_path: Path) -> None:
    said = words(tmp_path, b"a" * 1000 + b"1" + b"b" * 1000, b"a" * 1000 + b"2" + b"b" * 1000)
    assert said is not None
    assert "...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1b" in said
    assert len(said) < 200


# --- Whether firsttouch served a program, according to the reports of its processes.

SERVED = {"pooled": True, "pool": {"allocations": 5}, "allocator": None, "numpy": "2", "not_pooled_because": None}
IDLE = SERVED | {"pool": {"allocations": 0}}
REFUSED = SERVED | {"pooled": False, "pool": None, "not_pooled_because": "no address space"}
WITHOUT = REFUSED | {"numpy": None, "not_pooled_because": None}


@pytest.mark.parametrize(
    ("reports", "failure", "remark"),
    [
        ([SERVED], None, None),
        ([WITHOUT, SERVED, IDLE], None, None),
        ([IDLE], None, "no request for a large block"),
        ([IDLE | {"allocator": "malloc()"}], None, None),
        ([REFUSED, WITHOUT], "not served: no address space", None),
        ([WITHOUT], None, "NumPy was never imported"),
        ([], None, "no process reported"),
        (["half a rep"], None, "no process reported"),
    ],
)
def test_reports(tmp_path: Path, reports: list[Any], failure: str | None, remark: str | None) -> None:
    for number, report in enumerate(reports):
        text = report if isinstance(report, str) else json.dumps(report)
        (tmp_path / f"{number}.json").write_text(text)
    found = told(tmp_path, python=True)
    assert found.failure == failure
    assert (found.remark is None) == (remark is None)
    assert (remark or "") in (found.remark or "")


def test_a_program_of_another_language_that_is_not_served_is_left_out(tmp_path: Path) -> None:
    found = told(tmp_path, python=False)
    assert (found.remark, "no process reported" in (found.failure or "")) == (None, True)


# --- The note on what loading firsttouch takes is about what served programs load.

LOADS = "import sys; print(sorted(name for name in sys.modules if name.partition('.')[0] == 'firsttouch'))"


def modules(code: str, contender: Contender) -> str:
    words = [sys.executable, "-c", f"import numpy; {code}; {LOADS}"]
    return subprocess.run(words, env=environment(contender), capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("install", [True, "mimalloc()", "pool(pages())"])
def test_what_is_timed_is_what_a_program_loads(install: bool | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)  # not the checkout, whose package has no native module
    served = modules("pass", Contender("served", install=install))
    assert served != "[]\n"
    assert modules(LOADED[isinstance(install, str)], Contender("the default")) == served


def test_it_names_both_ways_and_is_left_out_where_nothing_is_served() -> None:
    def said(*installed: bool | str) -> str | None:
        rows = [Row(Contender("one", install=install), [Run(1.0, 0.0, 0.0, 0, 0, 0, 0)]) for install in installed]
        return loading(Outcome(rows, 1, "", 1.0, []))

    assert said(False) is None
    assert " for an expression" not in (said(False, True) or "")
    assert ", in each Python process" in (said(True, "mimalloc()") or "")
    assert " for an expression" in (said(True, "mimalloc()") or "")
