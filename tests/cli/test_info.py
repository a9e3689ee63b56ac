"""`firsttouch info` as a user sees it, on this machine."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Start, clean_environment

BLOCKS = [
    "machine",
    "pages",
    "huge page pools",
    "numa",
    "kernel",
    "malloc",
    "cgroup",
    "limits",
    "what it means",
]


def test_a_block_for_each_topic(firsttouch: Start) -> None:
    done = firsttouch("info")
    assert (done.returncode, done.stderr) == (0, "")
    heads = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert heads == BLOCKS
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_json_says_what_the_machine_says(firsttouch: Start, tmp_path: Path) -> None:
    firsttouch("info", "--json", "info.json")
    found = json.loads((tmp_path / "info.json").read_text())
    assert found == json.loads(firsttouch("info", "--json", "-").stdout) | {
        name: found[name]
        for name in ("machine", "cgroup")  # these move while one looks
    }
    assert found["pages"]["page_bytes"] == resource.getpagesize()
    assert found["machine"]["processors"] == len(os.sched_getaffinity(0))
    assert found["kernel"]["release"] == os.uname().release
    assert found["limits"]["overcommit"] == int(Path("/proc/sys/vm/overcommit_memory").read_text())


@pytest.mark.parametrize(("end", "said"), [("| true", ""), ("> /dev/full", "No space left on device")])
def test_output_that_goes_nowhere(end: str, said: str) -> None:
    command = f"{sys.executable} -m firsttouch info {end}"
    done = subprocess.run(["bash", "-c", command], env=clean_environment(), capture_output=True, text=True, check=False)
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)


def test_quiet_leaves_the_meaning(firsttouch: Start) -> None:
    assert firsttouch("info", "-q").stdout.startswith("what it means\n")


def test_trim_threshold_is_explained(firsttouch: Start) -> None:
    said = firsttouch("info", "-q", environment={"MALLOC_TRIM_THRESHOLD_": "65536"}).stdout
    assert "MALLOC_TRIM_THRESHOLD_=65536 is set" in said
    assert "Dask" in said
    tuned = firsttouch("info", "-q", environment={"MALLOC_TRIM_THRESHOLD_": str(1 << 30)}).stdout
    assert "is set" not in tuned


def test_tunables_in_force(firsttouch: Start) -> None:
    tunables = "glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=4096"
    done = firsttouch("info", environment={"GLIBC_TUNABLES": tunables, "MALLOC_ARENA_MAX": "1"})
    assert "glibc.malloc.hugetlb=1" in done.stdout
    assert "MALLOC_ARENA_MAX=1" in done.stdout
    assert "malloc itself requests huge pages" in " ".join(done.stdout.split())
    assert "glibc.malloc.trim_threshold=4096 is set" in done.stdout


def test_limits_are_inherited_and_explained(firsttouch: Start) -> None:
    limit = 64 << 30

    def lower() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = firsttouch("info", preexec_fn=lower)
    assert "address space        64 GiB" in done.stdout
    assert "ulimit -v is 64 GiB" in done.stdout
