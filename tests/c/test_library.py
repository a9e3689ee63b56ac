"""libfirsttouch as C, C++ and Fortran programs use it: built, installed, found, linked, called."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.programs import ROOT, compiled, execute

CRATE = ROOT / "crates" / "firsttouch-c"
EXAMPLES = CRATE / "examples"
PROGRAMS = Path(__file__).parent / "programs"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-D_GNU_SOURCE")


#: The functions of the last release.
RECORDED = set((CRATE / "abi.txt").read_text("utf-8").split())


def run(*command: object, **options: Any) -> str:
    done = execute(*command, **options)
    assert done.returncode == 0, f"{done.args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the library was installed."""
    if not (ROOT / "target" / "c" / "libfirsttouch.so").exists():
        pytest.skip("libfirsttouch is not built: make c-library")
    folder = tmp_path_factory.mktemp("prefix")
    run("make", "-C", CRATE, "--no-print-directory", "install-built", f"PREFIX={folder}")
    return folder


def built(prefix: Path, folder: Path, source: Path, *options: object, compiler: str = "cc") -> Path:
    libraries = ("-L", prefix / "lib", f"-Wl,-rpath,{prefix / 'lib'}", "-lfirsttouch", "-lm", "-lpthread")
    words = (*options, "-I", prefix / "include", source, *libraries)
    return compiled(folder / source.stem, *words, compiler=compiler)


