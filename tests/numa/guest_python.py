"""The first process of a guest that has Python, NumPy and firsttouch: arrays on its nodes, page by page.

It runs on its own: nothing of this repository is there but the package.
"""

import ctypes
import os
import pathlib
import sys
import traceback


def boot() -> None:
    """Mount what a first process mounts."""
    libc = ctypes.CDLL(None, use_errno=True)
    for kind, at in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")):
        os.makedirs(at, exist_ok=True)
        if libc.mount(kind.encode(), at.encode(), kind.encode(), 0, None):
            raise OSError(ctypes.get_errno(), f"mount {at}")
    for file, text in (
        ("/proc/sys/kernel/numa_balancing", "0"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    ):
        pathlib.Path(file).write_text(text)


def tests() -> None:
    """What a person would do."""
    import numpy as np

    import firsttouch as ft

    def nodes(a: np.ndarray) -> list[int]:
        found: list[int] = ft.inspection.pagemap(a).nodes.tolist()
        assert min(found) >= 0, found
        return found

    print(ft.placement.topology())
    last = ft.placement.topology()[-1].number
    assert last >= 1
    for node in range(last + 1):
        a = ft.numa(node).zeros((1000, 1000))
        a += 1.0
        assert set(nodes(a)) == {node}
        assert a.sum() == 1e6
        receipt = ft.receipt(a)
        assert receipt is not None
        assert receipt.numa == f"bind:{node}"
        assert not receipt.why_not
        assert set(nodes(ft.numa(node, populate=2).empty(1 << 20))) == {node}
        os.sched_setaffinity(0, ft.placement.topology()[node].processors)
        assert ft.placement.current_node() == node
        assert set(nodes(ft.pages().full(1 << 20, 2.0))) == {node}
    os.sched_setaffinity(0, range(os.cpu_count() or 1))

    rows = ft.pages().ones((8, 1 << 16))
    for node, part in enumerate(np.array_split(rows, last + 1)):
        done = ft.migrate(part, node)
        assert done.failed == 0, done
    assert nodes(rows) == sorted(nodes(rows))
    assert set(nodes(rows)) == set(range(last + 1))

    assert rows.sum() == rows.size  # content comes along

    on_last = ft.pool(ft.numa(last))
    with ft.scratch(ft.ScratchBuffer(upstream=on_last)) as s:
        assert set(nodes(s.full(1 << 13, 2.0))) == {last}

    print(ft.inspect(rows))

    # Where all memory gets huge pages, as by default on Debian and RHEL, arrays take no more of it.
    pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").write_text("always")
    pool, before = ft.pool(), resident()
    kept = [pool.ones(4 << 20, np.uint8) for _ in range(40)]
    assert resident() - before < 1.1 * sum(each.nbytes for each in kept)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def experiment() -> None:
    """The copies of `firsttouch bench numa`: on the nodes they name, new memory or none."""
    from firsttouch.tools.bench import numa

    pages = (1 << 20) // 4096
    reply = numa.in_a_row(0, 0, 1, 1 << 20)
    cold = [reply[f"{to} {source} first faults"] // pages for to, source in numa.COPIES]
    assert cold == [2, 1, 1, 0], reply
    assert reply["misplaced"] == 0, reply


if __name__ == "__main__":
    sys.path.insert(0, "/site")
    try:
        boot()
        tests()
        experiment()
        print("numa: 1 passed, 0 failed, 0 skipped", flush=True)
    except BaseException:
        traceback.print_exc()
        print("numa: 0 passed, 1 failed, 0 skipped", flush=True)
    ctypes.CDLL(None).reboot(0x4321FEDC)  # power off: nothing is lost, there are no disks
