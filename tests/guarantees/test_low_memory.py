"""Low memory: see the page."""

import re
import resource

import pytest

from tests.programs import ask, run

pytestmark = pytest.mark.quick


def test_at_rlimit_memlock_a_locked_array_is_a_memoryerror_that_names_the_limit() -> None:
    message = ask("""
        import json, os, resource
        probe.message(MemoryError, lambda: ft.empty(1 << 60, np.uint8))  # loads what that needs
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
        if os.geteuid() == 0:  # who may lock as much as he likes
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
        message = probe.message(MemoryError, lambda: ft.pages(lock=True).ones(8 << 20, np.uint8))
        assert ft.pages(lock=True).ones(1 << 18, np.uint8).all() and ft.ones(8 << 20, np.uint8).all()
        print(json.dumps(message))
    """)
    assert "RLIMIT_MEMLOCK allows this process 1 MiB of locked memory" in message


def test_at_rlimit_nofile_arrays_are_served_and_sharing_them_fails_with_an_error() -> None:
    message = ask("""
        import json, os, resource
        ft.install()
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        files = []
        try:
            while True:
                files.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        arrays = [np.ones(size, np.uint8) for size in (1000, 50_000, 3 << 20, 40 << 20)]
        kinds = [ft.pages(populate=True), ft.mimalloc(), ft.limited(), ft.guarded(), ft.ScratchBuffer()]
        arrays += [kind.ones(5 << 20, np.uint8) for kind in kinds]
        assert all(array.all() for array in arrays)
        said = probe.message(OSError, lambda: ft.shared(1000))
        ft.inspect(arrays[2]), ft.trim(), ft.stats()
        del arrays
        [os.close(file) for file in files]
        ft.shared(1000)
        print(json.dumps(said))
    """)
    assert "files" in message.lower() or "descriptor" in message.lower(), message


def test_at_a_budget_a_memoryerror_lists_the_largest_living_arrays_with_their_lines() -> None:
    shown, reason, plain = ask("""
        import json, traceback
        ft.install(ft.limited(ft.pool(), "100 MiB"), arrays_only=True)
        def model():
            return np.ones(30 << 20, np.uint8)
        def mesh():
            return [np.zeros(8 << 20, np.uint8) for _ in range(5)]
        kept = [model(), mesh(), [np.ones(2048) for _ in range(600)]]
        try:
            np.ones(40 << 20, np.uint8)
        except MemoryError:
            shown, reason = traceback.format_exc(), ft.last_failure().reason
        try:
            ft.ones(40 << 20, np.uint8)
        except MemoryError as error:
            plain = str(error)
        print(json.dumps([shown, reason, plain]))
    """)
    assert reason in shown
    assert "Unable to allocate 40.0 MiB" in shown
    assert reason in plain
    first, title, *lines = reason.splitlines()
    assert first.startswith("cannot allocate 40 MiB: limited() allows 100 MiB, of which 79.38 MiB are in use")
    assert title.strip() == "the largest living blocks:"
    assert [line.split("  ")[-1].partition(" ")[0] for line in lines] == [f"<string>:{at}" for at in (10, 8, 11)]
    assert re.search(r" 30\.0 MiB  <string>:8$", lines[1])
    small = re.search(r"<string>:11 \((\d+) blocks\)$", lines[2])
    assert small is not None
    assert abs(int(small[1]) - 600) < 300  # of which one in 16 is listed


@pytest.mark.parametrize("mebibytes", [4, 7])
def test_at_the_budget_auto_of_rlimit_as_other_code_still_gets_memory(mebibytes: int) -> None:
    run(f"""
        import mmap, resource
        room = probe.status("VmSize") + (600 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, {resource.RLIM_INFINITY}))
        ft.install("limited")
        arrays = []
        try:
            while True:
                arrays.append(np.ones({mebibytes} << 20, np.uint8))
        except MemoryError:
            assert ft.last_failure().limit == "limited"
            reason = ft.last_failure().reason
            number, unit = reason.split("; RLIMIT_AS allows ")[1].split(",")[0].split(" ")
            scale = {{"bytes": 1, "MiB": 1 << 20, "GiB": 1 << 30}}[unit]
            assert abs(float(number) * scale - room) < room / 100, (reason, room)
        assert len(mmap.mmap(-1, 50 << 20)) and len(arrays) > 40
    """)


def test_the_budget_auto_follows_limits_that_change() -> None:
    run("""
        import resource, time
        ft.install("limited")
        def fill():
            arrays = []
            try:
                while len(arrays) < 200:
                    arrays.append(np.empty(8 << 20, np.uint8))
            except MemoryError:
                assert ft.last_failure().limit == "limited"
                assert "RLIMIT_AS allows" in ft.last_failure().reason
            return len(arrays)
        fill()
        assert ft.last_failure() is None
        ft.trim()
        room = probe.status("VmSize") + (500 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
        time.sleep(1.1)  # limits are read once a second
        few = fill()
        assert few < 80, few
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        time.sleep(1.1)
        assert fill() == 200
    """)
