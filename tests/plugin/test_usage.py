"""The option: what it accepts and rejects, and that nothing happens without it."""

import sys
from pathlib import Path

import pytest

import _firsttouch_start
import firsttouch
from tests.plugin.suites import plugin, pytest_run, suite
from tests.programs import execute


@pytest.mark.quick
def test_without_the_option_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import sys\ndef test_a(request):\n"
        " assert 'numpy' not in sys.modules\n"
        " assert not [name for name in sys.modules if name.startswith('firsttouch')]\n"
        " assert not request.config.pluginmanager.has_plugin('firsttouch-mode')\n"
    )
    ended = pytest_run(tmp_path)
    assert ended.status == 0, ended.said
    assert "firsttouch:" not in ended.said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *((given, "There is guarded, filled, or") for given in ("guard", "guarded(side='above')", "")),
        ("numpy_default()", "install() cannot take numpy_default()"),
    ],
)
def test_unknown_values_are_refused(tmp_path: Path, given: str, said: str) -> None:
    ended = pytest_run(suite(tmp_path, test_a="def test_a(): ..."), f"--firsttouch={given}")
    assert ended.status == 4, ended.said
    assert f"--firsttouch={given}" in ended.said
    assert said in ended.said
    assert "Traceback" not in ended.said


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("guarded", "guarded(keep='64 MiB'), each test in a process of its own"),
        ("guarded(side='before', keep=0)", "guarded(side='before'), each test in a process of its own"),
        ("filled", "filled() and filled(on_allocate=127), each test in a process of its own"),
        ("filled(on_allocate=0)", "filled(on_allocate=0), each test in a process of its own, once"),
        ("pages", "pages(), installed for the whole run"),
    ],
)
def test_the_header_says_what_serves_all_arrays(tmp_path: Path, given: str, shown: str) -> None:
    """Small ones, too, and those that were made at import."""
    suite(
        tmp_path,
        test_a="import firsttouch as ft\nearly = np.ones(5000)\n"
        "def test_a():\n for x in (early, np.ones(5000), *([] if 'pages' == '{0}' else [np.ones(3)])):\n"
        "  assert repr(ft.get_allocator(x)).startswith('{0}(')\n".format(given.partition("(")[0]),
    )
    ended = pytest_run(tmp_path, f"--firsttouch={given}")
    assert ended.status == 0, ended.said
    line = next(line for line in ended.said.splitlines() if line.startswith("firsttouch: "))
    assert shown in line


def test_it_works_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_a():\n pass\n")
    command = [sys.executable, "-m", "pytest", *plugin(), "-p", "no:terminal", "--firsttouch=guarded", "test_a.py"]
    done = execute(*command, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize("words", [["-m", "firsttouch", "run", "--quiet", "-m", "pytest"], ["-m", "pytest"]])
def test_a_suite_whose_warnings_are_errors_starts(tmp_path: Path, words: list[str]) -> None:
    """pytest warns of what it wants to rewrite and finds loaded: all packages of whoever brings a plugin."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_one.py").write_text("import numpy as np\ndef test_one(): assert np.ones(3).sum() == 3\n")
    (tmp_path / "nothing_but_a_plugin.py").touch()
    installed = tmp_path / "as_installed-1.0.dist-info"  # here the package may lie in a source tree
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: as-installed\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[pytest11]\nas_installed = nothing_but_a_plugin\n")
    for package in (firsttouch, _firsttouch_start):
        (tmp_path / package.__name__).symlink_to(Path(package.__file__ or "").parent)
    (installed / "RECORD").write_text("firsttouch/__init__.py,,\n_firsttouch_start/__init__.py,,\n")
    command = [sys.executable, *words, *plugin(), "-p", "no:cacheprovider"]
    done = execute(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
