"""`firsttouch --completion`: what a shell then offers."""

import subprocess
from pathlib import Path

from firsttouch.tools.cli.main import ABOUT, COMMANDS

from .conftest import Start

ASK = "source {script}; COMP_WORDS=(firsttouch {words}); COMP_CWORD={at}; _firsttouch firsttouch '{word}' x; {say}"
SAY = 'printf "%s\\n" "${COMPREPLY[@]}"'


def test_commands_and_options_are_offered(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("--completion")
    assert (done.returncode, done.stderr) == (0, "")
    script = tmp_path / "script"
    script.write_text(done.stdout)

    def offered(*words: str) -> set[str]:
        code = ASK.format(script=script, words=" ".join(words), at=len(words), word=words[-1], say=SAY)
        found = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False, timeout=60)
        assert found.stderr == ""
        return set(found.stdout.splitlines())

    assert offered("") == set(COMMANDS)
    assert offered("comp") == {"compare"}
    assert {*ABOUT, "--version"} <= offered("--")
    assert "--json" in offered("--info", "--")
    assert offered("run", "--li") == {"--limit", "--lines"}
    assert {"--json", "--quiet"} <= offered("advise", "--")
    assert "--limit" not in offered("advise", "--")
