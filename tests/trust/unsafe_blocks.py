"""Count the blocks of unsafe code in the crates, at a commit and now, for the table of the page on trust."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterable

from tests.trust.campaign import ROOT
from tests.trust.record import record

BLOCK = re.compile(r"\bunsafe\s*\{")
NOT_CODE = re.compile(r"//[^\n]*|\"(?:\\.|[^\"\\])*\"", re.DOTALL)


def count(texts: Iterable[str]) -> int:
    return sum(len(BLOCK.findall(NOT_CODE.sub("", text))) for text in texts)


def now() -> Iterable[str]:
    return (path.read_text("utf-8") for path in ROOT.glob("crates/*/src/**/*.rs"))


def at(commit: str) -> Iterable[str]:
    done = subprocess.run(["git", "archive", commit, "crates"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as files:
        for each in files:
            if re.fullmatch(r"crates/[^/]+/src/.*\.rs", each.name) and (file := files.extractfile(each)):
                yield file.read().decode()


if __name__ == "__main__":
    began = time.monotonic()
    did = f"{count(now())} blocks, {count(at(sys.argv[1]))} at {sys.argv[1]}"
    print(did)
    record("unsafe blocks", time.monotonic() - began, did, "each says what it relies on")
