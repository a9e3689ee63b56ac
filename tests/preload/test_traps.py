"""Pitfalls of replacing malloc in a foreign program, with a C program for each."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.preload.starting import Bench, has_huge_pages, library, numbers, output, start
from tests.preloading import peer

#: Programs that check something themselves and say so in a word, with options of the compiler and arguments.
TRAPS: dict[str, list[tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    "kept": [("contract", (), ())],  # what the manual pages promise
    "forked": [
        ("forks", (), ()),  # fork handlers allocate
        ("forks", ("-DEARLY",), ()),  # and are registered before all constructors
        ("cancelled", (), ()),  # a fork is no cancellation point
    ],
    "own": [("own", (), ())],  # the program has a malloc of its own
    "plain": [("altered", (), ())],  # what is done to pages ends with their block
    "allowed": [("restricted", (), ()), ("restricted", (), ("churn",))],  # system calls are restricted, also after use
    "0 failures": [("interrupted", (), ()), ("interrupted", (), ("churn",))],  # a handler that interrupts malloc forks
    "spawned": [("spawning", (), ())],
}


@pytest.mark.parametrize(
    ("program", "options", "words", "said"),
    [(*trap, said) for said, traps in TRAPS.items() for trap in traps],
    ids=lambda part: part if isinstance(part, str) else " ".join(part),
)
def test_a_program_finds_what_it_finds_plainly(
    bench: Bench, program: str, options: tuple[str, ...], words: tuple[str, ...], said: str
) -> None:
    for served in (False, True):
        assert output(bench.compiled(program, *options), *words, served=served) == f"{said}\n"


@pytest.mark.parametrize(
    ("program", "options", "settings", "said"),
    [
        ("contract", (), "threshold=16384", "kept"),
        ("contract", (), "threshold=1MiB", "kept"),
        ("secure", ("-DSECURE=0",), "", "pool"),
        ("secure", ("-DSECURE=1",), "", "C library"),  # more rights than its caller
        *(
            ("secure", ("-DSECURE=0",), settings, said)
            for settings, said in [
                ("threshold=much decay=-1 huge= more=less word", "pool"),  # what is not understood is left out
                ("threshold=2MiB", "C library"),
                ("word  threshold=2MiB", "C library"),
                (" more=less threshold=2MiB", "C library"),
                ("threshold=2MiB json", "C library"),
            ]
        ),
    ],
)
def test_settings(bench: Bench, program: str, options: tuple[str, ...], settings: str, said: str) -> None:
    assert output(bench.compiled(program, *options), settings=settings) == f"{said}\n"


def test_buffers_grow_in_place(bench: Bench) -> None:
    by_page, by_half, doubling, in_turns = numbers(bench.compiled("growth"))
    assert max(by_page, by_half, doubling) <= 2
    assert in_turns <= 20 * 24  # 20 blocks that grow tenfold: each moves once an eighth at most, of 2,304 steps


def test_the_c_library_keeps_small_temporaries_as_it_does_alone(bench: Bench) -> None:
    for served in (False, True):
        assert numbers(bench.compiled("trim"), served=served) < [200]


def test_many_blocks_are_freed_in_time_that_grows_with_their_number(bench: Bench) -> None:
    program = bench.compiled("torn")
    (few,), (four_times_as_many,) = (numbers(program, number) for number in ("15000", "60000"))
    assert four_times_as_many < 10 * max(few, 50)  # it was 60 times where a free looked at all blocks


def test_sparse_blocks_stay_sparse(bench: Bench) -> None:
    plain = numbers(bench.compiled("sparse"), served=False)
    served = numbers(bench.compiled("sparse"))
    assert all(ours - theirs < 2048 for ours, theirs in zip(served, plain, strict=True))


@pytest.mark.skipif(not has_huge_pages(), reason="no transparent huge pages here")
def test_dense_blocks_get_huge_pages_when_they_are_used_again(bench: Bench) -> None:
    first, last = numbers(bench.compiled("dense"))
    assert first < 4096 < 32 << 10 < last
    assert numbers(bench.compiled("dense"), settings="huge=never") == [0, 0]


def test_a_thread_that_dlopen_waits_for(bench: Bench) -> None:
    bench.compiled("plugin", "-shared", "-fPIC")
    for served in (False, True):
        assert output(bench.compiled("loading"), served=served, cwd=bench.folder) == "loaded, missing\n"


def test_a_program_whose_malloc_is_another_allocator_s(bench: Bench) -> None:
    """Two allocators under one name would free each other's blocks: the program's own serves all, or the pool may."""
    assert output(bench.compiled("rivals")) == "pool\n"
    assert output(bench.compiled("rivals", "-no-pie", "-fno-pie")) == "pool\n"
    assert output(bench.compiled("rivals", "-DCOUNTING")) == "another\n"
    jemalloc = peer("jemalloc")
    assert output(bench.compiled("rivals", "-Wl,--no-as-needed", jemalloc)) == "another\n"
    assert output(bench.compiled("rivals"), env={"LD_PRELOAD": f"{library()}:{jemalloc}"}) == "another\n"


def test_small_stacks(bench: Bench) -> None:
    (plain,) = numbers(bench.compiled("stack"), served=False)
    (served,) = numbers(bench.compiled("stack"))
    assert served <= plain + 2560


@pytest.mark.parametrize("served", [False, True])
def test_a_refusal_keeps_no_memory_from_others(bench: Bench, served: bool) -> None:
    assert numbers(bench.compiled("refused"), served=served) == [2]


def test_no_thread_before_it_is_worth_one(bench: Bench) -> None:
    little, much, of_child, unshared, _ = numbers(bench.compiled("threads"), served=False)
    assert (little, much, of_child) == (1, 1, 1)
    served = numbers(bench.compiled("threads"))
    assert served[:4] == [1, 2, 1, unshared]


@pytest.mark.parametrize("how", ["double", "double-large", "inside", "page", "resize", "measure"])
def test_a_wrong_address_ends_the_program(bench: Bench, how: str) -> None:
    done = start(bench.compiled("wrong"), how)
    assert done.returncode == -signal.SIGABRT
    assert re.fullmatch(r"firsttouch: no large block begins at 0x[0-9a-f]+ \(.*\)\n", done.stderr)
    assert done.stdout == ""


@pytest.mark.parametrize("which", ["address", "thread"])
def test_sanitizers_see_every_block(bench: Bench, which: str) -> None:
    program = bench.compiled("overflow", f"-fsanitize={which}")
    env = {"ASAN_OPTIONS": "verify_asan_link_order=0"}
    if start(program, served=False).returncode:
        pytest.skip("the sanitizer does not work here")
    assert output(program, env=env) == "clean\n"
    if which == "address":
        assert "heap-buffer-overflow" in start(program, "overflow", env=env).stderr


@pytest.mark.parametrize("use", ["3 100 20", "20 1024 3", "3 60000 3", "40 20000 3", "200 300 60"])
def test_idle_memory_goes_home(bench: Bench, use: str) -> None:
    program = bench.compiled("idle")
    (plain,), (served,) = numbers(program, *use.split(), served=False), numbers(program, *use.split())
    assert served <= plain + (8 << 10)


def test_the_library_needs_no_static_thread_local_storage() -> None:
    said = subprocess.run(["readelf", "-dlW", library()], capture_output=True, text=True, check=True).stdout
    assert "STATIC_TLS" not in said
    assert "NODELETE INITFIRST" in said
    (size,) = (int(line.split()[5], 16) for line in said.splitlines() if line.split()[:1] == ["TLS"])
    assert size <= 256  # glibc keeps some 1,600 bytes for all libraries that come late


def test_nothing_is_exported_by_accident() -> None:
    said = subprocess.run(["nm", "-D", "--defined-only", library()], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in said.splitlines()} == {
        *("malloc", "calloc", "realloc", "free", "free_sized", "free_aligned_sized"),
        *("posix_memalign", "aligned_alloc", "memalign", "malloc_usable_size", "malloc_trim"),
        *("madvise", "mprotect", "pkey_mprotect", "mlock", "mlock2", "prctl", "exit", "__libc_start_main"),
        *("_exit", "_Exit"),
    }


def test_under_seconds_of_random_use(bench: Bench) -> None:
    for seed, settings in enumerate(["", "threshold=16384 decay=0", "max_idle=0", "decay=0.2"]):
        assert output(bench.compiled("stress"), str(seed), "2", settings=settings) == "whole\n"


def test_a_program_in_another_folder_and_without_environment(bench: Bench, tmp_path: Path) -> None:
    program = bench.compiled("contract")
    done = subprocess.run(
        [program], cwd=tmp_path, env={"LD_PRELOAD": library()}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\n", "")
