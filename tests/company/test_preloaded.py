"""Other allocators, preloaded: they serve NumPy's small arrays and everything else, firsttouch serves large arrays."""

import pytest

from tests.preloading import PEERS, peer
from tests.programs import ask


@pytest.mark.parametrize("name", PEERS)
def test_arrays_of_all_sizes_from_many_threads_and_forks(name: str) -> None:
    library = peer(name)
    loaded, recycled = ask(
        """
        import json, os, random, subprocess, sys, threading
        from pathlib import Path
        before = [np.full(size, 1, np.uint8) for size in (10, 5_000, 50_000, 1 << 20, 40 << 20)]
        pool = ft.pool(decay=0.1)
        ft.install(pool)
        wrong = []
        def body(seed):
            dice, kept = random.Random(seed), []
            for turn in range(400):
                array = np.empty(dice.randrange(1, 1 << dice.randrange(4, 23)), np.uint8)
                probe.fill(array, turn)
                kept.append((array, turn))
                if len(kept) > 8:
                    old, its = kept.pop(dice.randrange(8))
                    if not probe.intact(old, its):
                        wrong.append(its)
                if turn % 10 == 0:
                    old, its = kept[0]
                    size = old.size
                    old.resize(size * 3, refcheck=False)
                    kept[0] = old[:size].copy(), its
        threads = [threading.Thread(target=body, args=(seed,)) for seed in range(3)]
        for thread in threads: thread.start()
        for turn in range(10):
            child = os.fork()
            if not child:
                arrays = [np.ones(size) for size in (100, 10_000, 1_000_000)]
                os._exit(7 if all(array.all() for array in arrays) else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        for thread in threads: thread.join()
        assert not wrong and all((array == 1).all() for array in before)
        del before
        for allocator in (ft.malloc(), ft.calloc(), ft.aligned(4096), ft.numpy_default()):
            with ft.use(allocator):
                arrays = [np.zeros(size, np.uint8) for size in (10, 50_000, 9 << 20)]
                assert not any(array.any() for array in arrays)
                for array in arrays:
                    array[:] = 1
                    array.resize(array.size * 2, refcheck=False)
                assert [int(array.sum()) for array in arrays] == [10, 50_000, 9 << 20]
        print(json.dumps([Path("/proc/self/maps").read_text(), ft.stats(pool).recycled]))
        """,
        "-W",
        "ignore::DeprecationWarning",  # of threads, at each fork
        env={"LD_PRELOAD": library},
    )
    assert library.rsplit("/", 1)[1].split(".so")[0] in loaded
    assert recycled > 100
