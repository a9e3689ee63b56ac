"""`make wheels`: PyPI's readme has no files beside it."""

from pathlib import Path

from wheels import readme

ROOT = Path(__file__).parents[2]
CARGO = '[workspace.package]\nversion = "1.2.3"\n'
TEXT = "[how](docs/a.md), [there](https://x.org/b), [up](#top)\n![two\nlines](c.svg)\n"


def test_links_and_pictures_lead_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(TEXT)
    (tmp_path / "Cargo.toml").write_text(f'{CARGO}repository = "https://g.org/o/n"\n')
    assert readme.name_repository(tmp_path)
    assert (tmp_path / "README.md").read_text() == (
        "[how](https://g.org/o/n/blob/v1.2.3/docs/a.md), [there](https://x.org/b), [up](#top)\n"
        "![two\nlines](https://g.org/o/n/raw/v1.2.3/c.svg)\n"
    )


def test_without_a_repository_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(TEXT)
    (tmp_path / "Cargo.toml").write_text(CARGO)
    assert not readme.name_repository(tmp_path)
    assert (tmp_path / "README.md").read_text() == TEXT


def test_no_link_of_ours_stays_relative() -> None:
    text = readme.absolute((ROOT / "README.md").read_text("utf-8"), "https://g.org", "v1")
    assert text.count("](") == text.count("](https://")
