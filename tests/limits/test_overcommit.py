"""vm.overcommit_memory=2: the machine commits only what it has, and reservations count.

The setting is the whole machine's, so this runs only where FIRSTTOUCH_TEST_OVERCOMMIT=1 says that it may. The ratio is
raised beforehand, so that nobody else on the machine runs into the new limit.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.limits.programs import PROGRAMS, plainly, pooled
from tests.programs import ask

MODE, RATIO = Path("/proc/sys/vm/overcommit_memory"), Path("/proc/sys/vm/overcommit_ratio")

pytestmark = pytest.mark.skipif(
    os.environ.get("FIRSTTOUCH_TEST_OVERCOMMIT") != "1" or not os.access(MODE, os.W_OK),
    reason="it would change the whole machine: FIRSTTOUCH_TEST_OVERCOMMIT=1 as root allows it",
)


@contextlib.contextmanager
def strict() -> Iterator[None]:
    before = MODE.read_text(), RATIO.read_text()
    RATIO.write_text("1000")
    try:
        MODE.write_text("2")
        yield
    finally:
        MODE.write_text(before[0])
        RATIO.write_text(before[1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_as_they_do_plainly(name: str) -> None:
    said, _ = plainly(name)
    with strict():
        assert pooled(name) == said


def test_nothing_is_committed_that_is_not_used() -> None:
    program = """
        import json
        before = probe.status("VmData")
        {install}
        array = np.ones(1 << 20)
        print(json.dumps(probe.status("VmData") - before))
    """
    with strict():
        pooled_bytes, plain = (ask(program.format(install=install)) for install in ("ft.install()", ""))
    assert pooled_bytes <= plain + (16 << 20)


def test_the_limit_is_named() -> None:
    with strict():
        found = ask("""
            import json
            ft.install()
            kept = np.ones(1 << 20)
            probe.message(MemoryError, lambda: np.empty(1 << 45, np.uint8))
            failure = ft.last_failure()
            assert kept.all() and np.ones(10 << 20, np.uint8).all()
            print(json.dumps([failure.asked, failure.limit, failure.reason]))
        """)
    assert found[:2] == [1 << 45, "vm.overcommit_memory=2"]
    assert "vm.overcommit_memory=2 lets the machine commit " in found[2]
