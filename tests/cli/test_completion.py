"""`firsttouch --completion SHELL`: what a shell then offers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from firsttouch.tools.cli.main import ABOUT, COMMANDS

from .conftest import Start

BASH = "source {script}; COMP_WORDS=(firsttouch {words}); COMP_CWORD={at}; _firsttouch firsttouch '{word}' x; {say}"
SAY = 'printf "%s\\n" "${COMPREPLY[@]}"'


@pytest.fixture(name="offered")
def _offered(firsttouch: Start, tmp_path: Path, request: pytest.FixtureRequest) -> object:
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = firsttouch("--completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    script = tmp_path / "script"
    script.write_text(done.stdout)

    def offered(*words: str) -> set[str]:
        at, word = len(words), words[-1]
        code = {
            "bash": BASH.format(script=script, words=" ".join(words), at=at, word=word, say=SAY),
            "zsh": BASH.format(script=script, words=" ".join(words), at=at, word=word, say=SAY),
            "fish": f"source {script}; complete -C 'firsttouch {' '.join(words)}'",
        }[shell]
        prefix = "setopt ksharrays shwordsplit 2>/dev/null; " if shell == "zsh" else ""
        found = subprocess.run([shell, "-c", prefix + code], capture_output=True, text=True, check=False, timeout=60)
        assert found.stderr == ""
        return {line.partition("\t")[0] for line in found.stdout.splitlines()}

    return offered


@pytest.mark.parametrize("offered", ["bash", "fish"], indirect=True)
def test_commands_and_options_are_offered(offered: object) -> None:
    assert callable(offered)
    assert offered("") == set(COMMANDS)
    assert offered("comp") == {"compare"}
    assert set(ABOUT) <= offered("--")
    assert "--json" in offered("--info", "--")
    assert offered("run", "--de") == {"--decay"}
    assert {"--json", "--html", "--quiet"} <= offered("advise", "--")
    assert "--decay" not in offered("advise", "--")


def test_zsh_loads_the_script_of_bash(firsttouch: Start) -> None:
    zsh, bash = firsttouch("--completion", "zsh").stdout, firsttouch("--completion", "bash").stdout
    assert zsh.endswith(bash)
    if shutil.which("zsh") is not None:
        done = subprocess.run(
            ["zsh", "-fc", f"{zsh.replace('compinit &&', 'compinit -D &&')}\necho $_comps[firsttouch]"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "_bash_complete" in done.stdout, done
