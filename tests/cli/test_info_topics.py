"""Each topic of `firsttouch info` on simulated machines: trees of files made here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.tools.cli import info
from firsttouch.tools.cli.info import cgroup, hugepages, kernel, libc, numa, pages

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def plant(content: dict[str, str]) -> Path:
        for name, text in content.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return plant


def test_machine_without_any_of_the_files(tmp_path: Path) -> None:
    found = info.look(tmp_path)
    text = info.text(found)
    assert found["pages"]["thp"] is None
    assert found["cgroup"]["version"] is None
    assert found["numa"]["nodes"] is None
    assert "unknown" in text
    assert "/proc is missing or not readable" in text


def test_files_with_unexpected_content(tree: Tree) -> None:
    folder = "sys/kernel/mm/transparent_hugepage"
    root = tree(
        {
            f"{folder}/enabled": "",
            f"{folder}/hpage_pmd_size": "many",
            "proc/meminfo": "nonsense\n",
            "proc/self/numa_maps": "0\n\n",
            "proc/self/maps": "x\n",
            "proc/self/mountinfo": "1 - \n",
            "proc/self/cgroup": "x\n",
            "sys/kernel/mm/hugepages/hugepages-xkB/free_hugepages": "1",
        }
    )
    assert info.text(info.look(root))


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("always madvise [never]", "transparent huge pages are off"),
        ("[always] madvise never", "THP is `always`"),
        ("always [madvise] never", ""),
    ],
)
def test_transparent_huge_pages(tree: Tree, mode: str, said: str) -> None:
    folder = "sys/kernel/mm/transparent_hugepage"
    root = tree(
        {
            f"{folder}/enabled": mode,
            f"{folder}/defrag": "always defer [madvise] never",
            f"{folder}/hpage_pmd_size": str(512 << 20),
            f"{folder}/hugepages-64kB/enabled": "always inherit [madvise] never",
            f"{folder}/hugepages-1024kB/enabled": "always inherit madvise [never]",
        }
    )
    found = pages.look(root)
    assert found["huge_page_bytes"] == 512 << 20
    assert list(found["mthp"]) == ["64", "1024"]
    assert ("huge page", "512 MiB") in pages.rows(found)
    assert ("mTHP", "64 KiB madvise; 1024 KiB never") in pages.rows(found)
    assert said in " ".join(pages.meaning(found))
    assert bool(said) == bool(pages.meaning(found))


def pool(folder: str, **counts: int) -> dict[str, str]:
    return {f"{folder}/hugepages/hugepages-2048kB/{name}_hugepages": f"{count}\n" for name, count in counts.items()}


def test_reserved_huge_pages(tree: Tree) -> None:
    found = hugepages.look(tree(pool("sys/kernel/mm", nr=10, free=8, resv=1, surplus=2)))
    assert hugepages.rows(found) == [
        ("2 MiB", "10 pages, 8 free, 1 reserved, 2 surplus, unknown more on demand"),
    ]
    assert found["2048"]["nodes"] is None
    assert "16 MiB are reserved" in hugepages.meaning(found)[0]


def test_huge_pages_of_each_node(tree: Tree) -> None:
    node = "sys/devices/system/node/node"
    content = pool("sys/kernel/mm", nr=6, free=5, resv=0, surplus=0, nr_overcommit=3)
    for number, counts in (("10", {"nr": 4, "free": 4, "surplus": 0}), ("2", {"nr": 2, "free": 1, "surplus": 0})):
        content |= pool(f"{node}{number}", **counts)
    found = hugepages.look(tree(content))
    assert hugepages.rows(found) == [
        ("2 MiB", "6 pages, 5 free, 0 reserved, 0 surplus, 3 more on demand"),
        ("  on node 2", "2 pages, 1 free, 0 surplus"),
        ("  on node 10", "4 pages, 4 free, 0 surplus"),
    ]


@pytest.mark.parametrize(
    ("nodes", "folder"), [(["node0"], "/sys/kernel/mm"), (["node0", "node1"], "/sys/devices/system/node/nodeN")]
)
def test_empty_pools_and_how_to_fill_them(tree: Tree, nodes: list[str], folder: str) -> None:
    content = pool("sys/kernel/mm", nr=0, free=0, resv=0, surplus=0, nr_overcommit=0)
    for node in nodes:
        content |= pool(f"sys/devices/system/node/{node}", nr=0, free=0, surplus=0)
    label, said = hugepages.rows(hugepages.look(tree(content)))[-1]
    assert (label, said) == (
        "to reserve some",
        f"as root, write a number to {folder}/hugepages/hugepages-2048kB/nr_hugepages",
    )


def test_distances_are_a_table(tree: Tree) -> None:
    node = "sys/devices/system/node/node"
    found = numa.look(tree({f"{node}0/distance": "10 21\n", f"{node}1/distance": "21 10\n", f"{node}1/cpulist": "1"}))
    assert found["distances"] == {"0": [10, 21], "1": [21, 10]}
    assert numa.rows(found)[2:5] == [
        ("distances", "to node    0    1"),
        ("  of node 0", "          10   21"),
        ("  of node 1", "          21   10"),
    ]


def test_two_nodes_and_an_inherited_policy(tree: Tree) -> None:
    root = tree(
        {
            "sys/devices/system/node/online": "0-1\n",
            "sys/devices/system/node/has_memory": "0-1\n",
            "proc/sys/kernel/numa_balancing": "1\n",
            "proc/self/status": "Name:\tx\nMems_allowed_list:\t1\nCpus_allowed_list:\t0-3\n",
            "proc/self/numa_maps": "0 interleave:0-1 file=x\n1 interleave:0-1 heap\n2 default stack\n",
        }
    )
    found = numa.look(root)
    assert found["distances"] is None
    assert found["policies"] == ["default", "interleave:0-1"]
    shown = dict(numa.rows(found))
    assert (shown["online"], shown["with memory"], shown["cpuset: memory"]) == ("nodes 0-1", "nodes 0-1", "node 1")
    said = " ".join(numa.meaning(found))
    assert "interleave:0-1" in said
    assert "several NUMA nodes" in said
    assert "AutoNUMA is on" in said
    assert "only the memory of node 1" in said


def test_tightest_bound_of_version_2(tree: Tree) -> None:
    mounted = "30 20 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
    base = "sys/fs/cgroup"
    root = tree(
        {
            "proc/self/mountinfo": mounted,
            "proc/self/cgroup": "0::/a/b\n",
            f"{base}/a/memory.max": str(4 << 30),
            f"{base}/a/memory.high": "max",
            f"{base}/a/memory.current": str(2 << 30),
            f"{base}/a/b/memory.max": "max",
            f"{base}/a/b/memory.high": str(3 << 30),
            f"{base}/a/b/memory.current": str(1 << 30),
        }
    )
    found = cgroup.look(root)
    assert found == {
        "version": 2,
        "group": "/a/b",
        "limit_bytes": 4 << 30,
        "soft_limit_bytes": 3 << 30,
        "used_bytes": 1 << 30,
    }
    assert "limited to 4 GiB" in cgroup.meaning(found)[0]


def test_version_1_beside_an_empty_version_2(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            "31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            "proc/self/cgroup": "4:memory:/job\n0::/\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(512 << 20),
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(500 << 20),
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(1 << 30),
        }
    )
    found = cgroup.look(root)
    assert (found["version"], found["limit_bytes"], found["used_bytes"]) == (1, 512 << 20, 500 << 20)
    assert "12 MiB left" in cgroup.meaning(found)[0]


def test_container_whose_group_is_not_mounted_by_its_name(tree: Tree) -> None:
    root = tree(
        {
            "proc/self/mountinfo": "30 20 0:26 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            "proc/self/cgroup": "0::/docker/x\n",
            "sys/fs/cgroup/memory.max": str(1 << 30),
            "sys/fs/cgroup/memory.current": "4096",
        }
    )
    assert cgroup.look(root)["limit_bytes"] == 1 << 30


@pytest.mark.parametrize("name", ["libtcmalloc_minimal.so.4", "libjemalloc.so.2", "libmimalloc.so.2.0"])
def test_preloaded_malloc(tree: Tree, name: str) -> None:
    line = f"7f00-7f01 r-xp 00000000 fe:00 1234    /usr/lib/x86_64-linux-gnu/{name}\n"
    found = libc.look(tree({"proc/self/maps": "7f02-7f03 rw-p 0 0 0 [heap]\n" + line * 2}))
    assert list(found["preloaded"].values()) == [f"/usr/lib/x86_64-linux-gnu/{name}"]
    assert "replaces malloc" in libc.meaning(found)[0]


def test_init_on_alloc(tree: Tree, tmp_path: Path) -> None:
    assert kernel.look(tmp_path)["init_on_alloc"] is None
    found = kernel.look(tree({"proc/cmdline": "quiet init_on_alloc=1 ro"}))
    assert found["init_on_alloc"] is True
    assert "clears every page twice" in " ".join(kernel.meaning(found))


def test_hosts_that_take_free_memory(tree: Tree, tmp_path: Path) -> None:
    assert kernel.look(tmp_path)["host_takes_free_memory"] is False
    balloon = "sys/bus/virtio/devices/virtio0"
    found = kernel.look(tree({f"{balloon}/device": "0x0005\n", f"{balloon}/features": "011001" + "0" * 58 + "\n"}))
    assert ("free memory", "reported to the host") in kernel.rows(found)
    assert "reusing memory saves more here" in " ".join(kernel.meaning(found))


def test_old_kernel_lacks_by_version(tree: Tree) -> None:
    features = kernel.look(tree({"proc/sys/kernel/osrelease": "5.10.0-28-amd64\n"}))["features"]
    assert features["MAP_FIXED_NOREPLACE"] is True
    assert features["PAGEMAP_SCAN"] is False
