"""Which programs the machines are to run."""

from pathlib import Path

import pytest

from tests.aarch64 import __main__ as command
from tests.aarch64 import programs


def test_a_misspelt_program_is_refused_and_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "build", lambda: {"fork": Path("fork"), "lib": Path("lib")})
    monkeypatch.setattr(programs, "pack", lambda _archive, built, *_: len(built))
    monkeypatch.setattr(command, "_unpacked", lambda _: None)
    assert command.prepared(["fork"])[0] == 1
    with pytest.raises(SystemExit, match="unknown program 'frok': there are fork, lib, python"):
        command.prepared(["frok"])
