"""What figures allow to conclude, how many rounds there are, the contenders' environments, outputs, and reports."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firsttouch.tools import preload
from firsttouch.tools.comparison import FEWEST, MOST, Outcome, Row, compare
from firsttouch.tools.comparison import difference as first_difference
from firsttouch.tools.measuring import contenders as candidates
from firsttouch.tools.measuring.contenders import TUNED, Contender
from firsttouch.tools.measuring.processes import Run
from firsttouch.tools.measuring.statistics import Estimate, difference, estimate
from firsttouch.tools.verdict import Advice, judged

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


def advice(speedups: dict[str, float | list[float]], default: Sequence[float] = (1.0,) * 10, pool: float = 1) -> Advice:
    """What is said of contenders that are so many times as fast in each round; the pool needs `pool` processor time."""
    times = {"the default": list(default), "the same again": list(default)[::-1]}
    for name, factor in speedups.items():
        factors = factor if isinstance(factor, list) else [factor] * len(default)
        times[name] = [wall / each for wall, each in zip(default, factors, strict=True)]
    rows = [
        Row(
            Contender(name, TUNED if name == "tuned glibc" else {}, install=name in OURS),
            [
                Run(wall, 0.9 * (pool if name in speedups else 1), 0.1, 0, (88 if name in OURS else 122) << 20, 0)
                for wall in each
            ],
            left=34 << 20 if name in OURS else None,
        )
        for name, each in times.items()
    ]
    return judged(Outcome(rows, len(default), "", 1.0))


LOW: list[float] = [0.95] * 7 + [1.5, 1.5, 0.9]
GIVEN = (
    "Unlike it, pool() has a peak of 88 MiB instead of 122 MiB, keeps 34 MiB of it at the end and needs no"
    " environment variables."
)
NOISY = [1.0, 2.0, 1.1, 1.9, 1.0, 2.2]


@pytest.mark.parametrize(
    ("speedups", "said"),
    [
        ({"pool()": 1.01}, ["No difference: pool() (1.01 times) as fast as the default; equals may seem 2 % apart."]),
        ({"pool()": 1.62}, ["pool() is faster here: 1.62 times as fast as the default (95 %: 1.62 to 1.62)."]),
        ({"pool()": 0.8}, ["pool() is slower here: it takes 25 % (95 %: 25 to 25) longer than the default."]),
        ({"pool()": 1.7, "tuned glibc": 1.69}, ["pool() is faster", "tuned glibc is faster", GIVEN]),
        ({"pool()": 1.7, "tuned glibc": 1.3}, ["pool() is faster", "tuned glibc is faster"]),
        ({"pool()": 0.5, "tuned glibc": 1.3}, ["pool() is slower", "tuned glibc is faster", GIVEN]),
        (
            {"tcmalloc preloaded": 1.2, "guarded()": 0.5, "pool()": 1.0},
            ["No difference: pool() (1.00 times)", "tcmalloc preloaded is faster here: 1.20", "guarded() is slower"],
        ),
        ({"pool()": LOW}, ["It is not known whether pool() is faster: 0.95 times as fast as the default (95 %: 0.9"]),
        ({}, ["No conclusion: every contender had a failed run."]),
    ],
    ids=str,
)
def test_sentences(speedups: dict[str, float | list[float]], said: list[str]) -> None:
    found = advice(speedups).sentences
    assert len(found) == len(said)
    assert all(sentence.startswith(words) for sentence, words in zip(found, said, strict=True)), found


def test_who_is_faster_and_slower_is_named_the_fastest_first() -> None:
    found = advice({"pool()": 1.62, "mimalloc()": 1.2, "guarded()": 0.5, "tuned glibc": 0.9})
    assert (found.faster, found.slower) == (("pool()", "mimalloc()"), ("tuned glibc", "guarded()"))
    few = advice({"pool()": 5.0}, [1.0] * 4)
    assert (few.faster, "4 runs" in few.sentences[0]) == ((), True)


@pytest.mark.parametrize(
    ("speedup", "default", "pool", "said"),
    [
        (1.0, NOISY, 0.7, "By processor time, pool() needs 0.73 times the default's."),
        (1.0, NOISY, 1.01, None),
        (2.0, (1.0,) * 10, 1.01, None),
        (2.0, (1.0,) * 10, 1.5, "By processor time, pool() needs 1.45 times the default's."),  # on a second processor
    ],
)
def test_processor_time_is_named_where_it_tells_more(
    speedup: float, default: Sequence[float], pool: float, said: str | None
) -> None:
    _, *more = advice({"pool()": speedup}, default, pool).sentences
    assert len(more) == (said is not None)
    assert more == [] or more[0].startswith(said or "")


@pytest.mark.parametrize("rounds", [5, 7, 10, 21])
def test_equals_seem_to_differ_in_one_of_twenty_comparisons(rounds: int) -> None:
    draws = np.random.default_rng(3)
    turns, missed = 400, 0
    for _ in range(turns):
        first, second = np.exp(draws.normal(0.0, 0.05, (2, rounds)))
        found = estimate(list(first / second))
        assert found.low <= found.value <= found.high
        missed += not found.low <= 1 <= found.high
    assert missed / turns < 0.085  # the sign test's interval for five is one of 93.75 %; two deviations of chance


@pytest.mark.parametrize(
    ("figures", "interval"),
    [([3.0], (3, 3, 3)), ([5, 1, 2, 3, 4], (3, 1, 5)), (range(1, 11), (5.5, 2, 9)), (range(1, 101), (50.5, 41, 60))],
)
def test_an_interval_lies_between_two_figures(figures: Any, interval: tuple[float, ...]) -> None:
    shuffled = random.Random(1).sample(list(figures), len(figures))
    assert estimate(shuffled) == Estimate(*map(float, interval))


class Pretended:
    """A program of which each run takes so long by a clock that nothing else moves."""

    program = "it"

    def __init__(self, seconds: float, later: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds, self.later, self.now, self.said = seconds, later, 0.0, list[str]()
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def run(self, contender: Contender, judged: Row | None = None) -> Run:
        if self.now == 0:  # nothing is cached yet
            self.now += 3 * self.seconds
            return Run(self.seconds, self.seconds, 0, 0, 0, 0)
        lasted = self.seconds * (1 if judged else self.later)
        self.now += lasted
        if judged and contender == Contender("fails"):
            judged.failure = "it is left out"
        return Run(lasted, lasted, 0, 0, 0, 0)

    def say(self, text: str) -> None:
        self.said.append(text)

    def done(self, part: float) -> None:
        assert 0 <= part <= 1


@pytest.mark.parametrize(
    ("one_run", "later", "runs", "rounds", "announced"),
    [
        (1.0, 1.0, None, 13, "about 53.0 s to go."),
        (1.0, 2.0, None, 6, "about 53.0 s to go."),  # the machine got busy
        (1.0, 0.5, None, 26, "about 53.0 s to go."),
        (30.0, 1.0, None, FEWEST, "about 600 s to go."),
        (0.01, 1.0, None, MOST, "about 4.00 s to go."),
        (30.0, 1.0, 3, 3, "3 runs of each, about 360 s to go."),
    ],
)
def test_it_takes_as_long_as_it_announced(
    one_run: float, later: float, runs: int | None, rounds: int, announced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a quarter; a contender that is left out takes no time."""
    program = Pretended(one_run, later, monkeypatch)
    five = [Contender(name) for name in ("a", "b", "c", "fails", "d")]
    found = compare(program, five, runs, program)  # type: ignore[arg-type]
    assert found.rounds == rounds
    assert program.said[-1] == announced
    to_go = float(announced.partition("about ")[2].split()[0])
    assert found.rounds * 4 * one_run * later == pytest.approx(to_go, rel=0.25)


