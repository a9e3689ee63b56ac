"""Graphs of files that import each other, and of the rooms (folders) that contain them."""

from collections.abc import Collection, Mapping, Sequence

Graph = Mapping[str, Collection[str]]


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected groups of two or more nodes, sorted (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def upward(graph: Graph, rooms: Sequence[str], separator: str) -> set[tuple[str, str]]:
    """Return the imports of a room that stands higher than the importing one; `rooms` begins at the bottom.

    The room of a file is the first part of its name. A room that is missing from the list is an error.
    """
    height = {room: at for at, room in enumerate(rooms)}
    present = {node.split(separator)[0] for node in graph}
    assert present == set(rooms), (
        f"rooms not in the list: {present - set(rooms)}; no longer there: {set(rooms) - present}"
    )
    return {
        (node, other)
        for node, others in graph.items()
        for other in others
        if height[other.split(separator)[0]] > height[node.split(separator)[0]]
    }
