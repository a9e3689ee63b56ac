"""The release script makes a tag when everything agrees, and refuses when anything is out of step."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from release import __main__ as command
from release import changelog, reasons, versions

ROOT = Path(__file__).resolve().parents[2]
VERSION = versions.version_of(ROOT)
ADDRESS = "https://example.org/firsttouch"
TODAY = date.today()

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def edit(path: Path, pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, lambda match: match.expand(text), path.read_text("utf-8"), flags=re.MULTILINE)
    assert count, f"{path}: nothing matches {pattern}"
    path.write_text(changed, "utf-8")


def commit(root: Path) -> None:
    reasons.git(root, "add", "--all")
    reasons.git(root, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "x")


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of what the script reads, in which nothing is out of step."""
    manifests = (str(path.relative_to(ROOT)) for path in ROOT.glob("crates/*/Cargo.toml"))
    map_file = "crates/firsttouch-c/firsttouch.map"
    for name in {*(place.path for place in versions.PLACES), *manifests, map_file, "pyproject.toml"}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## {VERSION} ({TODAY})\n\n### Added\n\n- All.\n\n## 0.0.9\n"
    )
    cargo, citation = tmp_path / "Cargo.toml", tmp_path / "CITATION.cff"
    cargo.write_text(re.sub("(?m)^repository = .*\n", "", cargo.read_text("utf-8")))
    for crate in ("firsttouch", "firsttouch-trace"):
        manifest = tmp_path / "crates" / crate / "Cargo.toml"
        manifest.write_text(re.sub("(?m)^repository.*\n", "", manifest.read_text("utf-8")))
        edit(manifest, "^version.workspace = true", "version.workspace = true\nrepository.workspace = true")
    project = tmp_path / "pyproject.toml"
    kept_project = re.sub(r"(?m)^\[project\.urls\]\n(?:.+\n)*", "", project.read_text("utf-8"))
    project.write_text(f'{kept_project}\n[project.urls]\nSource = "{ADDRESS}"\n', "utf-8")
    edit(cargo, r"^(\[workspace\.package\]\n(?:.+\n)+)", rf'\1repository = "{ADDRESS}"\n')
    kept = [line for line in citation.read_text("utf-8").splitlines() if not re.match("date-rel|repository-c", line)]
    citation.write_text("\n".join([*kept, f"repository-code: {ADDRESS}", f"date-released: {TODAY}", ""]), "utf-8")
    reasons.git(tmp_path, "init", "--quiet")
    for variable in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{variable}_NAME", "A")
        monkeypatch.setenv(f"GIT_{variable}_EMAIL", "a@example.org")
    commit(tmp_path)
    return tmp_path


def test_the_tag_carries_the_section(ready: Path) -> None:
    command.main(["tag"], ready)
    text = reasons.git(ready, "tag", "--list", "--format=%(contents)", f"v{VERSION}")
    assert text == f"firsttouch {VERSION}\n\n### Added\n\n- All."
    command.main(["verify", f"v{VERSION}"], ready)


