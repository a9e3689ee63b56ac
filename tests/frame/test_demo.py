"""The demonstration: its figures are the kernel's, and it claims no gain that was not measured."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

import demo.__main__ as compare
from demo.measure import CommandError, Cost, run

if TYPE_CHECKING:
    from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


def costs(plain: list[float], pooled: list[float], processor: float = 1.0) -> dict[str, list[Cost]]:
    walls = {compare.PLAIN: plain, compare.POOLED: pooled}
    return {way: [Cost(wall, wall * processor, 0.0, 0, 0.0) for wall in runs] for way, runs in walls.items()}


def test_faults_memory_and_time_are_those_of_the_process() -> None:
    pages = 20_000
    code = f"import mmap; m = mmap.mmap(-1, {pages * PAGE}); m.madvise(mmap.MADV_NOHUGEPAGE)"
    code += "; m.write(bytes(len(m)))"
    _, idle = run([sys.executable, "-c", "import mmap"], dict(os.environ))
    text, busy = run([sys.executable, "-c", f"{code}; print('done')"], dict(os.environ))
    assert text == "done\n"
    assert busy.faults - idle.faults >= pages
    assert pages * PAGE / 2**20 <= busy.peak <= idle.peak + 2.1 * pages * PAGE / 2**20
    assert 0 < busy.kernel < busy.wall * (os.cpu_count() or 1) + 0.1


def test_a_command_that_fails_says_what_it_said() -> None:
    with pytest.raises(CommandError, match=r"ended with status 3:\nit broke"):
        run([sys.executable, "-c", "import sys; sys.stderr.write('it broke'); sys.exit(3)"], dict(os.environ))


def test_a_gain_is_claimed_only_where_all_rounds_agree() -> None:
    slow, fast = [4.0, 4.2, 3.8, 8.0, 4.0], [2.0, 2.1, 1.9, 4.0, 2.0]
    assert compare.verdict(costs(slow, fast)).endswith("is 2.00 times as fast (2.00 to 2.00 in the rounds).")
    assert "SLOWER: 0.50 times as fast" in compare.verdict(costs(fast, slow))
    assert "no difference is demonstrated" in compare.verdict(costs(slow, [*fast[:4], 4.1]))
    assert "too few rounds" in compare.verdict(costs(slow[:4], fast[:4]))


def test_a_busy_machine_is_mentioned() -> None:
    assert compare.busy(costs([2.0], [1.0], processor=0.9)) == ""
    assert "took 2.0 times their processor time" in compare.busy(costs([2.0], [1.0], processor=0.5))


def pretend(monkeypatch: pytest.MonkeyPatch, plain: str, pooled: str, report: dict[str, object]) -> None:
    """Two little programs in place of the real ones, the second of which leaves a report behind."""

    def commands(path: Path) -> dict[str, list[str]]:
        leave = f"open({str(path)!r}, 'w').write({json.dumps(report)!r})"
        return {
            compare.PLAIN: [sys.executable, "-c", plain],
            compare.POOLED: [sys.executable, "-c", f"{pooled}; {leave}"],
        }

    monkeypatch.setattr(compare, "commands", commands)


def test_different_output_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, "print('one')", "print('two')", {"pooled": True})
    assert compare.main(["--rounds", "1"]) == 1
    said = capsys.readouterr()
    assert "The two programs printed different output." in said.err
    assert "--- python\none\n" in said.out
    assert "--- firsttouch run\ntwo\n" in said.out


def test_a_run_without_the_pool_is_not_shown_as_one_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"pooled": False, "not_pooled_because": "NumPy is odd"}
    pretend(monkeypatch, "print('same')", "print('same')", said)
    assert compare.main(["--rounds", "1"]) == 1
    output = capsys.readouterr()
    assert "firsttouch run ran without the pool: NumPy is odd" in output.err
    assert output.out == ""


def test_equal_output_is_shown_with_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, "print('same')", "print('same')", {"pooled": True})
    assert compare.main(["--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "\nsame\n" in said
    assert "Medians of 2 alternating runs of each" in said
    assert "\npython " in said
    assert "\nfirsttouch run " in said
