"""The conclusions that figures allow, checked on invented figures."""

from firsttouch.tools.compare import verdict
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.report import judged
from firsttouch.tools.compare.runs import Run
from firsttouch.tools.compare.verdict import Standing, Verdict, margin
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.statistics import Estimate

QUIET = Estimate(1.0, 0.995, 1.005)


def standing(name: str, value: float, low: float, high: float, ours: bool = False) -> Standing:
    return Standing(name, Estimate(value, low, high), ours)


def judge(noise: Estimate, standings: list[Standing], rounds: int) -> Verdict:
    """With leads that are the quotients of the speed-ups, give or take one per cent."""
    values = {one.name: one.speedup.value for one in standings}

    def lead(first: str, second: str) -> Estimate:
        ratio = values[first] / values[second]
        return Estimate(ratio, ratio * 0.99, ratio * 1.01)

    return verdict.judge(noise, standings, rounds, lead)


def test_two_per_cent_are_the_least_that_is_told() -> None:
    assert margin(QUIET) == 0.02
    found = judge(QUIET, [standing("pool()", 1.01, 1.005, 1.019, ours=True)], 20)
    assert found.faster == ()
    assert found.sentences == ("No difference: nothing here is faster than the default by more than 2 %.",)


def test_a_gain_within_the_noise_of_equals_is_none() -> None:
    noisy = Estimate(1.01, 0.9, 1.12)
    found = judge(noisy, [standing("pool()", 1.15, 1.08, 1.2, ours=True)], 20)
    assert found.faster == ()
    assert "beyond the noise, which is 12 % here" in found.sentences[0]


def test_the_noise_is_also_what_equals_are_off_by() -> None:
    assert round(margin(Estimate(0.8, 0.79, 0.81)), 2) == 0.25
    assert round(margin(Estimate(1.25, 1.24, 1.26)), 2) == 0.25


def test_processor_time_tells_where_the_clock_is_too_noisy() -> None:
    def row(name: str, walls: list[float], processor: float, install: bool = False) -> Row:
        runs = [Run(wall, 0.9 * processor, 0.1 * processor, 0, 0, 0, 0) for wall in walls]
        return Row(Contender(name, install=install), runs, None, None)

    def said(default: list[float], pool: list[float], needed: float) -> tuple[str, ...]:
        rows = [row("the default", default, 1.0), row("the same again", default[::-1], 1.0)]
        return judged(Outcome([*rows, row("pool()", pool, needed, True)], 6, "", 1.0, [])).sentences

    noisy = [1.0, 2.0, 1.1, 1.9, 1.0, 2.2]
    (clock, processor) = said(noisy, noisy, 0.8)
    assert clock.startswith("No difference beyond the noise")
    assert processor == "By processor time, which other programs disturb less, pool() needs 0.80 times the default's."
    assert len(said(noisy, noisy, 1.01)) == 1  # nor does it tell anything
    assert len(said([1.0] * 6, [1.0] * 6, 0.8)) == 1  # the clock decides
    assert "faster" in said([1.0] * 6, [0.5] * 6, 0.8)[0]
    assert len(said([1.0] * 6, [0.5] * 6, 1.01)) == 1
    # A second thread makes it faster.
    assert said([1.0] * 6, [0.5] * 6, 1.4)[1:] == ("But pool() needs 1.40 times the default's processor time.",)


def test_a_loss_is_no_absence_of_a_difference() -> None:
    found = judge(QUIET, [standing("pool()", 0.8, 0.78, 0.82, ours=True)], 20)
    assert found.sentences[0] == "Nothing here is faster than the default by more than 2 %."
    assert found.sentences[1].startswith("Slower here: pool() takes 25 %")


def test_a_gain_is_named_with_its_interval() -> None:
    found = judge(QUIET, [standing("pool()", 1.62, 1.55, 1.7, ours=True)], 20)
    assert found.faster == ("pool()",)
    assert found.sentences == ("pool() is faster here: 1.62 times as fast as the default (95 %: 1.55 to 1.70).",)


