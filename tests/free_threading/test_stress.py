"""Everything at once in many threads. FIRSTTOUCH_STRESS_SECONDS and FIRSTTOUCH_STRESS_SEED make it a campaign."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.programs import environment, quiet

SECONDS = float(os.environ.get("FIRSTTOUCH_STRESS_SECONDS", "5"))
SEED = int(os.environ.get("FIRSTTOUCH_STRESS_SEED", "1"))


@pytest.mark.quick
@pytest.mark.timeout(SECONDS * 2 + 300)
def test_everything_at_once(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.free_threading.stress", str(SECONDS), str(SEED)]
    options = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": SECONDS * 2 + 240}
    found = json.loads(quiet(subprocess.run(words, env=environment(), **options)).splitlines()[-1])  # type: ignore[call-overload]
    assert found["gil"] == (not sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert all(turns > 0 for turns in found["turns"].values()), found
