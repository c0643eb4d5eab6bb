"""`muarl completion SHELL`: a script by which the shell completes verbs, options, files and choices.

bash: `muarl completion bash > ~/.local/share/bash-completion/completions/muarl`; zsh: into a file `_muarl`
in a folder of `$fpath`. It is made from the parsers themselves: make it anew after an upgrade.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from muarl.cli._answer import answer

_SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("shell", choices=_SHELLS, help="whose script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    from muarl.cli import parser_of_all

    whole = parser_of_all()
    _complete_files(whole, shtab.FILE)
    answer(shtab.complete(whole, shell=args.shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, files: Any) -> None:
    """Let every argument that is a path be completed as one."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                _complete_files(verb, files)
        elif action.type is Path:
            action.complete = files  # type: ignore[attr-defined]
