"""The hook on NumPy's first import works however NumPy is imported; test_same_as_python has what it leaves: nothing."""

import pytest

from .conftest import Start, Write

THREADS = """
import threading
names = ("numpy", "firsttouch") * 4
workers = [threading.Thread(target=__import__, args=(name,)) for name in names]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""

EXECUTOR = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    list(pool.map(__import__, ["firsttouch", "numpy", "numpy", "firsttouch"]))
"""

ASK = "import numpy, firsttouch; print(firsttouch.is_installed())"


LAZY_LOADER = """
import importlib.util, sys
spec = importlib.util.find_spec("numpy")
spec.loader = importlib.util.LazyLoader(spec.loader)
numpy = sys.modules["numpy"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(numpy)
assert "firsttouch._firsttouch" not in sys.modules
numpy.ones
assert sys.modules["firsttouch._firsttouch"].is_installed()
"""

#: In the very next statement, without anyone importing our package.
NEXT_LINE = """
import numpy, sys
assert sys.modules["firsttouch._firsttouch"].is_installed() and "firsttouch" not in sys.modules
"""

AGAIN = """
import sys
sys.path.insert(0, "site")
try: import numpy
except ZeroDivisionError: sys.path.pop(0)
import numpy
"""

#: Ways to import NumPy for the first time.
WAYS = [
    *(NEXT_LINE, THREADS, EXECUTOR, LAZY_LOADER, AGAIN),
    "import numpy.linalg",
    "from numpy import ones",
    "import firsttouch",
    "import firsttouch, numpy",
    "import importlib; importlib.import_module('numpy')",
    "import pickle; pickle.loads(b'cnumpy\\nones\\n.')",
    "import threading as t; w = t.Thread(target=__import__, args=('numpy',)); w.start(); w.join()",
    "import asyncio\nasync def f(): await asyncio.to_thread(__import__, 'numpy')\nasyncio.run(f())",
]

EACH_IN_A_CHILD = """
import os, sys
for way in {ways}:
    if not os.fork():
        exec(way + chr(10) + {ask!r})
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_pool_is_there_after_the_import(firsttouch: Start, write: Write) -> None:
    write("site/numpy/__init__.py", "1/0")
    done = firsttouch("run", "-q", "-c", EACH_IN_A_CHILD.format(ways=WAYS, ask=ASK))
    assert (done.stdout, done.stderr, done.returncode) == ("True\n" * len(WAYS), "", 0)


@pytest.mark.parametrize("body", ["import no_such_module", "def f(:"])
def test_numpy_that_fails_to_import_fails_as_in_python(
    python: Start, firsttouch: Start, write: Write, body: str
) -> None:
    folder = write("site/numpy/__init__.py", f"def deep():\n    {body}\ndeep()\n").parents[1]
    script = write("program.py", "import numpy\n")
    # Only the program gets to see it: the command line itself needs a NumPy that works.
    write("early/sitecustomize.py", f"import sys\nif sys.argv[0] != '-m': sys.path.insert(0, {str(folder)!r})\n")
    env = {"PYTHONPATH": str(folder.parent / "early")}
    plain, ours = python(script, env=env), firsttouch("run", "-q", script, env=env)
    assert plain.returncode == 1
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


REFUSE = """
import _firsttouch_start as native
before = native.load
def load():
    module = before()
    def refuse(*given, **named):
        raise {error}
    module.install = refuse
    return module
native.load = load
"""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("module.UnsupportedError('this NumPy\\nlooks odd')", "this NumPy looks odd"),
        ("type('PanicException', (BaseException,), {})('at the disco')", "PanicException: at the disco"),
    ],
)
def test_install_that_is_refused_costs_one_line(firsttouch: Start, write: Write, error: str, said: str) -> None:
    early = write("early/sitecustomize.py", REFUSE.replace("{error}", error)).parent
    code = "import numpy; print(numpy.ones(1 << 20).sum())"
    done = firsttouch("run", "-c", code, env={"PYTHONPATH": str(early)})
    assert (done.stdout, done.returncode) == ("1048576.0\n", 0)
    first, *report = done.stderr.splitlines()
    assert first == f"firsttouch: not pooled: {said}"
    assert report[-1].strip() == f"not pooled: {said}"


def test_program_with_a_module_of_our_name(python: Start, firsttouch: Start, write: Write) -> None:
    """It keeps its module, and is pooled: only the native module is needed, from where it lies."""
    write("firsttouch.py", "print('mine')\n")
    script = write("program.py", "import numpy, firsttouch; print(firsttouch.__file__)")
    plain = python(script)
    # Not from this directory: there `-m firsttouch` itself would find the other one.
    ours = firsttouch("run", script, cwd="/")
    assert (ours.stdout, ours.returncode) == (plain.stdout, 0)
    assert "large blocks" in ours.stderr
    assert "not pooled" not in ours.stderr


def test_subinterpreter_reports_nothing(firsttouch: Start) -> None:
    code = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create()
interpreters.run_string(one, "x = 1")
interpreters.destroy(one)
"""
    assert firsttouch("run", "-c", code).stderr.count("firsttouch, process") == 1


def test_numpy_that_is_there_before_the_hook(firsttouch: Start, python: Start) -> None:
    """Another .pth file may import NumPy first."""
    code = """
import os, sys
import numpy
os.environ["FIRSTTOUCH_RUN"] = '{"pid": %d, "quiet": true}' % os.getpid()
import _firsttouch_start
_firsttouch_start.begin()
print(sys.modules["firsttouch._firsttouch"].is_installed())
"""
    done = python("-c", code)
    assert (done.stdout, done.stderr) == ("True\n", "")
