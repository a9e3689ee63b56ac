"""`firsttouch --completion SHELL`: the script that completes commands and options in a shell."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence

from firsttouch.tools.cli.main import ABOUT, COMMANDS
from firsttouch.tools.cli.parser import Parser

_USAGE = "firsttouch --completion bash | zsh | fish"

_DESCRIPTION = """\
Print the script that lets a shell complete the commands and options of firsttouch.
"""

_EXAMPLES = """\
for example:
  firsttouch --completion bash >> ~/.bashrc
  firsttouch --completion zsh >> ~/.zshrc
  firsttouch --completion fish > ~/.config/fish/completions/firsttouch.fish
"""

_BASH = """\
_firsttouch() {{
    local options=''
    COMPREPLY=()
    case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
        1:-*) options='{about}' ;;
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
_FISH_FIRST = "complete -c firsttouch -n __fish_use_subcommand {what} -d {help}"


def main(words: Sequence[str]) -> int:
    """Print the script of a shell."""
    print(_SCRIPTS[_parser().parse(words).shell]())
    return 0


def _parser() -> Parser:
    parser = Parser("--completion", _DESCRIPTION, _USAGE, _EXAMPLES)
    parser.add_argument("shell", choices=sorted(_SCRIPTS), metavar="SHELL", help="bash, zsh or fish")
    return parser


def _parsers() -> dict[str, Parser]:
    """Return the parser of each command, and of what stands in its place."""
    modules = {name: f"firsttouch.tools.cli.{name.removeprefix('--')}" for name in (*COMMANDS, *ABOUT)}
    return {name: importlib.import_module(module)._parser() for name, module in modules.items()}


def _bash() -> str:
    cases = [
        _CASE.format(command=command, options=" ".join(name for option in parser.options() for name in option.names))
        for command, parser in _parsers().items()
    ]
    return _BASH.format(commands=" ".join(COMMANDS), about=" ".join(ABOUT), cases="\n".join(cases))


def _fish() -> str:
    first = {f"-f -a {name}": text for name, text in COMMANDS.items()}
    first |= {f"-l {name.removeprefix('--')}": text for name, text in ABOUT.items()}
    lines = [_FISH_FIRST.format(what=what, help=shlex.quote(text)) for what, text in first.items()]
    for command, parser in _parsers().items():
        for option in parser.options():
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = " -r" if option.takes_value else ""
            lines.append(_FISH.format(command=command, names=names, value=value, help=shlex.quote(option.help)))
    return "\n".join(lines)


_SCRIPTS = {"bash": _bash, "zsh": lambda: _ZSH + _bash(), "fish": _fish}
