"""Child processes of the program are pooled, and with %p each writes its own report."""

import json
from pathlib import Path

import pytest

from .conftest import Start, Write

PROGRAM = """
import os, sys

def work(number):
    import numpy
    import firsttouch
    array = numpy.full(1 << 20, float(number))
    for _ in range(20):
        array = array + 1
    return firsttouch.is_installed(), os.getpid(), float(array.sum()) == (number + 20) * (1 << 20)

def through(kind):
    if kind == "loky":
        import joblib
        return joblib.Parallel(n_jobs=2)(joblib.delayed(work)(number) for number in range(4))
    import multiprocessing
    pool = multiprocessing.get_context(kind).Pool(2)
    found = pool.map(work, range(4))
    pool.close()
    pool.join()
    return found

if __name__ == "__main__":
    if "--numpy" in sys.argv:
        import numpy
        for _ in range(3000): numpy.ones(1 << 12)
    for installed, process, right in through(sys.argv[1]):
        print(installed, process != os.getpid(), right)
"""

#: NumPy is imported by the children, or before them by the parent, too.
CASES = [
    ("fork", ""),
    ("fork", "--numpy"),
    pytest.param("spawn", "", marks=pytest.mark.slow),
    pytest.param("forkserver", "--numpy", marks=pytest.mark.slow),
    ("loky", ""),
]


@pytest.mark.parametrize(("kind", "parent"), CASES)
def test_workers_are_pooled_and_report(
    python: Start, firsttouch: Start, write: Write, tmp_path: Path, kind: str, parent: str
) -> None:
    script = write("program.py", PROGRAM)
    words = (script, kind, parent) if parent else (script, kind)
    done = firsttouch("run", "--json", "report-%p.json", *words)
    assert done.stdout == "True True True\n" * 4
    assert done.stderr.count("firsttouch, process") == 1
    assert "Traceback" not in done.stderr
    found = [json.loads(path.read_text()) for path in tmp_path.glob("report-*.json")]
    assert [report["main_process"] for report in found].count(True) == 1
    workers = [report for report in found if not report["main_process"]]
    assert len(workers) == 2
    assert len({report["process"] for report in found}) == 3
    # Their own work only, not what a fork inherited: 3,000 arrays; a worker that got no task did none.
    own = [report["pool"]["allocations"] for report in workers if report["pool"]]
    assert 4 * 20 <= sum(own) < 2000
    # The same output as under python, and with a file for one process, that one's alone.
    plain, ours = python(*words), firsttouch("run", "-q", "--json", "one.json", "--allocator=filled(pages)", *words)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout.replace("False", "True"), plain.stderr, 0)
    assert json.loads((tmp_path / "one.json").read_text())["main_process"]
