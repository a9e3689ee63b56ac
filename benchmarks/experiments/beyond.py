"""Programs that need more memory than their cgroup has: how each ends under `firsttouch run --limit auto`, and plainly.

In each program a comment says which line is to be named: `# holds` that whose blocks fill the memory, which has to lead
the list, or `# asks` that which asks for too much at once, where the traceback has to end.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.cgroups import Group, NoGroupError, group
from benchmarks.measuring import Section, Verdict
from firsttouch.tools.bench.common import MIB
from firsttouch.tools.measuring.contenders import DEFAULT, environment
from firsttouch.tools.measuring.report import Table

# ---- What is run, in a process of its own

#: What a program may have beyond what its imports take: they differ, and grow from version to version.
LIMIT = 448 * MIB

_NUMPY = """
import io, pickle, functools, threading
import numpy as np
rng = np.random.default_rng(1)
kept = []
"""

#: Kind, and what begins its programs.
BEGINNINGS = {
    "numpy": _NUMPY,
    "pandas": f"{_NUMPY}import pandas as pd\nframe = pd.DataFrame(rng.random((50_000, 10)))\n",
    "sklearn": f"{_NUMPY}import sklearn\n",
    "xarray": f"{_NUMPY}import xarray as xr\ndata = xr.DataArray(rng.random((200, 100, 100)), dims=[*'tyx'])\n",
    "workers": f"{_NUMPY}import multiprocessing, concurrent.futures\n",
}

#: Each begins with its kind.
PROGRAMS = """
numpy:
    while True: kept.append(np.ones(500_000))  # holds
numpy:
    cache = {}
    for key in range(10**9):
        cache[key] = rng.random(400_000)  # holds
        (cache[key] * 2).sum()
numpy:
    x = rng.random(20_000)
    d = np.abs(x[:, None] - x[None, :])  # asks
numpy:
    grid = np.ones((30_000, 30_000))  # asks
numpy:
    joined = np.zeros(0)
    while True:
        joined = np.concatenate([joined, rng.random(300_000)])  # holds
numpy:
    row = rng.random((1, 100_000))
    table = row
    while True:
        table = np.vstack([table, row])  # holds
numpy:
    a = rng.random((100, 1000))
    b = np.repeat(a, 5000, axis=0)  # asks
numpy:
    x = np.linspace(0, 1, 500)
    u, v, w = np.meshgrid(x, x, x)  # asks
numpy:
    x = rng.random(15_000)
    covariance = np.outer(x, x)  # asks
numpy:
    image = rng.random((5000, 5000))
    spectrum = np.fft.fft2(image)  # asks
numpy:
    u, history = rng.random((500, 500)), []
    while True:
        u = u * 0.99 + 0.01
        history.append(u.copy())  # holds
numpy:
    a = rng.random((5500, 5500))
    b = np.linalg.inv(a)  # asks
numpy:
    raw = np.full((40, 2000, 2000), 7, np.uint8)
    images = raw.astype(np.float64)  # asks
numpy:
    samples = rng.normal(size=(50_000, 2000))  # asks
numpy:
    values = rng.random(2_000_000)
    while True: kept.append(values > len(kept) / 1000)  # holds
numpy:
    signal = rng.random(200_000)
    w = np.lib.stride_tricks.sliding_window_view(signal, 1000).copy()  # asks
numpy:
    @functools.lru_cache(None)
    def table(n):
        return np.full(300_000, n)  # holds
    for n in range(10**9): table(n)
numpy:
    def work():
        mine = []
        while True: mine.append(np.ones(300_000))  # holds
    for thread in [threading.Thread(target=work) for _ in range(3)]: thread.start()
numpy:
    a = rng.random((150, 150))
    b = np.einsum('ij,kl->ijkl', a, a)  # asks
numpy:
    array = rng.random(200_000)
    while True: kept.append(array.tobytes())  # holds
numpy:
    text = bytearray()
    while True: text += bytes(1_000_000)  # holds
numpy:
    array = rng.random(500_000)
    while True: kept.append(pickle.dumps(array))  # holds
