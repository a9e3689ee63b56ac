"""Records this process's requests, from the import of NumPy to the end of the process."""

import os
import sys

from _firsttouch_start import ending, library, pooling, rank, speak, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Pairs = list[tuple[str, str]]

#: The resident bytes when the recording began, and their peak until then.
_before: "dict[str, int | None]" = {}
_begun = ""


def begin(options: "dict[str, Any]") -> None:
    """Start recording, if this process has a file of its own."""
    pattern: str = options["trace"]
    fields = rank.fields(pattern)
    several = "p" in fields
    if not several and options.get("pid") != os.getpid():
        return
    if not fields and not rank.is_first():  # with one file for all ranks, the first rank writes it
        return
    _open(pattern)
    if several and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _open(pattern))


def _open(pattern: str) -> None:
    global _begun
    _begun = ""
    file = rank.fill(pattern)
    try:
        pooling.module.trace_begin(file, list(_facts().items()))
    except OSError as error:
        speak.line(f"no trace: {file} cannot be written: {speak.reason(error)}")
        return
    except Exception as error:
        speak.failure("the trace", error)
        return
    _begun = file
    _before.update(ending.resident())


def _facts() -> "dict[str, str]":
    page, huge = _page_sizes()
    numpy: Any = sys.modules["numpy"]
    json: Any = library.borrow("json")
    return {
        "allocator": "numpy_default()" if not pooling.installed else _expression(),
        "numpy": numpy.__version__,
        "python": sys.version.split()[0],
        "firsttouch": pooling.module.__version__,
        "command": json.dumps(list(sys.orig_argv)),
        "process": str(os.getpid()),
        "page_size": str(page),
        "huge_page_size": str(huge),
        "thp": _thp(),
    }


def _page_sizes() -> tuple[int, int]:
    """Return the base and the huge page size of this machine; a huge page size of 0 means none."""
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", encoding="ascii") as text:
            return page, int(text.read())
    except (OSError, ValueError):
        return page, 0


def _expression() -> str:
    return "pool()" if pooling.allocator is None else repr(pooling.allocator)


def _thp() -> str:
    """Return the kernel's setting for transparent huge pages: always, madvise, never, or an empty string if unknown."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as text:
            return text.read().partition("[")[2].partition("]")[0]
    except (OSError, ValueError):
        return ""


def end(options: "dict[str, Any]", main: bool) -> None:
    """Write the end mark and, in the process that was started, a line about the trace."""
    spoken = main and rank.is_first() and not options.get("quiet")
    if not _begun:
        if not rank.is_first() or options.get("advise"):  # which says itself what it lacks
            return
        if main and "numpy" not in sys.modules:
            speak.line("no trace: NumPy was never imported")
        elif main and pooling.reason:
            speak.line(f"no trace: {pooling.reason}")
        return
    try:
        done = pooling.module.trace_end(_ending())
    except OSError as error:
        speak.line(f"{_begun} is truncated: {speak.reason(error)}")
        return
    if done is None:  # the parent of a forked child has it
        return
    events, size, lost = done
    if lost:
        speak.line(f"{_begun}: {lost:,} events were lost because the disk was too slow")
    if spoken:
        speak.line(f"{_begun}: {units.count(events, 'event')}, {units.size(size)}")


def _ending() -> "Pairs":
    spent, resident = ending.process(), ending.resident()
    facts = {name: f"{spent[name]:.6f}" for name in ("wall", "waited", "user", "kernel", "children")}
    facts["minor_faults"] = str(int(spent["minor_faults"]))
    peak, before = resident["peak"], _before.get("now")
    if peak is not None and before is not None:
        facts["resident_peak"] = str(peak)
        # If the peak was reached before the recording began, nothing is known of the peak after that.
        facts["peak_held"] = str(peak - before if peak > (_before.get("peak") or 0) else 0)
    if pooling.installed:
        held = pooling.module.stats(pooling.allocator)["peak_held"]
        facts["allocator_peak_held"] = str(held)
    return list(facts.items())
