"""Prepare, check and tag a release.

prepare X.Y.Z   write the version everywhere, and date the changelog's section; the rest is for you to review and commit
tag             refuse when anything is out of step; else make the annotated tag vX.Y.Z, with the changelog as its text
verify vX.Y.Z   check the files once more where the tag is built
"""

import argparse
import sys
from datetime import date
from pathlib import Path

from release import changelog, reasons, versions

ROOT = Path(__file__).resolve().parents[1]


def prepare(root: Path, version: str) -> None:
    """Write a version and today's date everywhere."""
    if not versions.NUMBER.fullmatch(version):
        raise SystemExit(f"cannot prepare {version!r}: a version is three numbers, such as 0.2.0")
    day = date.today()
    changelog.write_title(root, version, day)
    versions.write(root, version)
    citation = root / "CITATION.cff"
    lines = [line for line in citation.read_text("utf-8").splitlines() if not line.startswith("date-released:")]
    citation.write_text("\n".join([*lines, f"date-released: {day}", ""]), "utf-8")
    print(f"Wrote {version} and {day}: review `git diff`, commit, then `python -m release tag`.")


def tag(root: Path) -> None:
    """Make the tag, or say what is in its way."""
    version = versions.version_of(root)
    _refuse(f"cannot tag v{version}", [*reasons.of_files(root, version), *reasons.of_git(root, version)])
    text = f"firsttouch {version}\n\n{changelog.top(root).body}\n"
    # Headings begin with what git takes for comments.
    reasons.git(root, "tag", "--annotate", "--cleanup=whitespace", "--file=-", f"v{version}", text=text)
    print(f"Tagged v{version}: `git push origin v{version}` builds, attests and publishes it.")


def verify(root: Path, name: str) -> None:
    """Check that a tag's name and files agree."""
    version = versions.version_of(root)
    wrong = [] if name == f"v{version}" else [f"the tag is {name}, and Cargo.toml says {version}"]
    _refuse(f"cannot release {name}", [*wrong, *reasons.of_files(root, version)])
    print(f"{name}: the files agree.")


def _refuse(what: str, found: list[str]) -> None:
    for reason in found:
        print(f"{what}: {reason}", file=sys.stderr)
    if found:
        raise SystemExit(1)


def main(arguments: list[str] | None = None, root: Path = ROOT) -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(
        "python -m release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare").add_argument("version")
    commands.add_parser("tag")
    commands.add_parser("verify").add_argument("tag")
    given = parser.parse_args(arguments)
    match given.command:
        case "prepare":
            prepare(root, given.version)
        case "tag":
            tag(root)
        case "verify":
            verify(root, given.tag)


if __name__ == "__main__":
    main()
