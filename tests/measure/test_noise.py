"""A hundred runs on a busy machine find the same figures."""

import json
import subprocess
import sys

from tests.programs import ask

_BUSY = "import numpy as np\nwhile True: np.ones(300_000).sum()"

_PROGRAM = """
    import json, threading, time
    x = np.arange(50_000.)

    def work():
        for n in (3000, 20_000, 33_000, 50_000):
            v = x[:n]
            y = (v - v.mean()) / v.std() + np.sqrt(v) * 2
            z = np.concatenate([y, y]); z.sort()
        kept = [np.ones(5000 + i * 700) for i in range(20)]
        kept[::2] = [None] * 10
        thread = threading.Thread(target=lambda: kept.extend(np.zeros(9000) for _ in range(10)))
        thread.start(); thread.join()

    work()  # a thread's first array allocates once more
    found = []
    for _ in range(100):
        ft.uninstall()
        with ft.measure() as plain:
            work()
        ft.install()
        with ft.measure() as pooled:
            work()
        found.append([plain.as_dict(), pooled.as_dict()])
    print(json.dumps(found))
"""


def test_a_hundred_runs_under_load_spread_less_than_a_percent() -> None:
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(3)]
    try:
        found = ask(_PROGRAM)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    exact = ("allocated", "arrays", "peak")
    for pooled, name in [(0, each) for each in exact] + [(1, each) for each in (*exact, "first_touched", "recycled")]:
        values = [run[pooled][name] for run in found]
        assert min(values) > 0
        assert max(values) - min(values) <= 0.01 * max(values), (pooled, name, json.dumps(values))


def test_idle_memory_does_not_decay_while_somebody_measures() -> None:
    recycled, idle = ask("""
        import json, time
        pool = ft.pool(decay=0.2)
        with ft.use(pool), ft.measure() as m:
            a = np.ones(10**6); del a
            time.sleep(1)
            b = np.ones(10**6); del b
        assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)  # and then it does
        print(json.dumps([m.recycled_arrays, ft.stats(pool).idle]))
    """)
    assert (recycled, idle) == (1, 0)
