"""`muarl doctor`: what this machine has for muarl, what is missing, and the command that adds it.

`muarl doctor RUN.yaml` looks at what that run needs as well: its engine, its model, and whether the
endpoints that it names answer and have the models that it asks for. Nothing is loaded, sampled or
written. What is missing and not asked for is no fault; exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from muarl.cli._answer import answer
from muarl.cli._arguments import add_settings
from muarl.doctor.finding import Finding, State

_MARKS = {State.OK: "+", State.MISSING: "-", State.WRONG: "!"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "spec", type=Path, nargs="*", metavar="RUN.yaml", help="a run file, and what lies over it"
    )
    add_settings(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Look, and say what is there; 1 if something is wrong."""
    from muarl.doctor.extras import extras
    from muarl.doctor.machine import machine
    from muarl.doctor.plugins import plugins

    found = [*machine(Path()), *extras(), *plugins()]
    if args.spec:
        import anyio

        from muarl.doctor.run import needs_of_run
        from muarl.spec import load_run

        located = load_run(*args.spec, settings=args.settings, without_weights=True)
        found += anyio.run(needs_of_run, located)
    wrong = sum(each.state is State.WRONG for each in found)
    if args.json:
        import msgspec

        answer(json.dumps({"wrong": wrong, "findings": msgspec.to_builtins(found)}))
    else:
        width = max(len(each.name) for each in found)
        answer("\n".join(_lines(found, width)))
    return int(bool(wrong))


def _lines(found: list[Finding], width: int) -> list[str]:
    lines = []
    area = ""
    for each in found:
        if each.area != area:
            area = each.area
            lines.append(area)
        lines.append(f"  {_MARKS[each.state]} {each.name:<{width}}  {each.words}")
        if each.remedy and each.state is not State.OK:
            lines.append(f"    {'':<{width}}  {each.remedy}")
    return [*lines, "+ is there, - is not (and only some runs need it), ! is wrong"]
