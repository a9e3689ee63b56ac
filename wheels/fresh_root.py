"""`python -m wheels.fresh_root`: the wheel in a Debian that has Python and nothing else, as a new user would have it.

debootstrap makes the root once, without a compiler; the environment in it is made anew each time. Nothing is fetched
from inside: NumPy comes from a folder of wheels, as on a machine behind a firewall.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from wheels.steps import ROOT, WORK, FailedError, run, say

MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
#: NumPy's wheels name several; pip takes them in this order.
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")

#: A user's program: it knows NumPy alone, and prints the same each time.
PROGRAM = """
import numpy as np

field = np.random.default_rng(0).random((1000, 1000))
for _ in range(50):
    field = 0.5 * field + 0.125 * sum(np.roll(field, way, axis) for way in (1, -1) for axis in (0, 1))
print(field.std())
"""

#: What the root runs, with the wheels in /wheels. A report says on standard error that memory was recycled.
SCRIPT = r"""
set -eu
for tool in cc gcc clang cargo make; do
    if command -v $tool; then echo "the root has a compiler: $tool"; exit 1; fi
done
rm -rf /opt/try && python3 -m venv /opt/try
/opt/try/bin/pip --disable-pip-version-check install --quiet --no-index --find-links /wheels firsttouch
. /opt/try/bin/activate
cd /program
python program.py > /tmp/plain
firsttouch run program.py > /tmp/pooled 2> /tmp/report
cmp /tmp/plain /tmp/pooled
cat /tmp/report
grep -q recycled /tmp/report
seq 300000 > /tmp/numbers
firsttouch run sort -n /tmp/numbers 2>&1 > /tmp/sorted | tee /tmp/report
cmp /tmp/numbers /tmp/sorted
grep -q firsttouch /tmp/report
firsttouch info > /dev/null
for command in advise compare; do
    if firsttouch $command program.py > /dev/null 2> /tmp/lacking; then echo "$command needs no extra"; exit 1; fi
    cat /tmp/lacking
    grep -q 'pip install "firsttouch\[measure\]"' /tmp/lacking
done
"""


def why_not() -> str | None:
    """Return why no root can be made here; None if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root may make one"
    for tool in ("debootstrap", "unshare", "chroot"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (Debian: apt-get install debootstrap)"
    return None


def main() -> int:
    """Make the root, install the wheel in it and run the first commands of the README."""
    why = why_not()
    if why:
        say(f"   no fresh root: {why}; skipped")
        return 0
    try:
        wheels = sorted((ROOT / "dist").glob("firsttouch-*-abi3-manylinux*x86_64.whl"))
        if not wheels:
            raise FailedError("dist holds no manylinux wheel: `make wheels` builds it")
        root = _root("stable")
        _fill(root, wheels[-1])
        say(f"== {wheels[-1].name} in Debian {(root / 'etc' / 'debian_version').read_text().strip()}")
        # Its own /proc, and processes that end with it.
        inside = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", root]
        clean = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8"]
        say(run([*inside, *clean, "sh", "-c", SCRIPT], "the wheel in a fresh root"))
    except FailedError as error:
        print(f"\n*** {error}", file=sys.stderr)
        return 1
    return 0


def _root(suite: str) -> Path:
    """Return the root of a Debian with Python, made by debootstrap if it is not there yet."""
    root = WORK / "roots" / suite
    if not (root / "made").exists():
        say(f"== debootstrap {suite}: Python and nothing else (some minutes)")
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        packages = "--include=python3,python3-venv"
        run(["debootstrap", "--variant=minbase", packages, suite, root, MIRROR], "make the root")
        (root / "made").touch()
    return root


def _fill(root: Path, wheel: Path) -> None:
    """Put the wheel, NumPy's and a program into the root."""
    for name in ("wheels", "program"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
    shutil.copy(wheel, root / "wheels")
    (root / "program" / "program.py").write_text(PROGRAM)
    version = run(["chroot", root, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], "its Python")
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    options = ["--only-binary", ":all:", "--python-version", version.strip(), "--dest", root / "wheels", *platforms]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    run([*command, *options, "numpy"], "fetch NumPy's wheel")


if __name__ == "__main__":
    sys.exit(main())
