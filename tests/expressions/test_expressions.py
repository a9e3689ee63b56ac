"""Expressions are parsed, never evaluated, and errors are located."""

import warnings

import pytest

import firsttouch as ft
from firsttouch._internal import resolve

pytestmark = pytest.mark.quick

PLAIN = "pool(pages(huge='thp'), max_idle=None, decay=1.0)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pool()", PLAIN),
        ("pool", PLAIN),
        ("  pool ( ) ", PLAIN),
        ("ft.pool()", PLAIN),
        ("firsttouch.pool", PLAIN),
        ('pool(pages(huge="thp"))', PLAIN),
        ("pool(ft.pages('thp'),)", PLAIN),
        ("pool(\n  pages(huge='thp'),  # the default\n)", PLAIN),
        ("pool(upstream=pages, decay=None)", "pool(pages(huge=False), max_idle=None, decay=None)"),
        ("pool(decay=+2, max_idle='4 GiB')", "pool(pages(huge='thp'), max_idle='4 GiB', decay=2.0)"),
        ("pool(max_idle=0x10_000)", "pool(pages(huge='thp'), max_idle='64 KiB', decay=1.0)"),
        ("pages(huge=False)", "pages(huge=False)"),
        ("malloc", "malloc()"),
        ("calloc()", "calloc()"),
        ("aligned('2 MiB')", "aligned(2097152)"),
        ("mimalloc", "mimalloc()"),
        ("ft.jemalloc()", "jemalloc()"),
        ("numpy_default", "numpy_default()"),
        ('limited(pool(), "4 GiB")', f"limited({PLAIN}, '4 GiB')"),
        ("limited(budget=10)", f"limited({PLAIN}, 10)"),
        ('limited("pool()", 10)', f"limited({PLAIN}, 10)"),
        ("tracked", f"tracked({PLAIN}, lines=False)"),
        ("tracked(malloc, lines=True)", "tracked(malloc(), lines=True)"),
        ("guarded", "guarded(pages(huge=False), side='after', keep=0)"),
        ("guarded(side='before', keep='1 MiB')", "guarded(pages(huge=False), side='before', keep='1 MiB')"),
        ("filled", f"filled({PLAIN}, on_allocate=255, on_free=None)"),
        ("filled(calloc, on_allocate=None, on_free=0)", "filled(calloc(), on_allocate=None, on_free=0)"),
    ],
)
def test_what_a_text_makes(text: str, shown: str) -> None:
    assert repr(resolve.parse(text)) == shown


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the allocator expression is empty"),
        ("mimaloc", "no allocator 'mimaloc' (did you mean mimalloc?) in 'mimaloc': there are aligned, "),
        ("pool(pags())", "no allocator 'pags' (did you mean pages?) in 'pool(pags())'"),
        ("__import__('os')", "no allocator '__import__' in "),
        ("pool(", "'pool(' is not an allocator expression: '(' is never closed, at character 5, before '('"),
        ("pool())", "unmatched ')', at character 7, before ')'"),
        ("pool() pages()", "'pool() pages()' is not an allocator expression: expected the end, at character 8"),
        ("ü.pool()", "expected an allocator's name, at character 1"),
        (
            "pool(max_idle='ü', decay=[])",
            "expected a number, a string, None, True, False or an allocator, at character 26",
        ),
        ("ft.cli.pool()", "expected an allocator's name"),
        ("pool()()", "expected the end"),
        ("pool().zeros(3)", "expected the end"),
        ("(lambda: pool)()", "expected an allocator's name"),
        ("[]", "expected an allocator's name"),
        ("3", "expected an allocator's name"),
        ("x = pool()", "'x = pool()' is not an allocator expression: "),
        ("import os", "'import os' is not an allocator expression: "),
        (
            "aligned(4 * 1024)",
            'expressions are not evaluated: write the number, or a size like "4 GiB", at character 11',
        ),
        ("aligned(2**60)", "expressions are not evaluated"),
        ("aligned(not 1)", "expected ',' or ')'"),
        ("aligned(~1)", "expected a number"),
        ("aligned(-True)", "expected a number"),
        ("aligned(1j)", "1j is not a number"),
        ("aligned(b'64')", "without the prefix b"),
        ("aligned(f'64')", "without the prefix f"),
        ("aligned(...)", "expected a number"),
        ("aligned(64 if 1 else 2)", "expected ',' or ')'"),
        ("aligned(x := 64)", "expected ',' or ')'"),
        ("pool(*pages)", "unpacking with * is not supported, at character 6"),
        ("pool(**pages)", "unpacking with ** is not supported, at character 6"),
        ("pool(\x00)", "expected a number"),
        ("aligned('\ud800')", ""),
        ("(" * 5000 + ")" * 5000, "expected an allocator's name"),
        ("aligned(" + "9" * 5000 + ")", "is too large"),
        ("aligned(" + "-" * 3000 + "1)", ""),
        ("pool(\n3 +)", "of line 2"),
    ],
)
def test_what_is_no_expression(text: str, said: str) -> None:
    with pytest.raises(ValueError) as error:
        resolve.parse(text)
    assert said in str(error.value)
    assert len(str(error.value)) < 700


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "pool(decai=3)",
            "pool() takes no decai (did you mean decay?): it takes upstream, numa, max_idle, decay (in ",
        ),
        (
            "pool(None, 3)",
            "pool(): too many positional arguments; it takes upstream, numa, max_idle, decay (in ",
        ),
        ("malloc(3)", "malloc(): too many positional arguments; it takes nothing (in 'malloc(3)')"),
        ("aligned", "aligned(): missing a required argument: 'alignment'"),
        ("pool(pool(), upstream=pool())", "multiple values for argument 'upstream'"),
        ("aligned(calloc)", "alignment=calloc() is an Allocator: give a number of bytes"),
        ("limited(pool)", "limited() needs a budget"),
    ],
)
def test_what_a_factory_does_not_take(text: str, said: str) -> None:
    with pytest.raises(TypeError) as error:
        resolve.parse(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "text",
    ["from_functions", "from_functions(malloc=1, free=2)", "tracked(ft.from_functions(malloc=1, free=2))"],
)
def test_text_names_no_addresses_of_code(text: str) -> None:
    for make in (resolve.parse, ft.install, lambda text: ft.zeros(9, allocator=text)):
        with pytest.raises(ValueError, match=r"call firsttouch\.allocators\.from_functions\(\)"):
            make(text)