@pytest.mark.parametrize("options", [("-std=c11", "-O0"), ("-std=c17", "-fsanitize=undefined")], ids=str)
def test_every_function(prefix: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    program = built(prefix, tmp_path, PROGRAMS / "everything.c", *STRICT, *options)
    assert run(program).endswith("done\n")


def test_every_function_from_the_static_library(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "static"
    private = re.search(r"^Libs.private: (.*)$", (prefix / "lib/pkgconfig/firsttouch.pc").read_text("utf-8"), re.M)
    assert private
    source, library = PROGRAMS / "everything.c", prefix / "lib" / "libfirsttouch.a"
    for options in ((), ("-static",)):
        command = ("cc", "-std=c11", *STRICT, *options, "-I", prefix / "include", source, library)
        run(*command, *private[1].split(), "-o", program)
        if not options:
            assert "libfirsttouch" not in run("ldd", program)
        assert run(program).endswith("done\n")


def test_the_header_is_also_cpp11(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "header.cpp"
    source.write_text(
        '#include <firsttouch.h>\nint main() { firsttouch_allocator *a; return firsttouch_parse("pool()", &a); }\n',
        encoding="utf-8",
    )
    run(built(prefix, tmp_path, source, *STRICT, "-std=c++11", compiler="c++"))


def test_cpp_containers_and_exceptions(prefix: Path, tmp_path: Path) -> None:
    program = built(prefix, tmp_path, PROGRAMS / "resources.cpp", *STRICT, "-std=c++17", compiler="c++")
    assert run(program) == "done\n"


def test_without_memory_every_call_works_or_fails(prefix: Path, tmp_path: Path) -> None:
    program = built(prefix, tmp_path, PROGRAMS / "exhausted.c", *STRICT, "-std=c11")
    assert run(program).endswith("done\n")


def test_pages_are_written_where_the_kernel_cannot_populate(prefix: Path, tmp_path: Path) -> None:
    output = run(built(prefix, tmp_path, PROGRAMS / "touches.c", *STRICT, "-std=c11"))
    if output == "skip\n":
        pytest.skip("needs seccomp")
    assert output == "done\n"


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_a_fork_during_the_first_use_in_another_thread(prefix: Path, tmp_path: Path, kind: str) -> None:
    library = [prefix / "lib" / "libfirsttouch.a"] if kind == "static" else ["-L", prefix / "lib", "-lfirsttouch"]
    options = (*STRICT, "-std=c11", "-I", prefix / "include", f"-Wl,-rpath,{prefix / 'lib'}")
    words = (*options, PROGRAMS / "forks.c", *library, "-lpthread", "-ldl", "-lm")
    assert run(compiled(tmp_path / "forks", *words)) == "done\n"


def test_unloading_does_not_unmap_what_helper_threads_run(prefix: Path, tmp_path: Path) -> None:
    program = compiled(tmp_path / "unload", *STRICT, "-std=c11", PROGRAMS / "unload.c", "-ldl")
    assert run(program, prefix / "lib" / "libfirsttouch.so") == "done\n"


def test_the_pool_spares_a_loop_its_page_faults(prefix: Path, tmp_path: Path) -> None:
    output = run(built(prefix, tmp_path, EXAMPLES / "temporaries.c", *STRICT, "-std=c11"))
    faults = dict(re.findall(r"^(\w+) .* (\d+) page faults", output, re.M))
    assert int(faults["pool"]) * 5 < int(faults["malloc"]), output
    assert len(set(re.findall(r"sum (\d+)", output))) == 1


def test_containers(prefix: Path, tmp_path: Path) -> None:
    output = run(built(prefix, tmp_path, EXAMPLES / "containers.cpp", *STRICT, "-std=c++17", compiler="c++"))
    assert "holds 8.0 MB" in output
    assert "64 MiB" in output, "the limit in bytes"
    assert "aligned to 64 bytes: yes" in output


def test_fortran_pointer_arrays(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("gfortran") is None:
        pytest.skip("needs gfortran")
    libraries = ("-L", prefix / "lib", f"-Wl,-rpath,{prefix / 'lib'}", "-lfirsttouch")
    sources = (prefix / "include" / "firsttouch.f90", EXAMPLES / "arrays.f90")
    run("gfortran", "-Wall", "-fcheck=all", "-J", tmp_path, *sources, "-o", tmp_path / "arrays", *libraries)
    heat, refused = run(tmp_path / "arrays").splitlines()
    assert heat.startswith("heat left: 1.0000"), heat
    assert "cannot allocate" in refused, refused


def test_the_commands_of_the_how_to(prefix: Path, tmp_path: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("needs pkg-config")
    page = (ROOT / "docs" / "howto" / "c-and-fortran.md").read_text("utf-8")
    (tmp_path / "program.c").write_text(re.findall(r"```c\n(.*?)```", page, re.DOTALL)[0], "utf-8")
    here = [command for command in re.findall(r"^\$ (.*)", page, re.MULTILINE) if "windows" not in command]
    commands = "\n".join(["set -e", *here, "./a.out"])
    commands = commands.replace("make install", f"make -C {CRATE} install-built")
    run("sh", "-c", commands, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})


@pytest.mark.usefixtures("prefix")
def test_cmake_finds_it_where_it_was_moved(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    source = Path(__file__).parent / "consumer"
    before, moved = tmp_path / "before", tmp_path / "moved"
    run("make", "-C", CRATE, "install-built", f"PREFIX={before}")
    before.rename(moved)
    run("cmake", "-S", source, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={moved}", f"-DEXAMPLES={EXAMPLES}")
    run("cmake", "--build", tmp_path)
    assert "pool" in run(tmp_path / "temporaries")
    assert "libfirsttouch" not in run("ldd", tmp_path / "containers")
    run(tmp_path / "containers")


def test_the_functions_of_the_last_release_are_there_and_declared(prefix: Path) -> None:
    symbols = run("nm", "-D", "--defined-only", prefix / "lib" / "libfirsttouch.so").splitlines()
    exported = {line.split()[2] for line in symbols if line.split()[1] == "T"}
    assert exported == RECORDED, exported ^ RECORDED
    declared = set(re.findall(r"\b(firsttouch_\w+)\(", (CRATE / "include" / "firsttouch.h").read_text("utf-8")))
    inline = {f"firsttouch_scratch_{name}" for name in ("alloc", "mark", "rewind")}
    assert {symbol.partition("@@")[0] for symbol in exported} == declared - inline
