"""The number of rounds."""

import time

import pytest

from firsttouch.tools.compare.comparison import Wish, compare
from firsttouch.tools.compare.runs import Run
from firsttouch.tools.compare.schedule import FEWEST, MOST, Schedule, enough, plan, seconds
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.statistics import Estimate


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
    found = plan(1.0, contenders=4, warmups=1, runs=None, budget=60)
    assert 12 <= found.rounds <= 14
    assert 50 < found.expected <= 60
    assert not found.over


def test_a_long_program_gets_the_fewest_runs_and_a_word() -> None:
    found = plan(30.0, contenders=4, warmups=1, runs=None, budget=None)
    assert found.rounds == FEWEST
    assert found.over


def test_a_short_program_does_not_run_forever() -> None:
    assert plan(0.01, contenders=4, warmups=1, runs=None, budget=3600).rounds == MOST


def test_a_number_of_runs_is_kept() -> None:
    found = plan(30.0, contenders=4, warmups=2, runs=3, budget=None)
    assert (found.rounds, found.fixed, found.over) == (3, True, False)
    assert [enough(found, done, 1e9, list) for done in (0, 2, 3)] == [False, False, True]


def test_rounds_end_early_where_all_is_settled_or_time_is_up() -> None:
    found = plan(1.0, contenders=4, warmups=1, runs=None, budget=300)
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
