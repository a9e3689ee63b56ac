"""NUMA nodes, automatic balancing, and the inherited memory policy and cpuset."""

from pathlib import Path
from typing import Any

from firsttouch.tools.cli.info import kernel_files


def look(root: Path) -> dict[str, Any]:
    """Read the nodes, and those from which this process may take memory."""
    status = kernel_files.fields(root / "proc/self/status")
    balancing = kernel_files.number(root / "proc/sys/kernel/numa_balancing")
    return {
        "nodes": kernel_files.read(root / "sys/devices/system/node/online"),
        "with_memory": kernel_files.read(root / "sys/devices/system/node/has_memory"),
        "distances": _distances(root),
        "balancing": None if balancing is None else bool(balancing),
        "policies": _policies(root),
        "memory_allowed": status.get("Mems_allowed_list"),
        "processors_allowed": status.get("Cpus_allowed_list"),
    }


def _distances(root: Path) -> dict[str, list[int]] | None:
    """Read each node's distances to all nodes, in their order; 10 is the node's own memory."""
    found = {}
    for folder in (root / "sys/devices/system/node").glob("node*"):
        words = (kernel_files.read(folder / "distance") or "").split()
        if folder.name[4:].isdecimal() and words and all(word.isdecimal() for word in words):
            found[folder.name[4:]] = [int(word) for word in words]
    return dict(sorted(found.items(), key=lambda item: int(item[0]))) or None


def _policies(root: Path) -> list[str] | None:
    """List the memory policies of this process's mappings; an inherited policy applies to all."""
    lines = (kernel_files.read(root / "proc/self/numa_maps") or "").splitlines()
    return sorted({words[1] for line in lines if len(words := line.split()) > 1}) or None


def _several(nodes: str | None) -> bool:
    return nodes is not None and nodes.strip() not in ("", "0")


def _named(nodes: str | None) -> str:
    """Write "node 0" or "nodes 0-1": a number alone would read as how many there are."""
    if nodes is None:
        return "unknown"
    return f"{'node' if nodes.strip().isdecimal() else 'nodes'} {nodes}"


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the topic as pairs of a label and a value."""
    balancing = {None: "not in this kernel", False: "off", True: "on"}[found["balancing"]]
    policies = found["policies"]
    return [
        ("online", _named(found["nodes"])),
        ("with memory", _named(found["with_memory"])),
        *_table(found["distances"]),
        ("AutoNUMA", balancing),
        ("memory policy", ", ".join(policies) if policies else "unknown"),
        ("cpuset: memory", _named(found["memory_allowed"])),
        ("cpuset: processors", kernel_files.known(found["processors_allowed"])),
    ]


def _table(distances: dict[str, list[int]] | None) -> list[tuple[str, str]]:
    if not distances:
        return [("distances", "unknown")]
    rows = [("distances", "to node " + " ".join(f"{number:>4}" for number in distances))]
    return rows + [
        (f"  of node {number}", " " * len("to node ") + " ".join(f"{distance:>4}" for distance in line))
        for number, line in distances.items()
    ]


def meaning(found: dict[str, Any]) -> list[str]:
    """Return the conclusions."""
    said = []
    others = [policy for policy in found["policies"] or [] if not policy.startswith(("default", "local"))]
    if others:
        said.append(
            f"a memory policy was inherited ({', '.join(others)}): it decides on which nodes arrays lie,"
            " as set by numactl or the job launcher"
        )
    if _several(found["with_memory"]):
        said.append("several NUMA nodes: memory is placed on the node of the thread that touches it first")
        if found["balancing"]:
            said.append("AutoNUMA is on: the kernel unmaps pages from time to time to find out which node uses them")
        if found["memory_allowed"] and found["memory_allowed"] != found["with_memory"]:
            said.append(f"a cpuset allows only the memory of {_named(found['memory_allowed'])}")
    return said
