"""When shared memory is released, and the errors afterwards."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import sharing
from tests.probe import MIB, wait_until
from tests.programs import ask, run
from tests.shared.work import memory_files


def shmem() -> int:
    """The machine's shared memory in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024
    raise LookupError("Shmem")


def test_every_handle_under_way_is_good_once() -> None:
    before = memory_files()
    a = ft.sharing.share(np.arange(5))
    sent = [pickle.dumps(a[i:]) for i in range(3)]
    assert pickle.loads(sent[1]).tolist() == [1, 2, 3, 4]
    del a
    assert pickle.loads(sent[0]).tolist() == [0, 1, 2, 3, 4]
    assert wait_until(lambda: memory_files() == before + 1)
    assert pickle.loads(sent[2]).tolist() == [2, 3, 4]
    assert wait_until(lambda: memory_files() == before)


def test_memory_of_a_process_that_is_killed_goes() -> None:
    """By numbers: files, and the machine's bytes. Others use shared memory too, so there is much of it."""
    size = 256 * MIB
    run(f"""
        import multiprocessing, time
        from tests.shared import work
        from tests.shared.test_lifetime import shmem
        context = multiprocessing.get_context("spawn")
        start = shmem()

        # Its only holder is killed: it is gone at once.
        queue = context.Queue()
        holder = context.Process(target=work.die_with, args=(queue, {size} // 8), daemon=True)
        holder.start()
        holder.join(60)
        assert holder.exitcode == -9
        assert probe.wait_until(lambda: shmem() < start + {size} // 2)
        assert "has ended" in probe.message(ft.sharing.SharedArrayError, lambda: work.take(queue))

        # Its maker is killed, and we hold it.
        # (A queue of its own each time: who is killed may hold its lock.)
        queue, back = context.Queue(), context.Queue()
        maker = context.Process(target=work.put_and_wait, args=(queue, {size} // 8, back), daemon=True)
        maker.start()
        a = work.take(queue)
        maker.kill(); maker.join()
        assert a.sum() == {size} // 8
        assert shmem() > start + {size} // 2

        # Another who has it is killed; we let it go.
        queue = context.Queue()
        other = context.Process(target=work.hold, args=(ft.sharing.share(a), queue), daemon=True)
        other.start()
        assert work.take(queue) == 1
        other.kill(); other.join()
        assert work.memory_files() == 1
        del a
        assert probe.wait_until(lambda: shmem() < start + {size} // 2), (start, shmem())
        assert probe.wait_until(lambda: work.memory_files() == 0), work.links()
    """)


def test_a_number_that_means_something_else_is_noticed(tmp_path: Path) -> None:
    a = ft.shared(10)
    reduced: Any = a.__reduce_ex__(5)
    remake, (words, *rest) = reduced
    own = open(tmp_path / "file", "w")  # noqa: SIM115
    sharing._mapped.clear()
    with pytest.raises(ft.sharing.SharedArrayError, match="no longer holds this shared array"):
        remake((words[0], words[1], own.fileno(), *words[3:]), *rest)
    with pytest.raises(ft.sharing.SharedArrayError, match="no longer holds this shared array"):
        remake(("00" * 16, *words[1:]), *rest)
    with pytest.raises(ft.sharing.SharedArrayError, match=r"has ended, .* on another host .*numpy.array\(a\), a copy"):
        remake((words[0], 2**22 + 5, *words[2:]), *rest)
    own.close()
    assert (tmp_path / "file").read_bytes() == b""  # nothing was settled there


def test_limits_of_the_process() -> None:
    found = ask("""
        import errno, json, pickle, resource
        handle = pickle.dumps(kept := ft.shared(1 << 28, np.uint8))
        from firsttouch import sharing
        found = []
        def attempt(call):
            try: call()
            except Exception as error: found.append([type(error).__name__, str(error)])
            else: found.append(["nothing", ""])
        sharing._mapped.clear()
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        import os
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), files[1]))
        attempt(lambda: ft.shared(10))
        attempt(lambda: pickle.loads(handle))
        resource.setrlimit(resource.RLIMIT_NOFILE, files)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        attempt(lambda: ft.shared(1 << 21, np.uint8))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        space = probe.status("VmSize")
        resource.setrlimit(resource.RLIMIT_AS, (space + (1 << 27), resource.RLIM_INFINITY))
        attempt(lambda: ft.shared(1 << 28, np.uint8))
        attempt(lambda: pickle.loads(handle))
        attempt(lambda: ft.shared(10))
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        pickle.loads(handle)
        print(json.dumps(found))
    """)
    kinds = [kind for kind, _ in found]
    assert kinds == ["OSError", "SharedArrayError", "OSError", "MemoryError", "MemoryError", "nothing"], found
    said = [text for _, text in found]
    for text, limit in zip(said, ("NOFILE", "NOFILE", "RLIMIT_FSIZE", "RLIMIT_AS", "RLIMIT_AS"), strict=False):
        assert limit in text, json.dumps(found)


def test_a_child_of_a_fork_does_not_keep_what_its_parent_has_under_way() -> None:
    run("""
        import os, pickle, time
        from tests.shared.work import memory_files
        handle = pickle.dumps(ft.shared(10))
        assert memory_files() == 1
        pid = os.fork()
        if pid == 0:
            ok = probe.wait_until(lambda: memory_files() == 0)
            os._exit(0 if ok else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert memory_files() == 1
        pickle.loads(handle)
    """)