def test_nesting_deeper_than_python_itself_can() -> None:
    text = "limited(" * 3000 + "malloc" + ", 1)" * 3000
    with pytest.raises(ValueError, match="nested too deeply"):
        resolve.parse(text)


def test_the_compiler_is_heard_by_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="is not an allocator expression"):
            resolve.parse(r"pool('\d' is 1)")


def test_one_text_is_one_allocator() -> None:
    text = 'limited(pool(), "1 MiB")'
    array = ft.ones(100_000, allocator=text)
    assert ft.get_allocator(array) == resolve.checked(text, "here")
    with pytest.raises(MemoryError, match=r"of which 781\.25 KiB are in use"):
        ft.ones(100_000, allocator=text)
    with ft.use(text) as same:
        assert same == ft.get_allocator(array)
    assert resolve.parse(text) != same


def test_texts_wherever_an_allocator_is_taken() -> None:
    ft.install("pool(decay=2)")
    assert repr(ft.get_allocator()) == "pool(pages(huge='thp'), max_idle=None, decay=2.0)"
    assert ft.stats("pool(decay=2)").mapped >= 0
    assert ft.trim("pool(decay=2)") >= 0
    assert ft.empty(3, allocator="aligned(4096)").ctypes.data % 4096 == 0
    assert repr(ft.tracked("malloc")) == "tracked(malloc(), lines=False)"
