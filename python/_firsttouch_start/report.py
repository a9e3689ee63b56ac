"""The report of one process: collected once, then written as text or as JSON."""

import os
import sys

from _firsttouch_start import estimate, library, measures, rank, speak, state, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


#: Above this fraction of the allocated bytes, the report says how much was given back too early.
_WORTH_KEEPING = 0.05


def collect(main: bool) -> "dict[str, Any]":
    """Collect the figures for both forms of the report."""
    spent = measures.process()
    pool = measures.pool()
    page, huge_page = estimate.page_sizes()
    numpy: Any = sys.modules.get("numpy")
    found: dict[str, Any] = {
        "process": os.getpid(),
        "main_process": main,
        "rank": rank.current(),
        "command": list(sys.orig_argv),
        "python": sys.version.split()[0],
        "numpy": getattr(numpy, "__version__", None),
        "pooled": state.installed,
        "not_pooled_because": state.reason,
        "seconds": {name: spent[name] for name in ("wall", "user", "kernel")},
        "children_seconds": spent["children"],
        "faults": {"minor": int(spent["minor_faults"]), "major": int(spent["major_faults"])},
        "resident_bytes": measures.resident(),
        "allocator": None if state.allocator is None else repr(state.allocator),
        "pool": pool,
        "last_failure": _last_failure(),
    }
    totals = pool or {}
    small, huge = (totals.get(f"first_touched_{kind}_bytes", 0) for kind in ("small", "huge"))
    faults = spent["minor_faults"]
    of_numpy = min(faults, estimate.numpy_faults(small, huge, page, huge_page))
    recycled = totals.get("recycled_bytes", 0)
    joined = estimate.joined_bytes(huge, totals.get("allocations", 0), totals.get("allocated_bytes", 0))
    found["estimates"] = {
        "avoided_bytes": recycled,
        "faults_not_of_numpy": int(faults - of_numpy),
        "time": estimate.time_in_faults(
            spent["wall"] - spent["waited"], spent["kernel"], faults, huge, recycled + joined, page
        ),
    }
    found["remarks"] = _remarks(found)
    return found


def _last_failure() -> "dict[str, Any] | None":
    failure = state.native.last_failure() if state.installed else None
    if failure is None:
        return None
    asked, limit, reason = failure
    return {"text": reason, "asked": asked, "limit": limit, "reason": reason}


def _remarks(found: "dict[str, Any]") -> list[str]:
    """Return the conclusions that the figures alone do not show."""
    said = []
    own = found["seconds"]["user"] + found["seconds"]["kernel"]
    elsewhere = found["children_seconds"] > own  # so what this process could gain says little of the program
    time = found["estimates"]["time"] if _counted(found) and not elsewhere else None
    if found["numpy"] is None:
        said.append("NumPy was never imported")
    elif not found["pooled"]:
        why = found["not_pooled_because"] or "the start-up hook did not see the import of NumPy"
        said.append(f"not pooled: {why}")
    elif time is not None and time["avoided_fault_share_at_most"] < estimate.WORTH_MENTIONING:
        part = f"{units.share(time['fault_share_at_most'], 1)} of the time went to faults"
        if time["fault_share_at_most"] < estimate.WORTH_MENTIONING:
            said.append(f"nothing to gain: {part} (estimated)")
        else:
            said.append(f"little to gain: {part}, few avoidable (estimated)")
    if elsewhere:
        used = units.seconds(found["children_seconds"])
        said.append(
            f"child processes used {used} and are not in this report; --json with %p in the file name reports on each"
        )
    return said


def _counted(found: "dict[str, Any]") -> bool:
    """Return whether figures of zero mean that there was nothing to count."""
    return found["allocator"] is None or bool(found["pool"] and _knows_touched(found["pool"]))


def _knows_touched(pool: "dict[str, int]") -> bool:
    """Return whether an allocator distinguishes fresh memory from recycled, which custom allocators do not."""
    return pool["first_touched_bytes"] + pool["recycled_bytes"] > 0


def text(found: "dict[str, Any]") -> str:
    """Format the report as text: one line per subject, names to the left."""
    rows = [("time", _time(found["seconds"]))]
    pool = found["pool"]
    if found["allocator"] is not None:
        rows.append(("allocator", found["allocator"]))
    if pool is not None:
        rows += _arrays(pool, found["estimates"]["avoided_bytes"], found["allocator"] is None)
    resident = found["resident_bytes"]
    if resident["now"] is not None and resident["peak"] is not None:
        rows.append(("resident", f"at most {units.size(resident['peak'])}, {units.size(resident['now'])} at the end"))
    faults = found["faults"]["minor"]
    others = units.share(found["estimates"]["faults_not_of_numpy"], faults)
    known = pool is not None and faults and _counted(found)
    served = "large blocks" if state.shared else "NumPy's arrays"
    whose = f", about {others} of them not for {served}" if known else ""
    rows.append(("page faults", f"{faults:,}{whose}"))
    if found["last_failure"]:
        rows.append(("last failure", found["last_failure"]["text"].partition("\n")[0]))
    lines = [f"  {name:13}  {value}" for name, value in rows]
    lines += [f"  {remark}" for remark in found["remarks"]]
    return "\n".join([f"firsttouch, process {found['process']}:", *lines, ""])


def _arrays(pool: "dict[str, int]", avoided: int, by_default: bool) -> list[tuple[str, str]]:
    served = pool["allocations"]
    if not served and not by_default:
        return [("large arrays", "none, or not counted by this allocator")]
    what = "block" if state.shared else "array"
    if not served:
        return [(f"large {what}s", f"none of {units.size(pool['small_limit'])} or more")]
    if not _knows_touched(pool) and not by_default:
        return [("large arrays", f"{served:,}; this allocator does not tell which memory was fresh")]
    recycled = units.share(pool["recycled"], served)
    touched, huge = pool["first_touched_bytes"], pool["first_touched_huge_bytes"]
    on_huge = f" ({units.share(huge, touched)} on huge pages)" if huge else ""
    used, held = units.size(pool["peak_in_use"]), units.size(pool["peak_held"])
    rows = [
        (f"large {what}s", f"{served:,}, {recycled} on recycled memory"),
        ("first touched", f"at most {units.size(touched)}{on_huge}, {units.size(avoided)} avoided"),
        (f"{what} memory", f"at most {used} used, {held} held"),
    ]
    if pool["refaulted_bytes"] > _WORTH_KEEPING * pool["allocated_bytes"]:
        early = f"{units.size(pool['refaulted_bytes'])} too early (needed within 8 s)"
        rows.append(("given back", early + ("; --decay 10 keeps it" if by_default else "")))
    return rows


def _time(spent: "dict[str, float]") -> str:
    used = spent["user"] + spent["kernel"]
    kernel = f"{units.seconds(spent['kernel'])} ({units.share(spent['kernel'], used)}) in the kernel"
    return f"{units.seconds(spent['wall'])}; processor time {units.seconds(used)}, {kernel}"


def save(found: "dict[str, Any]", path: str) -> None:
    """Write the report as JSON. If the file cannot be written, print one line instead."""
    json = library.borrow("json")
    content = json.dumps(found, indent=2) + "\n"
    if path == "-":
        speak.write(sys.__stdout__, content)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        speak.line(f"cannot write the report to {path}: {speak.reason(error)}")
