"""The machine and its disturbances, read from folders that imitate the kernel's."""

from pathlib import Path

import pytest

from firsttouch.tools import host
from firsttouch.tools.measuring import cautions, machine
from firsttouch.tools.measuring.machine import describe
from firsttouch.tools.measuring.statistics import Estimate


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def test_a_quiet_machine_is_no_cause_for_words(tmp_path: Path) -> None:
    put(tmp_path, "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
    put(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance")
    assert cautions.standing(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never", "gets them without advice"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]", "no program gets them"),
        ("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave", "the governor powersave"),
    ],
)
def test_settings_that_move_figures(tmp_path: Path, name: str, text: str, said: str) -> None:
    put(tmp_path, name, text)
    (found,) = cautions.standing(tmp_path)
    assert said in found


@pytest.mark.parametrize(
    ("device", "features", "takes"),
    [("0x0005", "011001", True), ("0x0005", "011000", False), ("0x0005", "", False), ("0x0002", "011001", False)],
)
def test_hosts_that_take_free_memory(tmp_path: Path, device: str, features: str, takes: bool) -> None:
    put(tmp_path, "sys/bus/virtio/devices/virtio0/device", "0x0001")
    put(tmp_path, "sys/bus/virtio/devices/virtio1/device", device)
    put(tmp_path, "sys/bus/virtio/devices/virtio1/features", features + "0" * 58)
    assert host.takes_free_memory(tmp_path) == takes
    assert any("comes back from the host" in word for word in cautions.standing(tmp_path)) == takes


def counters(root: Path, idle: int = 0, steal: int = 0, swapped: int = 0) -> None:
    put(root, "proc/loadavg", "0.00 0.00 0.00 1/100 1")
    put(root, "proc/stat", f"cpu  10 0 10 {100 + idle} 0 0 0 {steal} 0 0")
    put(root, "proc/vmstat", f"pgfault 5\npswpin {swapped}\npswpout 3")


def test_what_went_on_meanwhile(tmp_path: Path) -> None:
    counters(tmp_path)
    watch = cautions.Watch(tmp_path)
    assert [word for word in watch.finish() if "control group" not in word] == []
    counters(tmp_path, idle=90, steal=10, swapped=7)
    assert [word for word in watch.finish() if "control group" not in word] == [
        "the host took 10 % of the processors' time for others (steal)",
        "the machine swapped: 7 pages went in or out",
    ]


def test_others_at_work_are_seen_at_the_start(tmp_path: Path) -> None:
    counters(tmp_path)
    put(tmp_path, "proc/loadavg", "999.0 0.00 0.00 1/100 1")
    assert "load average was 999.0" in cautions.Watch(tmp_path).finish()[0]


def test_a_machine_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    assert cautions.standing(tmp_path) == []
    assert [word for word in cautions.Watch(tmp_path).finish() if "control group" not in word] == []
    assert machine.mitigations(tmp_path) == "not readable"
    assert machine.init_on_alloc(tmp_path) == "not readable"
    assert machine.frequency(tmp_path) == "governor not readable, turbo not readable"
    assert machine.sizes_of_thp(tmp_path) == "not in this kernel"


def test_equals_that_differ_make_a_noisy_machine() -> None:
    assert cautions.of_equals(Estimate(1.0, 0.97, 1.03)) == []
    assert "may seem 25 % apart" in cautions.of_equals(Estimate(0.8, 0.79, 0.81))[0]


def test_mitigations_are_counted_by_kind(tmp_path: Path) -> None:
    put(tmp_path, "spectre_v1", "Mitigation: usercopy barriers")
    put(tmp_path, "mds", "Vulnerable: no microcode")
    put(tmp_path, "l1tf", "Not affected")
    assert machine.mitigations(tmp_path) == "mitigated: spectre_v1; vulnerable: mds; not affected by 1 other"


def test_sizes_of_multi_size_pages(tmp_path: Path) -> None:
    put(tmp_path, "hugepages-2048kB/enabled", "always [inherit] madvise never")
    put(tmp_path, "hugepages-64kB/enabled", "[always] inherit madvise never")
    put(tmp_path, "hugepages-16kB/enabled", "always inherit madvise [never]")
    assert machine.sizes_of_thp(tmp_path) == "64 KiB always, 2048 KiB inherit"


def test_init_on_alloc_is_read_from_the_command_line_first(tmp_path: Path) -> None:
    put(tmp_path, "proc/cmdline", "root=/dev/vda init_on_alloc=1 quiet")
    assert machine.init_on_alloc(tmp_path) == "1 (command line)"


def test_a_description_is_words_and_the_same_twice() -> None:
    found = describe()
    assert all(found.values())
    assert {"mitigations", "multi-size huge pages", "init_on_alloc", "AutoNUMA", "malloc settings"} < set(found)
    assert describe() == found
