"""`muarl synth SYNTH.yaml`: make dialogues for a cold start, and keep those that are verified.

The agent is the domain's expert, a model of yours or an LLM behind an endpoint; the user is any user.
All dialogues go through the verification that the file asks for, which needs no model: the table says
what each stage let pass, and why it refused the others. The folder is a run's: `episodes.journal` has
all dialogues, `verdicts.jsonl` what became of each, `yield.json` the table. What was interrupted or
killed goes on with `--resume`; with another `verify` in the file, what was made is looked at anew.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import anyio

from muarl.cli._answer import answer
from muarl.cli._arguments import add_layers, add_otel, add_out, add_resume, name_of_run
from muarl.cli._running import prepare_torch, run_resumably
from muarl.cli._telling import tell
from muarl.spec import dump_spec, load_synth


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_layers(
        parser,
        "SYNTH.yaml",
        "synthesis file, then files that hold a part of one: what they say replaces what it says",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_otel(parser)
    add_out(parser, "runs/<name of the file>")
    add_resume(parser, "go on with what that folder holds")


def run(args: argparse.Namespace) -> int:
    """Make, verify, and print the yield; 1 if nothing was kept."""
    synth = load_synth(*args.spec, settings=args.settings)
    if args.dry_run:
        answer(dump_spec(synth.spec.moved(synth.path.parent, Path()), defaults=True).rstrip())
        return 0
    prepare_torch(0)
    from muarl.cli._watching import require_watching, watched
    from muarl.train.ready import files_of_run
    from muarl.train.run_domain import content_of_run
    from muarl.train.run_folder import RunFolder, write_text
    from muarl.train.synthesis import (
        SPEC,
        files_of_synth,
        plan_of_synth,
        ready_synth,
        run_of_synth,
        synthesise,
    )

    played = run_of_synth(synth)
    require_watching(args, played)
    tell("reading the domain and its tasks")
    domain = anyio.run(ready_synth, synth, played)
    out = args.out or Path("runs") / name_of_run(args)
    with (
        RunFolder.opened(
            out,
            played.spec.moved(synth.path.parent, out),
            resume=args.resume,
            overwrite=args.overwrite,
            plan=plan_of_synth(synth.spec),
            reads=[*files_of_run(played), *files_of_synth(synth)],
            content=anyio.run(content_of_run, domain, played),
            accept_changes=args.accept_changes,
        ) as folder,
        watched(folder, played.spec, otel=args.otel, beside=[synth.spec]) as (
            observation,
            progress,
        ),
    ):
        moved = synth.spec.moved(synth.path.parent, out)
        write_text(folder.path / SPEC, dump_spec(moved, defaults=True))
        result = run_resumably(
            lambda stop: synthesise(
                domain,
                synth,
                played,
                folder=folder,
                progress=progress,
                stop=stop,
                observer=observation,
            ),
            out,
            observation,
            overwrote=args.overwrite,
        )
    if args.json:
        answer(json.dumps(result.as_json() | {"out": str(out)}))
    else:
        for line in result.lines():
            answer(line)
        answer(str(out))
    return 0 if result.kept else 1
