"""`firsttouch --info`, and the machine as everything here sees it: on this one, and on trees of files made here."""

import json
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch import _firsttouch
from firsttouch.tools.cli import info
from firsttouch.tools.measuring import machine
from firsttouch.tools.measuring.machine import Watch, available, cautions, describe, look

from .conftest import Start

Tree = Callable[[dict[str, str]], Path]
THP, NODE, BASE = "sys/kernel/mm/transparent_hugepage", "sys/devices/system/node/node", "sys/fs/cgroup"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def plant(content: dict[str, str]) -> Path:
        for name, text in content.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return plant


def meaning(root: Path) -> str:
    return " ".join(info.look(root)[1])


# --- on this machine


def test_a_block_for_each_topic_and_files(firsttouch: Start, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    done = firsttouch("--info", "--json", "info.json", "--html", "info.html")
    assert (done.returncode, done.stderr) == (0, "")
    heads = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert heads == [*look(), "what it means"]
    assert max(map(len, done.stdout.splitlines())) <= 80
    found = json.loads((tmp_path / "info.json").read_text())
    assert found["pages"]["page_bytes"] == resource.getpagesize()
    assert found["machine"]["cores"].split()[0] == str(len(os.sched_getaffinity(0)))
    assert found["kernel"]["kernel"] == os.uname().release
    assert found["limits"]["overcommit"] == int(Path("/proc/sys/vm/overcommit_memory").read_text())
    assert os.uname().release in (tmp_path / "info.html").read_text()
    assert firsttouch("--info", "-q").stdout.startswith("what it means\n")
    assert json.loads(firsttouch("--info", "--json", "-").stdout)["pages"] == found["pages"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MALLOC_TRIM_THRESHOLD_": "65536"}, "MALLOC_TRIM_THRESHOLD_=65536 is set: glibc then no longer adapts"),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=4096"}, "glibc.malloc.trim_threshold=4096 is set"),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, "malloc itself requests huge pages"),
        ({"MALLOC_TRIM_THRESHOLD_": str(1 << 30)}, ""),
        ({"MALLOC_PERTURB_": "1"}, "malloc overwrites memory"),
    ],
    ids=str,
)
def test_settings_of_malloc_are_explained(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown = " ".join(info.text(*info.look()).split())
    assert all(f"{name}={value}" in shown or value in shown for name, value in variables.items())
    assert said in shown
    assert ("is set" in shown) == ("is set" in said or "huge pages" in said)


def test_limits_are_inherited_and_explained(firsttouch: Start) -> None:
    limit = 64 << 30
    done = firsttouch("--info", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert "address space           64 GiB" in done.stdout
    assert "ulimit -v is 64 GiB" in done.stdout


def test_a_description_has_what_figures_depend_on() -> None:
    assert {"CPU", "cores", "kernel", "transparent huge pages", "Python", "NumPy", "firsttouch"} <= set(describe())


# --- on others


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    found, said = info.look(tmp_path)
    assert "unknown" in info.text(found, said)
    assert "/proc is missing or not readable" in said[0]
    assert not any("no transparent huge pages" in sentence for sentence in said)
    assert cautions(tmp_path) == []
    assert Watch(tmp_path).finish() == []


def test_files_with_unexpected_content(tree: Tree) -> None:
    root = tree(
        {
            f"{THP}/enabled": "",
            f"{THP}/hpage_pmd_size": "many",
            "proc/meminfo": "nonsense\n",
            "proc/self/numa_maps": "0\n\n",
            "proc/self/maps": "x\n",
            "proc/self/mountinfo": "1 - \n",
            "proc/self/cgroup": "x\n",
            "sys/kernel/mm/hugepages/hugepages-xkB/free_hugepages": "1",
        }
    )
    assert info.text(*info.look(root))


@pytest.mark.parametrize(
    ("mode", "said", "caution"),
    [
        ("always madvise [never]", "transparent huge pages are off", "no program gets them"),
        ("[always] madvise never", "THP is `always`", "gets them without advice"),
        ("always [madvise] never", "", ""),
    ],
)
def test_transparent_huge_pages(tree: Tree, mode: str, said: str, caution: str) -> None:
    root = tree(
        {
            "proc/x": "",
            f"{THP}/enabled": mode,
            f"{THP}/defrag": "always defer [madvise] never",
            f"{THP}/hpage_pmd_size": str(512 << 20),
        }
    )
    pages = dict(machine.shown("pages", look(root)["pages"]))
    assert pages["huge page"] == "512 MiB"
    assert said in meaning(root)
    assert [caution in each for each in cautions(root)] == [True] * bool(caution)


def test_huge_page_pools(tree: Tree) -> None:
    counts = {"nr": 6, "free": 5, "resv": 0}
    root = tree({f"sys/kernel/mm/hugepages/hugepages-2048kB/{name}_hugepages": f"{n}\n" for name, n in counts.items()})
    shown = list(machine.shown("huge page pools", look(root)["huge page pools"]))
    assert shown == [("2 MiB", "pages 6, free 5, reserved 0")]
    assert "5 huge pages of 2 MiB are reserved and free" in meaning(root)


def test_two_nodes_and_an_inherited_policy(tree: Tree) -> None:
    root = tree(
        {
            f"{NODE}0/distance": "10 21\n",
            f"{NODE}1/distance": "21 10\n",
            "sys/devices/system/node/online": "0-1\n",
            "sys/devices/system/node/has_memory": "0-1\n",
            "proc/sys/kernel/numa_balancing": "1\n",
            "proc/self/status": "Name:\tx\nMems_allowed_list:\t1\nCpus_allowed_list:\t0-3\n",
            "proc/self/numa_maps": "0 interleave:0-1 file=x\n1 interleave:0-1 heap\n2 default stack\n",
        }
    )
    numa = dict(machine.shown("numa", look(root)["numa"]))
    assert (numa["distances from node0"], numa["distances from node1"]) == ("10 21", "21 10")
    assert (numa["node numbers"], numa["with memory"]) == ("0-1", "0-1")
    assert numa["memory policies"] == "default interleave:0-1"
    said = meaning(root)
    for words in ("interleave:0-1", "several NUMA nodes", "AutoNUMA is on", "only the memory of nodes 1"):
        assert words in said
    assert cautions(root) == ["AutoNUMA moves pages between nodes during a measurement"]


GIB = 1 << 30


def test_a_control_group_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = [(9 * GIB, GIB), (4 * GIB, 4 * GIB - (64 << 20)), None, None]
    monkeypatch.setattr(_firsttouch, "memory_bounds", lambda: bounds)
    assert look()["limits"]["cgroup_memory_bytes"] == 4 * GIB
    assert "limited to 4 GiB (64 MiB left)" in meaning(Path("/"))
    assert any("the control group's memory is 98 % full" in each for each in cautions())
    assert 0 < available() < 1 << 50


@pytest.mark.parametrize("name", ["libtcmalloc_minimal.so.4", "libjemalloc.so.2", "libmimalloc.so.2.0"])
def test_preloaded_malloc(tree: Tree, name: str) -> None:
    line = f"7f00-7f01 r-xp 00000000 fe:00 1234    /usr/lib/x86_64-linux-gnu/{name}\n"
    root = tree({"proc/self/maps": "7f02-7f03 rw-p 0 0 0 [heap]\n" + line * 2})
    assert look(root)["malloc"]["in_use"] == f"/usr/lib/x86_64-linux-gnu/{name}"
    assert f"{name} replaces malloc" in meaning(root)


@pytest.mark.parametrize(
    ("device", "features", "takes"),
    [("0x0005", "011001", True), ("0x0005", "011000", False), ("0x0005", "", False), ("0x0002", "011001", False)],
)
def test_hosts_that_take_free_memory(tree: Tree, device: str, features: str, takes: bool) -> None:
    balloon = "sys/bus/virtio/devices/virtio1"
    root = tree({f"{balloon}/device": f"{device}\n", f"{balloon}/features": features + "0" * 58})
    assert ("reusing memory saves more here" in meaning(root)) == takes
    assert any("comes back from the host" in each for each in cautions(root)) == takes


# --- what disturbs a measurement


def test_a_governor_that_changes_the_frequency_is_told(tree: Tree) -> None:
    governor = "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
    assert "the governor powersave" in cautions(tree({governor: "powersave\n"}))[0]
    assert cautions(tree({governor: "performance\n"})) == []


def test_what_went_on_meanwhile(tree: Tree) -> None:
    def counters(idle: int = 0, steal: int = 0, swapped: int = 0, load: str = "0.00") -> Path:
        return tree(
            {
                "proc/loadavg": f"{load} 0.00 0.00 1/100 1\n",
                "proc/stat": f"cpu  10 0 10 {100 + idle} 0 0 0 {steal} 0 0\n",
                "proc/vmstat": f"pgfault 5\npswpin {swapped}\npswpout 3\n",
            }
        )

    watch = Watch(counters())
    assert watch.finish() == []
    counters(idle=90, steal=10, swapped=7)
    assert watch.finish() == [
        "the host took 10 % of the processors' time for others (steal)",
        "the machine swapped: 7 pages went in or out",
    ]
    assert "load average was 999.0" in Watch(counters(load="999.0")).finish()[0]