numpy:
    file, array = io.BytesIO(), rng.random(500_000)
    while True: np.save(file, array)  # holds
numpy:
    values = []
    while True: values.append(float(len(values)))  # holds
numpy:
    columns = {n: [] for n in range(8)}
    while True:
        for column in columns.values(): column.append(np.ones(40_000))  # holds
pandas:
    while True: frame = pd.concat([frame, frame.iloc[:20_000]])  # holds
pandas:
    while True: kept.append(pd.DataFrame(rng.random((20_000, 20))))  # holds
pandas:
    a = pd.DataFrame({'key': np.arange(20_000) % 3, 'a': 1.0})
    b = a.merge(a, on='key')  # asks
pandas:
    long = pd.DataFrame({'a': np.arange(30_000), 'b': np.arange(30_000), 'v': 1.0})
    wide = long.pivot(index='a', columns='b', values='v')  # asks
pandas:
    keys = pd.Series(np.arange(30_000))
    wide = pd.get_dummies(keys)  # asks
pandas:
    text = frame.iloc[:20_000].to_csv()
    while True: kept.append(pd.read_csv(io.StringIO(text)))  # holds
pandas:
    results = {}
    for n in range(10**9):
        results[n] = frame.rolling(5).mean()  # holds
pandas:
    for n in range(10**9):
        frame[f'c{n}'] = rng.random(50_000)  # holds
pandas:
    a = pd.DataFrame({'a': np.arange(9_000)})
    b = a.merge(a, how='cross')  # asks
pandas:
    frame = pd.DataFrame({'a': np.arange(10_000_000)})
    for n in range(20):
        frame[n] = frame['a'] * n  # holds
pandas:
    wide = pd.DataFrame(rng.random((10, 12_000)))
    c = wide.corr()  # asks
sklearn:
    from sklearn.preprocessing import PolynomialFeatures
    x = PolynomialFeatures(3).fit_transform(rng.random((20_000, 25)))  # asks
sklearn:
    from sklearn.metrics import pairwise_distances
    d = pairwise_distances(rng.random((12_000, 5)))  # asks
sklearn:
    from sklearn.preprocessing import OneHotEncoder
    x = OneHotEncoder(sparse_output=False).fit_transform(np.arange(12_000)[:, None])  # asks
sklearn:
    from sklearn.gaussian_process import GaussianProcessRegressor
    x = rng.random((9_000, 2))
    model = GaussianProcessRegressor(optimizer=None).fit(x, x[:, 0])  # asks
sklearn:
    from sklearn.feature_extraction.text import CountVectorizer
    texts = [f'w{n} w{n + 1}' for n in range(15_000)]
    x = CountVectorizer().fit_transform(texts).toarray()  # asks
sklearn:
    from sklearn.neighbors import KNeighborsRegressor
    x = rng.random((50_000, 40))
    while True: kept.append(KNeighborsRegressor(algorithm='brute').fit(x + len(kept), x[:, 0]))  # holds
xarray:
    while True: kept.append(data - data.mean('t') * len(kept))  # holds
xarray:
    b = data * xr.DataArray(np.arange(100.0), dims='member')  # asks
xarray:
    whole = xr.concat([data] * 60, 'member')  # asks
xarray:
    windows = data.rolling(t=60).construct('window').copy(deep=True)  # asks
xarray:
    years = {}
    for year in range(10**9):
        years[year] = xr.Dataset({'a': data + year})  # holds
workers:
    def work(n):
        mine = []
        while True: mine.append(np.full(300_000, n))  # holds
    if __name__ == '__main__':
        with multiprocessing.get_context('fork').Pool(2) as pool: pool.map(work, range(2))
workers:
    def work(n):
        mine = []
        while True: mine.append(np.full(300_000, n))  # holds
    if __name__ == '__main__':
        with multiprocessing.get_context('spawn').Pool(2) as pool: pool.map(work, range(2))
workers:
    import joblib
    def work(n):
        mine = []
        while True: mine.append(np.full(300_000, n))  # holds
    if __name__ == '__main__': joblib.Parallel(2)(joblib.delayed(work)(n) for n in range(2))