def test_a_peer_that_beats_us_is_named_first_and_ours_after_it() -> None:
    tcmalloc = standing("tcmalloc preloaded", 1.7, 1.6, 1.8)
    found = judge(QUIET, [standing("pool()", 1.3, 1.25, 1.35, ours=True), tcmalloc], 20)
    assert found.sentences[0].startswith("tcmalloc preloaded is faster here: 1.70 times")
    assert found.sentences[1] == "The best of firsttouch is pool(): 1.30 times (95 %: 1.25 to 1.35)."


def test_a_peer_that_beats_us_where_we_gain_nothing() -> None:
    found = judge(QUIET, [standing("pool()", 1.0, 0.99, 1.01, ours=True), standing("tuned glibc", 1.2, 1.15, 1.3)], 9)
    assert found.sentences[1] == "firsttouch itself gains nothing here."


def test_equals_are_named_as_such() -> None:
    others = [
        standing("tuned glibc", 1.6, 1.5, 1.7),
        standing("mimalloc()", 1.2, 1.1, 1.3, ours=True),
    ]
    found = judge(QUIET, [standing("pool()", 1.62, 1.55, 1.7, ours=True), *others], 20)
    assert found.faster == ("pool()", "tuned glibc", "mimalloc()")
    assert found.sentences[1:] == ("Not clearly behind it: tuned glibc (1.60 times).",)


def test_who_is_not_clearly_behind_is_named_even_if_not_clearly_a_gain() -> None:
    pool, glibc = standing("pool()", 1.09, 1.05, 1.12, ours=True), standing("tuned glibc", 1.09, 0.99, 1.1)
    found = judge(QUIET, [pool, glibc], 9)
    assert found.faster == ("pool()",)
    assert found.sentences[1] == "Not clearly behind it: tuned glibc (1.09 times)."


def test_a_loss_is_told_in_per_cent() -> None:
    found = judge(QUIET, [standing("guarded()", 0.5, 0.4, 0.625, ours=True), standing("pool()", 1.0, 0.99, 1.01)], 20)
    assert found.slower == ("guarded()",)
    said = "Slower here: guarded() takes 100 % (95 %: 60 to 150) longer than the default."
    assert found.sentences[-1] == said


def test_few_runs_are_no_ground_for_advice() -> None:
    found = judge(QUIET, [standing("pool()", 5.0, 4.9, 5.1, ours=True)], 4)
    assert found.faster == ()
    assert "4 runs" in found.sentences[0]


def test_where_everyone_failed_there_is_no_advice() -> None:
    assert judge(QUIET, [], 20).sentences == ("No conclusion: every contender had a failed run.",)


def test_an_interval_that_allows_a_gain_is_no_absence_of_one() -> None:
    found = judge(QUIET, [standing("pool()", 1.5, 0.97, 1.51, ours=True)], 5)
    assert (found.faster, found.unsure) == ((), True)
    (said,) = found.sentences
    assert said.startswith("No certain difference: pool() is 1.50 times as fast as the default (95 %: 0.97 to 1.51).")
    assert said.endswith("More runs, as with --budget 5m, may tell.")
    loss = standing("guarded()", 0.5, 0.4, 0.625, ours=True)
    found = judge(QUIET, [loss, standing("pool()", 1.0, 0.97, 1.03)], 20)
    assert found.sentences[0].startswith("Nothing here is certainly faster than the default: pool() is 1.00 times")


def test_processor_time_tells_where_one_run_was_disturbed() -> None:
    def row(name: str, walls: list[float], processor: float) -> Row:
        return Row(Contender(name, install=False), [Run(wall, processor, 0, 0, 0, 0, 0) for wall in walls], None, None)

    default = [3.0, 3.01, 3.0, 2.99, 3.0]
    rows = [row("the default", default, 3.0), row("the same again", default[::-1], 3.0)]
    rows.append(row("pool()", [2.0, 2.0, 3.1, 2.0, 1.99], 2.0))
    (clock, processor) = judged(Outcome(rows, 5, "", 1.0, [])).sentences
    assert clock.startswith("No certain difference: pool() is 1.50 times")
    assert "pool() needs 0.67 times" in processor
