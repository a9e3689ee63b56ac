"""Files and folders that are in the way; mistakes on the command line are in tests/cli/test_mistakes.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import start


@pytest.mark.parametrize("command", ["trace", "advise", "run --json report.json"])
def test_what_folders_are_called_does_not_matter(tmp_path: Path, command: str) -> None:
    folder = tmp_path / os.fsdecode(b"50%pc %r 20%% not-\xff-utf-8")
    folder.mkdir()
    (folder / "script.py").write_text("import numpy as np\na = np.ones(10**6)\n")
    done = start("-m", "firsttouch", *command.split(), "script.py", cwd=folder, environment={"TMPDIR": str(folder)})
    assert done.returncode == 0, done.stderr
    assert "no trace" not in done.stderr
    assert "no advice" not in done.stderr
    assert {file.name for file in folder.iterdir()} - {"script.py"} == (
        {"trace.ft"} if command == "trace" else {"report.json"} if "json" in command else set()
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("closed", ["", ">&-"])
def test_json_that_cannot_be_written_is_named(tmp_path: Path, closed: str) -> None:
    assert start("-m", "firsttouch", "trace", "-q", "-o", "good.ft", "-c", "import numpy", cwd=tmp_path).returncode == 0
    command = f"exec '{sys.executable}' -m firsttouch advise --json /dev/full good.ft {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "firsttouch: advise: cannot write /dev/full: No space left on device"
