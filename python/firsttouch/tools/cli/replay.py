"""`firsttouch replay`: replay a trace against allocators, each in its own process."""

import sys
from collections.abc import Sequence
from typing import Any

from _firsttouch_start import units
from firsttouch.tools.cli import files, output, showing
from firsttouch.tools.cli.parser import BadUsageError, Parser

_USAGE = "firsttouch replay [options] trace.ft"

_DESCRIPTION = """\
Replay a trace recorded by `firsttouch trace` against any allocator: the same requests in the same
order, each recorded thread in a thread of its own, one at a time. Arrays are written as the
program would write them.
"""

_EXAMPLES = """\
for example:
  firsttouch replay trace.ft                    NumPy's own memory and the pool
  firsttouch replay trace.ft --allocator 'pool(pages())' --allocator mimalloc
  firsttouch replay trace.ft --touch none       the cost of the requests alone

--touch all writes every byte (first: one byte in each page). Of a large array, only as many pages
are written as were resident when the traced program freed it: a sparse np.zeros stays sparse.
Times are those of the allocator's functions and of the writes, one event after the other.
"""

_DEFAULT = ("numpy_default()", "pool()")


def main(words: Sequence[str]) -> int:
    """Read the whole trace first, then replay it against each allocator."""
    parser = _parser()
    given = parser.parse(words)
    if given.trace is None:
        parser.error("missing trace (try firsttouch replay --help)")
    allocators = given.allocator or list(_DEFAULT)
    showing.needs_rich("replay", given.json)
    output.need("replay", "numpy")
    files.check_json("replay", given.json)
    files.check_trace("replay", given.trace)
    _check_allocators(allocators)
    facts = _survey(given)
    found = [_play(given, allocator) for allocator in allocators]
    answer = {"trace": facts, "replays": found}
    if given.json is not None:
        showing.save_json("replay", given.json, answer)
    if given.json != "-":
        _show(facts, found)
    return 0


def _parser() -> Parser:
    parser = Parser("replay", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("trace", metavar="trace.ft", nargs="?", help="trace written by firsttouch trace")
    add("--allocator", metavar="EXPRESSION", action="append", help="allocator to replay against; repeatable")
    add("--touch", choices=("none", "first", "all"), default="all", help="what to write to new arrays (default: all)")
    add("--one-thread", action="store_true", help="replay all threads in one")
    add("--incomplete", action="store_true", help="replay a truncated trace as far as possible")
    add("--json", metavar="FILE", help="the figures as JSON, - for standard output")
    return parser


def _check_allocators(expressions: Sequence[str]) -> None:
    from firsttouch._internal import resolve

    for text in expressions:
        try:
            resolve.parse(text)
        except (ValueError, TypeError, MemoryError) as error:
            raise BadUsageError(f"replay: --allocator: {error}") from None


def _survey(given: Any) -> dict[str, Any]:
    from firsttouch import _firsttouch

    try:
        return _firsttouch.trace_survey(given.trace, given.incomplete)
    except ValueError as error:
        cut = "cut off" in str(error) and not given.incomplete
        hint = "; --incomplete replays what there is" if cut else ""
        raise BadUsageError(f"replay: {given.trace}: {error}{hint}") from None
    except OSError as error:
        raise BadUsageError(f"replay: {given.trace}: {error.strerror or error}") from None


def _play(given: Any, allocator: str) -> dict[str, Any]:
    from firsttouch.tools.trace import playing

    how = playing.How(given.touch, not given.one_thread, given.incomplete)
    try:
        return playing.play(given.trace, allocator, how)
    except playing.PlayError as error:
        raise BadUsageError(f"replay: {error}") from None


def _show(facts: dict[str, Any], found: Sequence[dict[str, Any]]) -> None:
    about = facts["facts"]
    held = int(about.get("peak_held") or 0)
    traced = f"; the traced run grew by up to {units.size(held)}" if held else ""
    replayed = (
        f"{facts['events']:,} events of {units.count(facts['threads'], 'thread')}, {facts['allocations']:,} arrays,"
        f" at most {units.size(facts['peak_in_use'])} at once, on {about.get('allocator', 'unknown memory')}{traced}"
    )
    print(showing.wrapped(replayed, sys.stdout))
    if facts["lost"]:
        print(f"{facts['lost']:,} events were lost during recording: the figures are inaccurate")
    if not facts["complete"]:
        print("the trace is truncated: replayed up to its last complete event")
    rows = [
        (
            each["allocator"],
            "-" if each["refused"] else units.size(each["peak_in_use"]),
            _size(each["peak_held"]),
            _size(each["allocator_peak_held"]),
            "-" if each["fragmentation"] is None else f"{each['fragmentation']:.2f}",
            f"{each['faults']:,}",
            units.seconds(each["seconds"]),
        )
        for each in found
    ]
    columns = ("allocator", "peak in use", "peak held", "by its own count", "held / in use", "page faults", "time")
    showing.table(columns, rows, sys.stdout)
    refused = [f"{each['allocator']} refused {each['refused']:,} requests" for each in found if each["refused"]]
    print("\n".join(refused), end="\n" if refused else "")


def _size(amount: int | None) -> str:
    return "-" if amount is None else units.size(amount)
