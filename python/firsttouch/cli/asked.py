"""What was asked of a command that starts a program: its own options, and the program."""

import argparse
import re
from collections.abc import Sequence

from firsttouch.cli import program
from firsttouch.cli.parser import BadUsageError, Parser


def parse(
    parser: Parser, words: Sequence[str], with_value: Sequence[str]
) -> tuple[argparse.Namespace, program.Program]:
    """Our options, and the program behind them; its absence is a mistake."""
    command = parser.command
    own, found = program.split(words, with_value, command)
    for word in own:
        if parser.unknown(word) and (advice := program.hint(word, command)):
            raise BadUsageError(f"{command}: {advice}")
    given = parser.parse(own)
    if found is None:
        raise BadUsageError(
            f"{command}: which program? A script, -m module or -c code (try firsttouch {command} --help)"
        )
    if re.fullmatch("[KMGT]i?B?", found.words[0], re.IGNORECASE) and not found.can_start:
        raise BadUsageError(f'{command}: no program {found.words[0]}; a size with a space takes quotes, as in "4 GiB"')
    return given, found


def lines(text: str) -> int:
    """How many lines of a table to show."""
    found = int(text)
    if found < 1:
        raise argparse.ArgumentTypeError(f"{found} lines: give 1 or more")
    return found
