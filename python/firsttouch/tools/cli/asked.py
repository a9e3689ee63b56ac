"""What was asked of a command that starts a program: its own options, and the program."""

from __future__ import annotations

from firsttouch.tools.cli import program
from firsttouch.tools.cli.usage import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from firsttouch.tools.cli.parser import Parser

_UNITS = {f"{letter}{rest}" for letter in "KMGT" for rest in ("", "B", "I", "IB")}


def parse(
    parser: Parser, words: Sequence[str], with_value: Sequence[str]
) -> tuple[argparse.Namespace, program.Program]:
    """Our options, and the program behind them; its absence is a mistake."""
    command = parser.command
    own, found = program.split(words, with_value, command)
    for word in own:
        if parser.unknown(word) and (advice := program.hint(word, command)):
            raise BadUsageError(f"{command}: {advice}")
    return parser.parse(own), there(found, command)


def there(found: program.Program | None, command: str) -> program.Program:
    """The program, unless there is none, or it is what became of a size."""
    if found is None:
        raise BadUsageError(
            f"{command}: which program? A script, -m module or -c code (try firsttouch {command} --help)"
        )
    if found.words[0].upper() in _UNITS and not found.can_start:
        raise BadUsageError(f'{command}: no program {found.words[0]}; a size with a space takes quotes, as in "4 GiB"')
    return found


def lines(text: str) -> int:
    """How many lines of a table to show."""
    found = int(text)
    if found < 1:
        import argparse

        raise argparse.ArgumentTypeError(f"{found} lines: give 1 or more")
    return found
