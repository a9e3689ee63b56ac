"""`firsttouch --completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from firsttouch.tools.cli.main import ABOUT, COMMANDS
from firsttouch.tools.cli.output import Parser

_DESCRIPTION = """\
Print the script that lets bash or zsh complete the commands and options of
firsttouch.
"""

_EXAMPLES = """\
for example:
  firsttouch --completion >> ~/.bashrc
  firsttouch --completion >> ~/.zshrc
"""

_SCRIPT = """\
[ -z "$ZSH_VERSION" ] || {{ autoload -Uz compinit bashcompinit && compinit && bashcompinit; }}
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


def main(words: Sequence[str]) -> int:
    """Print the script."""
    _parser().parse(words)
    cases = [f"        *:{command}) options='{' '.join(each.options())}' ;;" for command, each in parsers().items()]
    print(_SCRIPT.format(commands=" ".join(COMMANDS), about=" ".join([*ABOUT, "--version"]), cases="\n".join(cases)))
    return 0


def _parser() -> Parser:
    return Parser("--completion", _DESCRIPTION, "firsttouch --completion", _EXAMPLES)


def parsers() -> dict[str, Parser]:
    """Return the parser of each command, and of what stands in its place."""
    modules = {name: f"firsttouch.tools.cli.{name.removeprefix('--')}" for name in (*COMMANDS, *ABOUT)}
    return {name: importlib.import_module(module)._parser() for name, module in modules.items()}
