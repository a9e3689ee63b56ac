"""The environments of the contenders."""

import json

import pytest

from firsttouch.tools import preload
from firsttouch.tools.compare import candidates
from firsttouch.tools.measuring.contenders import TUNED, Contender, mmap_threshold


def test_the_default_and_its_double_come_first() -> None:
    few, absent = candidates.chosen(False, [])
    assert [one.name for one in few] == ["the default", "the same again", "pool()", "tuned glibc"]
    assert absent == []


def test_everything_is_more_and_nobody_comes_twice() -> None:
    more, absent = candidates.chosen(True, ["pool()", "mimalloc()", "pool(decay=5)", "pool(decay=5)"])
    names = [one.name for one in more]
    assert len(set(names)) == len(names)
    assert {"mimalloc()", "jemalloc()", "pool(decay=5)"} < set(names)
    assert len([name for name in names if name.endswith(" preloaded")]) + len(absent) == 4


def test_programs_in_any_language_are_compared_by_their_malloc() -> None:
    few, _ = candidates.chosen(False, [], any_program=True)
    names = ["the default", "the same again", "pool()", "preloaded pool", "tuned glibc", "tuned glibc, huge pages"]
    assert [one.name for one in few] == names
    told = candidates.environment(candidates.PRELOADED, "/x")
    assert (told["LD_PRELOAD"], told["FIRSTTOUCH_PRELOAD"]) == (str(preload.FILE), "quiet=1 json=/x/%p.json")
    assert "FIRSTTOUCH_RUN" not in told
    assert candidates.how(candidates.PRELOADED, ["./a b"], []) == "firsttouch run './a b'"
    assert candidates.how(candidates.PRELOADED, ["a.py"], ["python3"]) == "firsttouch run --all a.py"


def test_settings_of_the_callers_reach_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.setenv("FIRSTTOUCH_RUN", '{"json": "x"}')
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libjemalloc.so.2:/usr/lib/libother.so")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "junk:true")  # of the bundled jemalloc
    monkeypatch.setenv("MINE", "1")
    default = candidates.environment(candidates.DEFAULT)
    assert "MALLOC_TRIM_THRESHOLD_" not in default
    assert "FIRSTTOUCH_RUN" not in default
    assert "_RJEM_MALLOC_CONF" not in default
    assert default["MINE"] == "1"
    assert default["LD_PRELOAD"] == "/usr/lib/libother.so"
    assert candidates.left_out() == ["FIRSTTOUCH_RUN", "LD_PRELOAD", "MALLOC_TRIM_THRESHOLD_", "_RJEM_MALLOC_CONF"]
    library = candidates.environment(Contender("x preloaded", {"LD_PRELOAD": "/lib/x.so"}))
    assert library["LD_PRELOAD"] == "/lib/x.so:/usr/lib/libother.so"
    assert json.loads(candidates.environment(candidates.POOL)["FIRSTTOUCH_RUN"]) == {"quiet": True}


def test_a_contender_alone_can_be_typed() -> None:
    words, python = ["a b.py", "1"], ["python3"]
    assert candidates.how(candidates.POOL, words, python) == "firsttouch run 'a b.py' 1"
    own = Contender("x", install='pool(pages(huge="thp"))')
    assert candidates.how(own, words, python) == "firsttouch run --allocator 'pool(pages(huge=\"thp\"))' 'a b.py' 1"
    tuned = candidates.how(Contender("tuned glibc", TUNED), words, [])
    assert tuned.startswith("MALLOC_TRIM_THRESHOLD_=")
    assert tuned.endswith(" 'a b.py' 1")


@pytest.mark.parametrize(
    ("libc", "most"),
    [(("glibc", "2.17"), 32), (("glibc", "2.34.9000"), 32), (("glibc", "2.35"), 4096), (("", ""), 4096)],
)
def test_old_glibc_takes_no_large_threshold(libc: tuple[str, str], most: int) -> None:
    assert mmap_threshold(libc) == most << 20
