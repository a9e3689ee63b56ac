"""What `firsttouch why` prints and writes."""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from firsttouch.tools import resident
from firsttouch.tools.cli import why
from firsttouch.tools.cli.output import BadUsageError
from firsttouch.tools.reasons import Reasons
from tests.cli.conftest import FIRSTTOUCH, Start
from tests.programs import running

PROGRAM = "import numpy as np, sys\nkept = [np.ones(10**6) for _ in range(20)]\nsys.exit(3)\n"


def test_the_table_fits_80_columns_and_the_status_is_the_programs(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text(PROGRAM)
    done = firsttouch("why", "--plot", "why.svg", "plan.py", env={"COLUMNS": "80"})
    assert (done.returncode, done.stdout) == (3, "")
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert re.search(r"plan\.py:2 \(20 arrays\) +152\.", done.stderr)
    said = " ".join(done.stderr.split())
    assert re.search(r"The largest part, 152\.\d MiB \(.*\), is 20 arrays made by plan\.py:2\.", said)
    assert (tmp_path / "why.svg").stat().st_size


def test_watch_looks_again_until_the_process_ends(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with running(*FIRSTTOUCH, "why", "--watch", ".1", sleeper.pid, stderr=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        tables = (line for line in watching.stdout if "resident memory" in line)
        assert next(tables), next(tables)
        sleeper.communicate(b"\n")
        assert watching.communicate()[1].endswith(f"process {sleeper.pid} has ended\n")


def test_what_changes_while_it_is_read_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "kept = b'1' * (100 << 20)\nprint('ready', flush=True)\ninput()\ndel kept\nprint(flush=True)\ninput()"
    with running(sys.executable, "-c", code, ready="ready", stdin=subprocess.PIPE) as program:
        process = resident.Process(program.pid)
        read = process._blocks

        def change() -> object:
            monkeypatch.undo()
            assert program.stdin is not None
            assert program.stdout is not None
            print(file=program.stdin, flush=True)
            program.stdout.readline()
            return read()

        monkeypatch.setattr(process, "_blocks", change)
        look = process.look()
    assert look.resident == pytest.approx(look.counted, rel=0.02)
    assert look.resident < 50 << 20


def test_a_table_that_is_being_made_is_none() -> None:
    table = os.memfd_create("firsttouch-live")
    try:
        assert resident.Process(os.getpid()).table() is None
    finally:
        os.close(table)


UNDER_RUN = (*FIRSTTOUCH, "run", "-q", "--lines")


def test_a_program_is_named_beside_the_pool(firsttouch: Start, tmp_path: Path) -> None:
    program = """
        import numpy as np
        kept = np.ones(4 * 10**6)
        idle = [np.ones(10**6) for _ in range(20)]
        del idle
        print("ready", flush=True)
        input()
    """
    (tmp_path / "plan.py").write_text(textwrap.dedent(program))
    words = (*UNDER_RUN, "--allocator", "pool(max_idle='1 GiB', decay=None)", "plan.py")
    with running(*words, ready="ready", cwd=tmp_path, stdin=subprocess.PIPE) as begun:
        said = " ".join(firsttouch("why", "-q", begun.pid).stdout.split())
    assert "is memory that firsttouch's pool keeps for the next arrays." in said
    assert re.search(r"The next largest part, 30\.5 MiB \(.*\), is an array made by .*plan\.py:3\.", said)


def test_a_plain_process_with_numpy(firsttouch: Start) -> None:
    arrays = "import numpy as np\nkept = np.ones(10**7), np.zeros(10**8)\nkept[1][: 5 * 10**7 : 512].sum()\n"
    code = f"{arrays}print('ready', flush=True)\ninput()"
    with running(sys.executable, "-c", code, ready="ready", stdin=subprocess.PIPE) as program:
        said = firsttouch("why", program.pid).stdout
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
            exec(compile("\\n" * (n % 7) + "kept.append(np.empty(16384))", f"made{n % 7}.py", "exec"))
    """
    (tmp_path / "plan.py").write_text(textwrap.dedent(program))
    found = json.loads(firsttouch("why", "--json", "-", "plan.py").stdout)
    arrays = [part for part in found["end"]["parts"] if part["group"] == resident.ARRAYS]
    made = {part["what"]: part["blocks"] for part in arrays if part["what"].startswith("made")}
    assert made == {f"made{n}.py:{n + 1}": len(range(n, 5000, 7)) for n in range(7)}


def test_strings_are_no_arrays_where_lines_are_known(firsttouch: Start) -> None:
    make = "import numpy\nkept = numpy.ones(2**20), [b'%2000d' % n for n in range(30000)]\n"
    words = (*UNDER_RUN, "--allocator", "malloc()", "-c", f"{make}print('ready', flush=True)\ninput()")
    with running(*words, ready="ready", stdin=subprocess.PIPE) as begun:
        said = " ".join(firsttouch("why", "-q", begun.pid).stdout.split())
    assert "the C library's: blocks in use. They belong to Python's strings" in said
    assert said.endswith("memray run --native names it.")


@pytest.mark.parametrize(("group", "what"), [(resident.MALLOC, resident.IN_USE), (resident.POOL, resident.POOL)])
def test_what_does_not_apply_is_not_said(group: str, what: str) -> None:
    libraries = [resident.Part(resident.LIBRARIES, name, 1) for name in ("python3", "numpy")]
    look = resident.Look([resident.Part(group, what, 100), *libraries], 102, 102, 0, 0, 0, 1, {}, "no arrays")
    late = Reasons("", replace(look, lines_of="later arrays")).sentences()[1]
    assert late.endswith("firsttouch run --lines tells the lines of arrays.")
    to_come = ", and firsttouch why --lines PID those of arrays to come."
    assert Reasons("", look).sentences()[1] == late.removesuffix(".") + to_come
    missed = Reasons("", replace(look, peak=200), look)
    assert missed.sentences()[0].startswith("102 bytes were resident when most was seen. ")


@pytest.mark.quick
@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="sys.remote_exec came with Python 3.14")
@pytest.mark.parametrize(
    ("words", "wait", "warning"),
    [
        ((sys.executable,), "input()", "will record lines once its main thread runs Python code again\n"),
        ((*FIRSTTOUCH, "run", "-q"), "while not select.select([sys.stdin], [], [], 0.01)[0]: pass", ""),
    ],
)
def test_lines_of_a_process_that_runs_already(
    firsttouch: Start, tmp_path: Path, words: tuple[str, ...], wait: str, warning: str
) -> None:
    program = f"""
        import numpy as np, os, select, sys
        old = np.ones(4 * 10**6)
        print("ready", flush=True)
        {wait}
        kept = [np.ones(10**6) for _ in range(20)]
        print(os.fork() or os._exit(len(sys.stdin.read())), flush=True)
        sys.stdin.read()
    """
    (tmp_path / "plan.py").write_text(textwrap.dedent(program))
    with running(*words, "plan.py", ready="ready", cwd=tmp_path, stdin=subprocess.PIPE) as begun:
        said = firsttouch("why", "-q", "--lines", begun.pid)
        assert (said.returncode, said.stderr.partition(f"process {begun.pid} ")[2]) == (0, warning)
        assert begun.stdin is not None
        assert begun.stdout is not None
        print(file=begun.stdin, flush=True)
        child = begun.stdout.readline().strip()
        found = json.loads(firsttouch("why", "--lines", "--json", "-", child).stdout)
    assert (found["cause"]["what"].rpartition("/")[2], found["cause"]["blocks"]) == ("plan.py:6", 20)
    others = {part["group"] for part in found["now"]["parts"] if part["resident"] > 30 * 10**6}
    assert others - {resident.ARRAYS} == {resident.POOL if "run" in words else resident.MALLOC}


def test_lines_need_a_python_that_can_be_asked(firsttouch: Start) -> None:
    with running("sleep", 60) as other:
        said = firsttouch("why", "--lines", other.pid).stderr
    assert f"cannot record lines in process {other.pid}: it runs no CPython, and this command 3." in said
    code = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
    with running(sys.executable, "-c", code, ready="ready") as plain:
        said = firsttouch("why", "--lines", plain.pid).stderr
    assert ("it has not imported NumPy" if hasattr(sys, "remote_exec") else "from 3.14 on") in said


ISOLATED = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]


@pytest.mark.skipif(subprocess.run([*ISOLATED, "true"], capture_output=True).returncode != 0, reason="no namespaces")
def test_a_process_with_another_number_inside(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "plan.py").write_text("import numpy\nkept = numpy.ones(10**7)\nprint('ready', flush=True)\ninput()\n")
    words = (*ISOLATED, *UNDER_RUN, "plan.py")
    with running(*words, ready="ready", cwd=tmp_path, stdin=subprocess.PIPE) as outside:
        inside = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().strip()
        assert "an array made by plan.py:2" in firsttouch("why", "-q", inside).stdout
        outside.communicate("\n")


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="sys.remote_exec came with Python 3.14")
@pytest.mark.skipif(subprocess.run([*ISOLATED, "true"], capture_output=True).returncode != 0, reason="no namespaces")
@pytest.mark.parametrize(
    ("first", "stderr"), [("", ""), ("mount -t tmpfs none /tmp; ", "its /tmp is another, as in a container; run fir")]
)
def test_lines_of_a_process_in_a_container(firsttouch: Start, first: str, stderr: str) -> None:
    code = "import numpy, time\nprint('ready', flush=True)\nwhile True: kept = numpy.ones(10**7); time.sleep(.1)"
    words = (*ISOLATED, "--kill-child", "sh", "-c", f'{first}exec "$0" -c "$1"', sys.executable, code)
    with running(*words, ready="ready") as outside:
        inside = Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text().strip()
        said = firsttouch("why", "-q", "--lines", inside)
        assert stderr in said.stderr
        assert (said.returncode, "will record" in said.stderr) == (2 if stderr else 0, False)


def test_lines_without_room_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "remote_exec", None, raising=False)
    monkeypatch.setattr(tempfile, "mkstemp", Mock(side_effect=FileNotFoundError("no /tmp")))
    with pytest.raises(BadUsageError, match=r"cannot record lines in process [0-9]+: no /tmp"):
        why.main(["--lines", str(os.getpid())])
