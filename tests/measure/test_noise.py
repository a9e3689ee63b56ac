"""A hundred runs on a busy machine find the same figures."""

from tests.programs import ask


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