REFUSALS: dict[str, tuple[Callable[[Path], object], str]] = {
    **{
        f"{place.path} {place.form}": (
            lambda root, place=place: edit(  # type: ignore[misc]
                root / place.path, place.pattern, "# replaced"
            ),
            rf"{re.escape(place.path)} states no version",
        )
        for place in versions.PLACES[1:]
    },
    "crate": (
        lambda root: edit(
            root / "crates/firsttouch-trace/Cargo.toml", "^version.workspace = true", 'version = "9.0.0"'
        ),
        "crates/firsttouch-trace/Cargo.toml states a version of its own",
    ),
    "lock": (
        lambda root: edit(root / "Cargo.lock", r'^(name = "firsttouch-c"\nversion = ").*"', r'\g<1>9.0.0"'),
        f"Cargo.lock says 9.0.0, Cargo.toml {re.escape(VERSION)}",
    ),
    "dependency": (
        lambda root: edit(root / "Cargo.toml", r'version = "=.*?"', 'version = "=9.0.0"'),
        f"Cargo.toml says 9.0.0, Cargo.toml {re.escape(VERSION)}",
    ),
    "citation": (
        lambda root: edit(root / "CITATION.cff", "^version: .*", "version: 9.0.0"),
        f"CITATION.cff says 9.0.0, Cargo.toml {re.escape(VERSION)}",
    ),
    "soname": (
        lambda root: edit(root / "julia/FirstTouch/src/library.jl", r"\.so\.[\d.]*", ".so.9"),
        "library.jl says 9, Cargo.toml",
    ),
    "symbols": (
        lambda root: edit(root / "crates/firsttouch-c/firsttouch.map", r"^FIRSTTOUCH_[\d.]+", "FIRSTTOUCH_9"),
        r"firsttouch\.map has no version FIRSTTOUCH_\d",
    ),
    "pyproject": (
        lambda root: edit(root / "pyproject.toml", r'^dynamic = \["version"\]', 'version = "0.1.0"'),
        "pyproject.toml states a version of its own",
    ),
    "unreleased": (
        lambda root: edit(root / "CHANGELOG.md", rf"^## {re.escape(VERSION)}.*", "## Unreleased"),
        'the top section of CHANGELOG.md is "Unreleased", not',
    ),
    "no date": (
        lambda root: edit(root / "CHANGELOG.md", r" \(.*\)$", ""),
        f'the top section of CHANGELOG.md is "{re.escape(VERSION)}", not',
    ),
    "no such day": (
        lambda root: edit(root / "CHANGELOG.md", r" \(.*\)$", " (2026-02-30)"),
        "cannot read the date of .* in CHANGELOG.md: ",
    ),
    "future": (
        lambda root: edit(root / "CHANGELOG.md", r" \(.*\)$", f" ({TODAY + timedelta(3)})"),
        "in the future",
    ),
    "another date": (
        lambda root: edit(root / "CITATION.cff", "^date-released: .*", "date-released: 2001-01-01"),
        "CITATION.cff has date-released: 2001-01-01; CHANGELOG.md says",
    ),
    "nothing changed": (
        lambda root: edit(root / "CHANGELOG.md", r"^### Added\n\n- All\.\n", ""),
        "is empty; say what changed",
    ),
    "no repository": (
        lambda root: edit(root / "Cargo.toml", "^repository = .*\n", ""),
        "Cargo.toml names no repository",
    ),
    "another repository": (
        lambda root: edit(root / "CITATION.cff", "^repository-code: .*", "repository-code: https://example.org/other"),
        f"CITATION.cff needs repository-code: {re.escape(ADDRESS)}",
    ),
    "a crate's repository": (
        lambda root: edit(root / "crates/firsttouch/Cargo.toml", "^repository.workspace = true", ""),
        "crates/firsttouch/Cargo.toml needs repository.workspace = true",
    ),
    "PyPI's link": (
        lambda root: edit(root / "pyproject.toml", "^Source = .*", ""),
        'pyproject.toml needs Source = "https://example.org/firsttouch"',
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_out_of_step_is_refused(ready: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    damage, message = REFUSALS[name]
    damage(ready)
    commit(ready)
    with pytest.raises(SystemExit):
        command.main(["tag"], ready)
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 1
    assert any(re.search(message, line) for line in said), said
    assert reasons.git(ready, "tag", "--list") == ""


def test_a_section_without_an_empty_line_before_the_next_is_empty(ready: Path) -> None:
    (ready / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} ({TODAY})\n## 0.0.9\n\n- All.\n")
    assert any("is empty; say what changed" in reason for reason in reasons.of_files(ready, VERSION))


def test_an_unclean_tree_is_refused(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ready / "forgotten").touch()
    with pytest.raises(SystemExit):
        command.main(["tag"], ready)
    assert "uncommitted changes" in capsys.readouterr().err


def test_a_tag_that_exists_is_refused(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons.git(ready, "tag", f"v{VERSION}")
    with pytest.raises(SystemExit):
        command.main(["tag"], ready)
    assert f"the tag v{VERSION} exists" in capsys.readouterr().err


def test_what_git_refuses_is_said_in_its_words(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_NAME", "")
    with pytest.raises(SystemExit, match=r"git tag: .*empty ident name"):
        command.main(["tag"], ready)
    shutil.rmtree(ready / ".git")
    with pytest.raises(SystemExit, match="git status: fatal: not a git repository"):
        command.main(["tag"], ready)


@pytest.mark.parametrize("name", ["LICENSE-APACHE", "LICENSE-MIT"])
@pytest.mark.parametrize("crate", ["firsttouch", "firsttouch-trace"])
def test_a_published_crate_carries_the_text_of_both_licences(crate: str, name: str) -> None:
    assert (ROOT / "crates" / crate / name).read_text("utf-8") == (ROOT / name).read_text("utf-8")


def test_another_tag_is_not_verified(ready: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["verify", "v9.0.0"], ready)
    assert f"the tag is v9.0.0, and Cargo.toml says {VERSION}" in capsys.readouterr().err


def test_prepare_leaves_only_the_map_of_symbols_to_do(ready: Path) -> None:
    edit(ready / "CHANGELOG.md", rf"^## {re.escape(VERSION)}.*", "## Unreleased")
    command.main(["prepare", "7.8.9"], ready)
    (left,) = reasons.of_files(ready, "7.8.9")
    assert "no version FIRSTTOUCH_7" in left


def test_prepare_needs_three_numbers(ready: Path) -> None:
    with pytest.raises(SystemExit, match="a version is three numbers"):
        command.main(["prepare", "7.8"], ready)


def test_the_versions_of_this_checkout_agree() -> None:
    """The rest may be out of step until a release is prepared."""
    assert list(versions.disagreements(ROOT, VERSION)) == []
    assert changelog.top(ROOT).body


def test_help() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "release", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "prepare X.Y.Z" in said.stdout
