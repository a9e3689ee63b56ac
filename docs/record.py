"""Records the output of the programs on the pages: `python docs/record.py [NAME...]`, on a machine that is quiet.

Pages show what stands in ``docs/recorded``. It is not made when the site is built: what a program gains depends on what
else the machine does, and the pages explain what they show.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

#: Each recording: the command as the page shows it, which runs in docs/tutorials/scripts.
COMMANDS = {
    "run": "firsttouch run heat.py",
    "advise": "firsttouch advise heat.py",
    "why": "firsttouch why heat.py",
    "overrun": "firsttouch run --allocator 'guarded()' overrun.py",
    "info": "firsttouch --info",
}


def main(names: list[str]) -> None:
    """Run the commands, and write what each prints."""
    scripts = HERE / "tutorials" / "scripts"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "COLUMNS": "80", "PATH": path}
    for name in names or COMMANDS:
        print(name, flush=True)
        done = subprocess.run(
            ["sh", "-c", f"exec {COMMANDS[name]}"],
            cwd=scripts,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        text = done.stdout.replace(f"{scripts}/", "").replace(f"{HERE.parent}/", "")
        said = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
        (HERE / "recorded" / f"{name}.txt").write_text(f"$ {COMMANDS[name]}\n{said}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
