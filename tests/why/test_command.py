"""What `firsttouch why` prints and writes, and its mistakes."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.conftest import Start, clean_environment

PROGRAM = "import numpy as np, sys\nkept = [np.ones(10**6) for _ in range(20)]\nsys.exit(3)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["999999999"], "there is no process 999999999"),
        ([], "missing program"),
        (["nothing.py"], "nothing.py"),
        (["--watch", "0", "1"], "takes seconds, more than 0"),
        (["--watch", "2", "plan.py"], "--watch is for a running process"),
    ],
)
def test_mistakes(words: list[str], said: str, firsttouch: Start) -> None:
    done = firsttouch("why", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "resident memory" not in done.stderr


def test_the_table_fits_80_columns_and_the_status_is_the_programs(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text(PROGRAM)
    done = firsttouch("why", "--plot", "why.svg", "plan.py", environment={"COLUMNS": "80"})
    assert (done.returncode, done.stdout) == (3, "")
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert re.search(r"plan\.py:2 \(20 arrays\) +152\.", done.stderr)
    said = " ".join(done.stderr.split())
    assert re.search(r"The largest part, 152\.\d MiB \(.*\), is 20 arrays made by plan\.py:2\.", said)
    assert (tmp_path / "why.svg").stat().st_size


def test_watch_looks_again_until_the_process_ends(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=pipe)
    words = [sys.executable, "-m", "firsttouch", "why", "--watch", ".1", str(sleeper.pid)]
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=clean_environment()) as watching:
        assert watching.stdout is not None
        tables = (line for line in watching.stdout if "resident memory" in line)
        assert next(tables), next(tables)
        sleeper.communicate(b"\n")
        assert watching.communicate()[1].endswith(f"process {sleeper.pid} has ended\n")


def test_lines_of_a_process_under_run(tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("import numpy as np\nkept = np.ones(10**7)\nprint(flush=True)\ninput()\n")
    ours = [sys.executable, "-m", "firsttouch"]
    run = [*ours, "run", "-q", "--lines", "plan.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(run, cwd=tmp_path, env=clean_environment(), stdin=pipe, stdout=pipe) as program:
        assert program.stdout is not None
        program.stdout.readline()
        why = [*ours, "why", "-q", str(program.pid)]
        said = subprocess.run(why, cwd=tmp_path, capture_output=True, text=True, check=True, env=clean_environment())
        program.communicate(b"\n")
    assert "an array made by plan.py:2" in said.stdout


def test_a_program_is_named_beside_the_pool(firsttouch: Start, tmp_path: Path) -> None:
    program = """
        import numpy as np
        kept = np.ones(4 * 10**6)
        idle = [np.ones(10**6) for _ in range(20)]
        del idle
        print(flush=True)
        input()
    """
    (tmp_path / "plan.py").write_text(textwrap.dedent(program))
    words = [sys.executable, "-m", "firsttouch"]
    run = [*words, "run", "-q", "--lines", "--allocator", "pool(max_idle='1 GiB', decay=None)", "plan.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(run, cwd=tmp_path, env=clean_environment(), stdin=pipe, stdout=pipe) as running:
        assert running.stdout is not None
        running.stdout.readline()
        said = " ".join(firsttouch("why", "-q", str(running.pid)).stdout.split())
        running.communicate(b"\n")
    assert "is memory that firsttouch's pool keeps for the next arrays." in said
    assert re.search(r"The next largest part, 30\.5 MiB \(.*\), is an array made by .*plan\.py:3\.", said)


def test_a_plain_process_with_numpy(tmp_path: Path) -> None:
    arrays = "import numpy as np\nkept = np.ones(10**7), np.zeros(10**8)\nkept[1][: 5 * 10**7 : 512].sum()\n"
    program = [sys.executable, "-c", f"{arrays}print(flush=True)\ninput()"]
    with subprocess.Popen(program, env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        why = [sys.executable, "-m", "firsttouch", "why", str(running.pid)]
        said = subprocess.run(why, capture_output=True, text=True, check=True, env=clean_environment()).stdout
        running.communicate(b"\n")
    absent = re.search(r"not resident.*large blocks in use, each mapped by itself +([\d.]+) +([\d.]+)", said, re.DOTALL)
    assert absent is not None
    assert sum(map(float, absent.groups())) == pytest.approx(763, abs=5)
    assert float(absent[2]) in (0.0, pytest.approx(381, abs=5))  # before Linux 6.7 the zero page is not told apart
    assert "They belong to NumPy's arrays" in " ".join(said.split())


def test_lines_of_code_that_is_made_and_dropped(firsttouch: Start, tmp_path: Path) -> None:
    program = """
        import numpy as np
        kept = []
        for n in range(5000):  # more instructions than are remembered
            exec(compile("\\n" * (n % 7) + "kept.append(np.empty(8192))", f"made{n % 7}.py", "exec"))
    """
    (tmp_path / "plan.py").write_text(textwrap.dedent(program))
    found = json.loads(firsttouch("why", "--json", "-", "plan.py").stdout)
    made = {part["what"]: part["blocks"] for part in found["end"]["parts"] if part["what"].startswith("made")}
    assert made == {f"made{n}.py:{n + 1}": len(range(n, 5000, 7)) for n in range(7)}


ISOLATED = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@pytest.mark.skipif(subprocess.run([*ISOLATED, "true"], capture_output=True).returncode != 0, reason="no namespaces")
def test_a_process_with_another_number_inside(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("import numpy as np\nkept = np.ones(10**7)\nprint(flush=True)\ninput()\n")
    words = [*ISOLATED, sys.executable, "-m", "firsttouch", "run", "-q", "--lines", "plan.py"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, env=clean_environment(), stdin=pipe, stdout=pipe) as outside:
        assert outside.stdout is not None
        outside.stdout.readline()
        inside = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().strip()
        said = firsttouch("why", "-q", inside).stdout
        outside.communicate(b"\n")
    assert "an array made by plan.py:2" in said