@pytest.mark.linux("LD_PRELOAD")
def test_programs_in_any_language_are_compared_by_their_malloc() -> None:
    few, _ = candidates.chosen(False, [], any_program=True)
    names = ["the default", "the same again", "preloaded pool", "tuned glibc", "huge tuned glibc"]
    assert [one.name for one in few] == names
    told = candidates.environment(candidates.PRELOADED, "/x")
    assert (told["LD_PRELOAD"], told["FIRSTTOUCH_PRELOAD"]) == (str(preload.FILE), "quiet=1 json=/x/%p.json")
    assert "FIRSTTOUCH_RUN" not in told
    assert candidates.how(candidates.PRELOADED, ["./a b"], False) == "firsttouch run './a b'"
    assert candidates.how(candidates.PRELOADED, ["a.py"], True) == "firsttouch run --all a.py"


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
    assert "LD_PRELOAD" not in default
    assert candidates.left_out() == ["FIRSTTOUCH_RUN", "LD_PRELOAD", "MALLOC_TRIM_THRESHOLD_", "_RJEM_MALLOC_CONF"]
    library = candidates.environment(Contender("x preloaded", {"LD_PRELOAD": "/lib/x.so"}))
    assert library["LD_PRELOAD"] == "/lib/x.so"
    assert json.loads(candidates.environment(candidates.POOL)["FIRSTTOUCH_RUN"]) == {"quiet": True}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (b"same\none\n", b"same\ntwo\n", r"line 2 is 'two\n' instead of 'one\n'"),
        (b"", b"two\n", r"line 1 is 'two\n' instead of missing"),
        (b"one\ntwo\n", b"one\n", r"line 2 is missing instead of 'two\n'"),
        (b"\xff\n", b"\xfe\n", r"line 1 is '\\xfe\n' instead of '\\xff\n'"),
        (b"same\n", b"same\n", None),
        (b"one\n", b"one", r"line 1 is 'one' instead of 'one\n'"),
    ],
)
def test_the_first_line_that_differs(tmp_path: Path, first: bytes, second: bytes, said: str | None) -> None:
    (tmp_path / "a").write_bytes(first)
    (tmp_path / "b").write_bytes(second)
    assert first_difference(tmp_path / "a", tmp_path / "b") == said


# --- Whether firsttouch served a program, according to the reports of its processes.

SERVED = {
    "pooled": True,
    "pool": {"allocations": 5},
    "allocator": None,
    "numpy": "2",
    "not_pooled_because": None,
    "resident_bytes": {"now": 34, "peak": 88},
}
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
    row = Row(candidates.POOL)
    row.judge(tmp_path, python=True)
    assert row.failure == failure
    assert row.left == (34 if any(isinstance(report, dict) and report["pooled"] for report in reports) else None)
    assert (row.remark is None) == (remark is None)
    assert (remark or "") in (row.remark or "")
