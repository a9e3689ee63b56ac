"""The argument parser of every command, and its one-line errors with suggestions."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from firsttouch._firsttouch import did_you_mean
from firsttouch.tools.cli import BadUsageError as BadUsageError


class Parser(argparse.ArgumentParser):
    """Parses the options of one command."""

    def __init__(self, command: str, description: str, usage: str, examples: str) -> None:
        super().__init__(
            prog=f"firsttouch {command}",
            usage=usage,
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.command = command

    def error(self, message: str) -> NoReturn:
        """Exit with a line that names the command."""
        raise BadUsageError(f"{self.command}: {message}")

    def options(self) -> list[str]:
        """Return the names of the options."""
        return [name for action in self._actions for name in action.option_strings]

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse all words; an unexpected one is an error with a suggestion."""
        found, left = self.parse_known_args(list(words))
        if left:
            word = left[0].partition("=")[0]
            what = "unknown option" if word.startswith("-") else "unexpected argument"
            self.error(f"{what} {word}{did_you_mean(word, self.options())}")
        return found