"""


def marked(text: str) -> tuple[int, str]:
    """Return the number and the text of the line that is to be named."""
    return next((at, line) for at, line in enumerate(text.split("\n"), 1) if line.endswith(("# holds", "# asks")))


def programs() -> list[tuple[str, str]]:
    """Return the kind and the text of all."""
    found = re.split(r"^(\w+):\n", PROGRAMS.lstrip(), flags=re.MULTILINE)[1:]
    return [(kind, textwrap.dedent(text)) for kind, text in zip(found[::2], found[1::2], strict=True)]


class Ending(NamedTuple):
    """How a program ended."""

    status: int
    named: bool
    error: str

    @property
    def word(self) -> str:
        if self.error.endswith("hangs"):
            return "hangs"
        if "MemoryError" in self.error:
            return NAMED if self.named else "MemoryError, another line"
        return "killed, reported" if "firsttouch: the kernel killed" in self.error else f"status {self.status}"


def ended(kind: str, program: str, place: Group, under: bool = True) -> Ending:
    """Run a program in a new cgroup, under firsttouch or plainly."""
    text = BEGINNINGS[kind] + program + "\n"
    mark, line = marked(text)
    words = ["-m", "firsttouch", "run", "-q", "--limit", "auto"] if under else []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(BEGINNINGS[kind])
        _start([str(script)], place.enter)  # its imports, and compiled modules
        place.limit(LIMIT + place.peak())
        script.write_text(text)
        finished = _start([*words, str(script)], place.enter)
    here = rf"({re.escape(str(script))}|<dynamic-code>):{mark}"  # which is what cloudpickle calls every file
    lines = finished.stderr.split("\n")
    if line.endswith("# holds"):
        after = [second for first, second in itertools.pairwise(lines) if "largest living blocks" in first]
        named = any(re.search(rf"MiB  {here}\b", line) for line in after)
    else:
        named = any(f'program.py", line {mark}' in line for line in lines) and "limited() allows" in finished.stderr
    return Ending(finished.returncode, named, finished.stderr)


def _start(words: list[str], enter: Callable[[], None]) -> subprocess.CompletedProcess[str]:
    surroundings = environment(DEFAULT) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, *words], env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=enter, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            _, error = process.communicate(timeout=90)
        except subprocess.TimeoutExpired:  # as a pool does whose worker was killed
            os.killpg(process.pid, signal.SIGKILL)
            _, error = process.communicate()
            error += "hangs"
    return subprocess.CompletedProcess(words, process.returncode, "", error)


# ---- The experiment

NAMED = "MemoryError"


def run(quick: bool) -> Section:
    """Run every program plainly and under a limit."""
    asked = f"a program that needs more than its cgroup has, {LIMIT // MIB} MiB beyond its imports, ends under"
    section = Section(
        "beyond", "Programs beyond their limit", f"{asked} `--limit auto` in a MemoryError that names its line."
    )
    table = Table("", ["", "of", "the line", "plainly", "under `--limit auto`"])
    endings = Counter[str]()
    for number, (kind, program) in enumerate(programs()[: 2 if quick else None], 1):
        if kind != "workers" and importlib.util.find_spec(kind) is None:
            section.notes.append(f"{number}: {kind} is not installed.")
            continue
        found = []
        try:
            for under in (False, True):
                with group() as place:
                    found.append(ended(kind, program, place, under))
        except NoGroupError as error:
            section.notes.append(f"{error}.")
            break
        plainly, ending = found
        endings[ending.word] += 1
        table.rows.append([str(number), kind, f"`{marked(program)[1].strip()}`", plainly.word, ending.word])
        section.raw[str(number)] = {"plainly": plainly._asdict(), "under": ending._asdict()}
    section.tables.append(table)
    outcome = "not measured" if not endings else "passed" if set(endings) == {NAMED} else "failed"
    figure = f"{endings[NAMED]} of {endings.total()}"
    section.verdicts.append(Verdict("a MemoryError that names the line", figure, outcome))
    return section
