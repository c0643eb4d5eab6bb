"""The reference of every verb, as Markdown: generated from the parsers, committed, checked fresh."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

from muarl.cli import EXIT_CODES, VERBS, parser_of

WITHOUT_JSON = {
    "init": "names the files that it wrote",
    "play": "holds a dialogue",
    "serve": "speaks MCP on stdout",
    "view": "prints one address",
    "completion": "prints a script",
    "schema": "writes JSON itself",
}
"""Verbs that have no `--json`, and what their answer is instead."""

_WITHOUT = f"These have none: {', '.join(f'`{verb}` {why}' for verb, why in WITHOUT_JSON.items())}."

_HEAD = f"""\
<!-- Written by `muarl schema --docs docs`: change the parsers in muarl.cli instead. -->

# Commands

`--help` of a verb says the same in a terminal. Answers go to stdout, progress and complaints to
stderr. {EXIT_CODES.capitalize()}

With `--json` a verb prints JSON alone: an object, or one on each line where its help says so. {_WITHOUT}

| verb | does |
|---|---|
"""


def cli_page() -> str:
    """All verbs, with what their help says.

    Not as argparse prints it: that differs from one Python to the next, and with the terminal.
    """
    rows = [f"| [`{verb}`](#muarl-{verb}) | {summary} |" for verb, summary in VERBS.items()]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n\n".join(map(_section, VERBS)) + "\n"


def _section(verb: str) -> str:
    parser = parser_of(verb)
    actions = [action for action in parser._actions if action.dest != "help"]
    usage = " ".join(["muarl", verb, *_needed(parser, actions)])
    options = " [OPTION ...]" if any(action.option_strings for action in actions) else ""
    rows = [f"| `{_written(action)}` | {_meaning(action)} |" for action in actions]
    return "\n\n".join(
        [
            f"## muarl {verb}",
            f"```text\n{usage}{options}\n```",
            inspect.cleandoc(parser.description or ""),
            "\n".join(["| argument | meaning |", "|---|---|", *rows]),
        ]
    )


def _needed(parser: argparse.ArgumentParser, actions: list[argparse.Action]) -> Iterator[str]:
    """What must be given, as it stands in the usage."""
    yield from (_written(action) for action in actions if action.required)
    for group in parser._mutually_exclusive_groups:
        if group.required:
            yield f"({' | '.join(map(_written, group._group_actions))})"


def _written(action: argparse.Action) -> str:
    """How an argument is written: `--out FOLDER`, `RUN ...`."""
    words = list(action.option_strings[-1:])
    if action.nargs != 0:
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else None
        words.append(str(action.metavar or choices or action.dest.upper()))
    if action.nargs in ("+", "*"):
        words.append("...")
    return " ".join(words)


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "") % vars(action)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
