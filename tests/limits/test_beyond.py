"""Programs that need more memory than their cgroup has, which plainly kills them: a MemoryError names the line.

It is the line marked `# holds`, whose blocks fill the memory, or `# asks`, which asks for too much at once.
"""

import itertools
import re
import sys
import textwrap
from pathlib import Path

import pytest

from tests.limits.cgroups import group
from tests.programs import execute

BEGINNING = """
import io
import numpy as np
rng = np.random.default_rng(1)
kept = []
"""
MORE = {
    "numpy": "",
    "pandas": "import pandas as pd\nframe = pd.DataFrame(rng.random((50_000, 10)))\n",
    "xarray": "import xarray as xr\ndata = xr.DataArray(rng.random((200, 100, 100)), dims=[*'tyx'])\n",
}

PROGRAMS = [
    (
        "numpy",
        """
        cache = {}
        for key in range(10**9):
            cache[key] = rng.random(400_000)  # holds
            (cache[key] * 2).sum()
        """,
    ),
    ("numpy", "x = rng.random(20_000)\nd = np.abs(x[:, None] - x[None, :])  # asks"),
    ("numpy", "array = rng.random(200_000)\nwhile True: kept.append(array.tobytes())  # holds"),
    ("numpy", "while True: kept.append(float(len(kept)))  # holds"),
    ("pandas", "text = frame.iloc[:20_000].to_csv()\nwhile True: kept.append(pd.read_csv(io.StringIO(text)))  # holds"),
    ("pandas", "a = pd.DataFrame({'a': np.arange(9_000)})\nb = a.merge(a, how='cross')  # asks"),
    ("xarray", "whole = xr.concat([data] * 60, 'member')  # asks"),
]


@pytest.mark.parametrize(("package", "program"), PROGRAMS)
def test_the_line_is_named(package: str, program: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    beginning = BEGINNING + MORE[package]
    script = tmp_path / "program.py"
    text = beginning + textwrap.dedent(program).strip() + "\n"
    mark, line = next((at, line) for at, line in enumerate(text.split("\n"), 1) if line.endswith(("# holds", "# asks")))
    with group() as place:

        def start(*words: str) -> str:
            return execute(sys.executable, *words, script, env={"OMP_NUM_THREADS": "1"}, preexec_fn=place.enter).stderr

        script.write_text(beginning)
        start()  # its imports, and compiled modules
        place.limit(place.peak() + (448 << 20))
        script.write_text(text)
        said = start("-m", "firsttouch", "run", "-q", "--limit", "auto")
    assert "MemoryError" in said
    if line.endswith("# asks"):
        assert f'program.py", line {mark}' in said
        assert "limited() allows" in said
    else:
        after = [second for first, second in itertools.pairwise(said.split("\n")) if "largest living blocks" in first]
        assert any(re.search(rf"MiB  {re.escape(str(script))}:{mark}\b", each) for each in after), said
