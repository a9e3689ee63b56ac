"""The conclusion that the measurements support, in a sentence or two; it may be "no difference".

A contender is called faster, or slower, only if the whole 95 % interval of its speed-up is further from 1 than the
noise, which the default compared with itself shows, and than two per cent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from _firsttouch_start import units
from firsttouch.tools.measuring import cautions
from firsttouch.tools.measuring.statistics import Estimate

LEAST = 0.02
#: With fewer rounds than this, intervals are unreliable.
FEWEST = 5


@dataclass(frozen=True)
class Standing:
    """A contender compared with the default; `ours` if firsttouch serves it."""

    name: str
    speedup: Estimate
    ours: bool = False


@dataclass(frozen=True)
class Verdict:
    """The sentences, and the contenders that are certainly faster or slower, the most extreme first.

    `unsure` says that some may be faster by more than the margin, but not certainly.
    """

    sentences: tuple[str, ...]
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()
    unsure: bool = False


def margin(noise: Estimate) -> float:
    """Return by how much a speed-up must differ from 1."""
    return max(LEAST, cautions.noise(noise))


def judge(noise: Estimate, standings: Sequence[Standing], rounds: int, lead: Callable[[str, str], Estimate]) -> Verdict:
    """Return the conclusion, from the default compared with itself and every contender compared with the default.

    `lead` returns how many times as fast the first of two contenders is as the second.
    """
    if rounds < FEWEST:
        runs = units.count(rounds, "run")
        return Verdict((f"No conclusion: {runs} of each cannot be distinguished from chance; use {FEWEST} or more.",))
    if not standings:
        return Verdict(("No conclusion: every contender had a failed run.",))
    bar = 1 + margin(noise)
    ordered = sorted(standings, key=lambda one: -one.speedup.value)
    faster = [one for one in ordered if one.speedup.low > bar]
    slower = [one for one in reversed(ordered) if one.speedup.high < 1 / bar]
    unsure = [one for one in ordered if one.speedup.low <= bar < one.speedup.high]
    sentences = _faster(ordered, faster, bar, lead) if faster else [_none(noise, unsure, bool(slower))]
    if slower:
        losses = ", ".join(_loss(one) for one in slower)
        sentences.append(f"Slower here: {losses} longer than the default.")
    return Verdict(tuple(sentences), tuple(one.name for one in faster), tuple(one.name for one in slower), bool(unsure))


def by_processor_time(noise: Estimate, standings: Sequence[Standing]) -> list[str]:
    """Return a sentence on contenders that certainly need less or more processor time than the default, if any do.

    All estimates are of processor time.
    """
    bar = 1 + margin(noise)
    ordered = sorted(standings, key=lambda one: -one.speedup.value)
    certain = [one for one in ordered if one.speedup.low > bar or one.speedup.high < 1 / bar]
    needs = [f"{one.name} needs {1 / one.speedup.value:.2f} times the default's" for one in certain]
    return [f"By processor time, which other programs disturb less, {units.listed(needs)}."] if needs else []


def paid(noise: Estimate, faster: Sequence[Standing]) -> list[str]:
    """Return a sentence on contenders that are faster, but certainly need more processor time than the default.

    Such a one uses a second processor, which other programs then do not have. All estimates are of processor time.
    """
    more = [one for one in faster if one.speedup.high < 1 / (1 + margin(noise))]
    needs = [f"{one.name} needs {1 / one.speedup.value:.2f} times the default's processor time" for one in more]
    return [f"But {units.listed(needs)}."] if needs else []


def _none(noise: Estimate, unsure: Sequence[Standing], slower: bool) -> str:
    size = margin(noise)
    if unsure:
        beyond = "" if size == LEAST else f" beyond the noise, which is {100 * size:.0f} % here"
        begin = "Nothing here is certainly faster than the default" if slower else f"No certain difference{beyond}"
        most = f"{unsure[0].name} is {_gain(unsure[0])} as fast as the default{_between(unsure[0])}"
        return f"{begin}: {most}. More runs, as with --budget 5m, may tell."
    if slower:  # which is a difference
        return f"Nothing here is faster than the default by more than {100 * size:.0f} %."
    if size == LEAST:
        return f"No difference: nothing here is faster than the default by more than {100 * size:.0f} %."
    return (
        f"No difference beyond the noise, which is {100 * size:.0f} % here: nothing is faster than the default by"
        " more. More runs, as with --budget 5m, reveal smaller differences."
    )


def _faster(
    ordered: Sequence[Standing], faster: Sequence[Standing], bar: float, lead: Callable[[str, str], Estimate]
) -> list[str]:
    best, others = faster[0], faster[1:]
    said = [f"{best.name} is faster here: {_gain(best)} as fast as the default{_between(best)}."]
    equal = [one for one in ordered if one is not best and lead(best.name, one.name).low <= bar]
    if equal:
        names = units.listed([f"{one.name} ({_gain(one)})" for one in equal])
        said.append(f"Not clearly behind it: {names}.")
    if not any(one.ours for one in [best, *equal]):
        ours = [one for one in others if one.ours]
        said += [f"The best of firsttouch is {one.name}: {_gain(one)}{_between(one)}." for one in ours[:1]]
        said += [] if ours else ["firsttouch itself gains nothing here."]
    return said


def _gain(one: Standing) -> str:
    return f"{one.speedup.value:.2f} times"


def _between(one: Standing) -> str:
    return f" (95 %: {one.speedup.low:.2f} to {one.speedup.high:.2f})"


def _loss(one: Standing) -> str:
    low, middle, high = (100 * (1 / value - 1) for value in (one.speedup.high, one.speedup.value, one.speedup.low))
    return f"{one.name} takes {middle:.0f} % (95 %: {low:.0f} to {high:.0f})"
