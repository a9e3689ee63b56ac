"""Existing programs behave the same with the library as without it, on blocks of 16 KiB and more."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.preload.starting import PROGRAMS, start

#: Low, so that the pool serves as much as it can.
SETTINGS = "threshold=16384"


def same(*command: str, cwd: Path | None = None, stdin: str | None = None) -> str:
    """What a command prints, plainly and served."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    plain = start(*command, served=False, cwd=cwd, input=stdin)
    served = start(*command, settings=SETTINGS, cwd=cwd, input=stdin, timeout=280)
    assert (served.returncode, served.stdout, served.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.returncode == 0
    return served.stdout


def test_bash() -> None:
    script = """
        text=$(printf 'x%.0s' {1..20000}); echo ${#text}; echo "${text//x/yz}" | wc -c
        for i in {1..30}; do (echo $i) & done | sort -n | tail -n 1; wait
        trap 'echo ends' EXIT; cat <(echo one) <(echo two)
    """
    assert same("bash", "-c", script).splitlines()[-1] == "ends"


def test_git(tmp_path: Path) -> None:
    script = """
        export HOME=. GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
        export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
        rm -rf work; mkdir work; cd work; for i in $(seq 20); do seq $i $i 200000 > $i.txt; done
        git init -q . && git add *.txt && git commit -qm one
        sed -i 's/7/seven/' *.txt; git commit -qam two; git gc -q; git fsck --strict
        git clone -q . other; git -C other log --stat --format=%H; git diff HEAD~ | sha1sum
    """
    if shutil.which("git") is None:
        pytest.skip("no git")
    assert "20 files changed" in same("bash", "-c", script, cwd=tmp_path)


def test_perl() -> None:
    script = """
        my %h; $h{$_ % 1000} .= "x" x ($_ % 97) for 1..200000; my $s = join ",", map { length $h{$_} } sort keys %h;
        my @a = sort { $a <=> $b } map { ($_ * 7919) % 100003 } 1..100000; my $t = "ab" x 400000; $t =~ s/b/cd/g;
        print length($s), " $a[0] $a[-1] ", length($t), "\\n"; print fork() ? (wait(), "parent\\n")[1] : "child\\n";
    """
    assert "parent" in same("perl", "-e", script)


def test_sqlite3() -> None:
    script = """
        create table t(a integer primary key, b text, c blob);
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
          insert into t select i, printf('%0100d', i * 7919 % 40009), zeroblob(i % 300) from n;
        create index i on t(b); select count(*), sum(length(c)) from t; pragma integrity_check;
        select length(group_concat(b)) from t; delete from t where a % 3 = 0; vacuum; select max(b) from t;
        select length(zeroblob(50000000)), length(hex(zeroblob(5000000)));
    """
    assert "ok" in same("sqlite3", ":memory:", stdin=script)


def test_a_compiler(tmp_path: Path) -> None:
    same("g++", "-O1", "-std=c++17", str(PROGRAMS / "containers.cc"), "-o", "program", cwd=tmp_path)
    assert same(str(tmp_path / "program")).split()[2] == "3e+06"


#: Files of Python's own suite whose subject are large blocks, threads and processes.
FILES = ("test_bytes", "test_zlib", "test_array", "test_bz2", "test_mmap", "test_memoryio", "test_fork1", "test_thread")


@pytest.mark.slow
def test_python_s_own_tests() -> None:
    if start(sys.executable, "-c", "import test.test_zlib", served=False).returncode:
        pytest.skip("this Python has no tests")
    plain = start(sys.executable, "-m", "test", "-q", *FILES, served=False, timeout=280)
    if plain.returncode:
        pytest.skip("these tests fail plainly")
    served = start(sys.executable, "-m", "test", "-q", *FILES, settings=SETTINGS, timeout=280)
    assert served.returncode == 0, served.stdout[-3000:] + served.stderr[-3000:]


def test_numpy_on_the_library_alone() -> None:
    code = """
import numpy as np
a = np.arange(300_000.0)
for _ in range(20):
    b = (a * a + a) / (a + 1) - a
assert not b.any() or abs(b).max() < 1e-6
print(np.zeros(10**6).any(), np.concatenate([a] * 20).sum(), sorted(np.resize(a, 10**6))[-1])
"""
    assert same(sys.executable, "-c", code)
