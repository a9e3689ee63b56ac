"""What one sees first in BENCHMARKS.md: losses, and a line for each experiment."""

from benchmarks.overview import fold, overview
from benchmarks.places import beside, recorded
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.statistics import Verdict

HOW = "Measured in full, 2026-11-22, in 3 s; the load average was 1.13 at the start."


def section(*verdicts: Verdict, rows: int = 1) -> str:
    table = Table("**Sizes**, in words", ["size", "ratio"], [(f"{row} MiB", "**1.0**") for row in range(rows)])
    return Section("add", "a + b, `out=`", "a bar", [table], list(verdicts), ["**a note**"], how=HOW).markdown()


def test_losses_come_first_with_the_number_of_their_cases() -> None:
    cases = "geometric mean 0.96 [0.95, 0.97]; certainly above 1.05: x, 64 KiB 1.08 [1.07, 1.09], y 1.3 [1.2, 1.4]"
    verdicts = (
        Verdict("as fast", cases, "failed"),
        Verdict("small", "2 MiB", "passed"),
        Verdict("close", "1.2", "not shown"),
    )
    text = overview([section(*verdicts)])
    assert "| [a + b, `out=`](#a--b-out) | as fast | 0.96 [0.95, 0.97]; 2 cases above 1.05 | **failed** |" in text
    assert "|  | close | 1.2 | **not shown** |" in text  # of the same experiment
    assert "small" not in text
    assert "| [a + b, `out=`](#a--b-out) | 1 of 3 | 2026-11-22 |" in text


def test_what_met_its_bars_or_has_none_is_no_loss() -> None:
    text = overview([section(Verdict("as fast", "1.0", "passed")), section()])
    assert "not met" not in text
    assert "| 1 of 1 |" in text
    assert "| no bar |" in text


def test_figures_of_another_machine_say_so() -> None:
    here = recorded(section(), "two cores")
    assert "| 2026-11-22 |" in overview([beside(here, "two cores")])
    assert "| 2026-11-22, another machine |" in overview([beside(here, "four cores")])
    assert beside(beside(here, "four cores"), "two cores") == here


def test_long_tables_are_folded_and_bars_and_notes_are_not() -> None:
    text = fold(section(Verdict("as fast", "1.0", "passed"), rows=40))
    before, opened, rest = text.partition("<details>\n<summary>The table</summary>\n\n**Sizes**, in words\n\n| size |")
    inside, closed, after = rest.partition("</details>\n\n")
    assert opened
    assert closed
    assert "as fast" in before
    assert "39 MiB" in inside
    assert after.startswith("- **a note**")
    assert fold(text) == text


def test_short_tables_stay_as_they_are() -> None:
    assert fold(section(rows=3)) == section(rows=3)
