"""Handles in flight: the limits on arrays that were pickled and dropped but never opened."""

import json
from typing import Any

import pytest

from tests.programs import ask, run

#: Nothing waits for what these programs leave unopened.
_NO_GRACE = "from firsttouch import sharing; sharing._left = 0.0"


def test_file_descriptors_are_left_for_the_rest_of_the_process() -> None:
    said = ask(f"""
        import json, os, pickle, resource
        from tests.shared.work import memory_files
        {_NO_GRACE}
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        handles, most = [], 0
        for i in range(5_000):
            handles.append(pickle.dumps(ft.shared(100)))
            most = max(most, memory_files()) if i % 50 == 0 else most
        open("/dev/null").close()
        newest = pickle.loads(handles[-1])
        messages = [probe.message(ft.sharing.SharedArrayError, lambda: pickle.loads(handles[0]))]
        print(json.dumps([most, len(newest), messages]))
    """)
    most, size, messages = said
    assert most <= 256 // 4 + 1
    assert size == 100
    assert "RLIMIT_NOFILE" in messages[0], messages


def test_an_array_whose_process_has_no_descriptor_left_takes_that_of_the_oldest_in_flight() -> None:
    run(f"""
        import os, pickle, resource
        {_NO_GRACE}
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        handles = [pickle.dumps(ft.shared(100)) for _ in range(10)]
        files = []
        try:
            while True: files.append(open("/dev/null"))
        except OSError: pass
        kept = [ft.shared(10) for _ in range(9)]
        try: more = [ft.shared(10) for _ in range(9)]
        except OSError as error: assert "RLIMIT_NOFILE" in str(error)
        else: raise AssertionError("there were more")
        files.clear()
        assert "RLIMIT_NOFILE" in probe.message(ft.sharing.SharedArrayError, lambda: pickle.loads(handles[0]))
    """)


def test_memory_is_left_for_others() -> None:
    held, size, message = ask(f"""
        import json, os, pickle
        from tests.shared.test_in_flight import bytes_of_files
        {_NO_GRACE}
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        n = 64 << 20
        handles, held = [], 0
        for _ in range(total // 16 // n + 4):   # sparse: nothing is touched
            handles.append(pickle.dumps(ft.shared(n, np.uint8)))
            held = max(held, bytes_of_files())
        large = pickle.dumps(ft.shared(total // 8, np.uint8))     # the newest may be of any size
        message = probe.message(ft.sharing.SharedArrayError, lambda: pickle.loads(handles[0]))
        print(json.dumps([held / total, pickle.loads(large).nbytes / total, message]))
    """)
    assert held < 1 / 16 + 0.05
    assert size == pytest.approx(1 / 8, rel=0.01)
    assert "sixteenth of the memory" in message


def bytes_of_files() -> int:
    import os

    found = 0
    for number in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{number}"
        try:
            if os.readlink(path).startswith("/memfd:firsttouch:"):
                found += os.stat(path).st_size
        except OSError:
            continue
    return found


def test_an_array_that_is_pickled_again_and_again_stays_cheap_to_pickle() -> None:
    """To be hashed, say, which opens nothing."""
    first, later = ask(f"""
        import json, pickle, time
        {_NO_GRACE}
        a = ft.shared(10)
        def seconds(n):
            began = time.process_time()
            for _ in range(n): pickle.dumps(a)
            return (time.process_time() - began) / n
        seconds(50)
        first = seconds(500)
        seconds(8_000)
        print(json.dumps([first, seconds(500)]))
    """)
    assert later < 4 * first + 20e-6


def test_a_handle_that_was_opened_already_says_so() -> None:
    text: Any = run("""
        import pickle
        handle = pickle.dumps(ft.shared(10))
        pickle.loads(handle)
        from tests.shared.work import memory_files
        assert probe.wait_until(lambda: memory_files() == 0)
        print(probe.message(ft.sharing.SharedArrayError, lambda: pickle.loads(handle)))
    """)
    assert "has been opened already" in text


@pytest.mark.parametrize("how", ["plain", "fork", "multiprocessing"])
def test_a_process_waits_its_grace_period_once(how: str) -> None:
    program = """
        import os, pickle, time, multiprocessing
        def work():
            pickle.dumps(ft.shared(10))
        if HOW == "plain":
            began = time.monotonic()
            work()
        elif HOW == "fork":
            work(); pickle.loads(pickle.dumps(kept := ft.shared(10)))
            pid = os.fork()
            if pid == 0:
                began = time.monotonic()
                work()
            else:
                began = time.monotonic(); os.waitpid(pid, 0)
                os.write(1, b"%r\\n" % (time.monotonic() - began)); os._exit(0)
        else:
            kept = ft.shared(10)
            began = time.monotonic()
            child = multiprocessing.get_context("fork").Process(target=work)
            child.start(); child.join()
            os.write(1, b"%r\\n" % (time.monotonic() - began)); os._exit(0)
        class Last:
            def __del__(self, write=os.write, now=time.monotonic, began=began, pid=os.getpid()):
                write(1, b"%r\\n" % (now() - began))
        if HOW == "plain": last = Last()
    """.replace("HOW", repr(how))
    seconds = json.loads(run(program).splitlines()[-1])
    assert 1.9 < seconds < 3.5, seconds
