"""Forks and child processes: only the started process is traced."""

import json
from pathlib import Path

from tests.cli.conftest import Start

from .conftest import Trace

FORK = """
import numpy as np, os, sys
a = np.ones(1 << 15)
child = os.fork()
b = [np.ones(1 << 15) for _ in range(40 if child == 0 else 10)]
del a
if child:
    assert os.waitpid(child, 0)[1] == 0
sys.exit(0)
"""

WORKERS = """
import multiprocessing as mp, numpy as np
def work(n): return float(np.ones(1 << 15).sum())
if __name__ == "__main__":
    with mp.get_context("{how}").Pool(2) as pool:
        print(sum(pool.map(work, range(20))))
        pool.close()
        pool.join()
"""


def test_a_forked_child_leaves_its_parents_trace_alone_and_warns_of_nothing(trace: Trace) -> None:
    found, done = trace("import warnings\nwarnings.simplefilter('error')\n" + FORK)
    assert done.returncode == 0, done.stderr
    assert 11 << 18 <= found["allocated_bytes"] < 13 << 18


def test_workers_are_not_traced(firsttouch: Start, tmp_path: Path) -> None:
    for how in ("fork", "spawn"):
        script = tmp_path / f"{how}.py"
        script.write_text(WORKERS.format(how=how))
        done = firsttouch("trace", "-q", "-o", f"{how}-%p.ft", script)
        assert done.stdout == f"{20 * (1 << 15)}.0\n", done.stderr
        assert json.loads((tmp_path / f"{how}-%p.ft").read_text())["allocated_bytes"] < 1 << 18
    assert len(list(tmp_path.glob("*.ft"))) == 2


def test_the_first_rank_of_mpi_speaks_for_all(firsttouch: Start) -> None:
    said = [firsttouch("advise", "-c", "import numpy", env={"SLURM_PROCID": rank}).stderr for rank in ("0", "3")]
    assert [" to gain " in said[0], said[1]] == [True, ""]
