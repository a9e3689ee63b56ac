"""`firsttouch completion SHELL`: the script that completes commands and options in a shell."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence

from firsttouch.tools.cli.main import COMMANDS
from firsttouch.tools.cli.parser import Parser

_USAGE = "firsttouch completion bash | zsh | fish"

_DESCRIPTION = """\
Print the script that lets a shell complete the commands and options of firsttouch.
"""

_EXAMPLES = """\
for example:
  firsttouch completion bash >> ~/.bashrc
  firsttouch completion zsh >> ~/.zshrc
  firsttouch completion fish > ~/.config/fish/completions/firsttouch.fish
"""

_BASH = """\
_firsttouch() {{
    local options=''
    COMPREPLY=()
    case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
        1:*) options='{commands}' ;;
{cases}
    esac
    case "$COMP_CWORD:$2" in 1:*|*:-*) COMPREPLY=($(compgen -W "$options" -- "$2")) ;; esac
}}
complete -o default -F _firsttouch firsttouch
"""
_CASE = "        *:{command}) options='{options}' ;;"
#: zsh reads the same.
_ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"

_FISH = "complete -c firsttouch -n '__fish_seen_subcommand_from {command}' {names}{value} -d {help}"
_FISH_COMMAND = "complete -c firsttouch -n __fish_use_subcommand -f -a {command} -d {help}"


def main(words: Sequence[str]) -> int:
    """Print the script of a shell."""
    print(_SCRIPTS[_parser().parse(words).shell]())
    return 0


def _parser() -> Parser:
    parser = Parser("completion", _DESCRIPTION, _USAGE, _EXAMPLES)
    parser.add_argument("shell", choices=sorted(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    return parser


def _parsers() -> dict[str, Parser]:
    """Return the parser of each command."""
    return {name: importlib.import_module(f"firsttouch.tools.cli.{name}")._parser() for name in COMMANDS}


def _bash() -> str:
    cases = [
        _CASE.format(command=command, options=" ".join(name for option in parser.options() for name in option.names))
        for command, parser in _parsers().items()
    ]
    return _BASH.format(commands=" ".join(COMMANDS), cases="\n".join(cases))


def _fish() -> str:
    lines = [_FISH_COMMAND.format(command=name, help=shlex.quote(text)) for name, text in COMMANDS.items()]
    for command, parser in _parsers().items():
        for option in parser.options():
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = " -r" if option.takes_value else ""
            lines.append(_FISH.format(command=command, names=names, value=value, help=shlex.quote(option.help)))
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": lambda: _ZSH + _bash(), "fish": _fish}
