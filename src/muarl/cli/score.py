"""`muarl score RUN`: score stored episodes by the predicates of today; no model is needed.

What counts are the domain's predicates and gold calls as they are now, those of the tasks where they
have their own, or those of a file (`--reward`). What happened is taken from the record: no tool is
called for it. The episodes with their new rewards go to a folder of their own, which can be reported
and exported like any run; the old record stays as it is. Prints success before and after.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import anyio
import msgspec

from muarl.cli._answer import answer
from muarl.cli._arguments import add_out
from muarl.cli._stored import (
    add_domain,
    add_runs,
    domain_of,
    files_of,
    predicates_of,
    spec_of,
    stored_episodes,
)
from muarl.evaluate.rescore import Rescored, rescore
from muarl.evaluate.summary import summarise
from muarl.record import JournalWriter, StoredEpisodes
from muarl.record.placing import placed
from muarl.spec import RunSpec
from muarl.suite import AnyDomain
from muarl.train.run_folder import RunFolder
from muarl.train.said import said_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_runs(parser)
    add_domain(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_out(parser, "RUN-scored, beside the first RUN")


def run(args: argparse.Namespace) -> int:
    """Score, write and print.

    Raises:
        SetupError: Results would replace what is to be read, or something else.
    """
    episodes = stored_episodes(args)
    domain = domain_of(args)
    predicates = predicates_of(args, domain)
    first: Path = args.runs[0]
    out: Path = args.out or _beside(first)
    reads = [*files_of(args.runs), domain.located.path, *([args.reward] if args.reward else [])]
    plan = {"scored": ", ".join(map(str, args.runs)), "predicates": str(args.reward or "")}
    with placed(out, overwrite=args.overwrite, marker="spec.resolved.yaml", reads=reads) as fresh:
        folder = RunFolder.create(
            fresh, _spec(args, out, domain), resume=False, overwrite=False, plan=plan
        )

        async def main(journal: JournalWriter) -> list[Rescored]:
            return await rescore(domain, episodes, journal.append, predicates=predicates)

        with JournalWriter(folder.journal) as journal:
            phases = anyio.run(main, journal)
        tags = {phase.phase: _tag(args.runs, phase.phase) for phase in phases}
        for phase in phases:  # what the report of that folder shows
            scored = summarise(StoredEpisodes([folder.journal], [phase.phase]))
            fields = msgspec.to_builtins(scored) | {"contamination": tags[phase.phase]}
            folder.log("rollout", phase=phase.phase, **fields)
    if args.json:
        said = [
            {**msgspec.to_builtins(phase), "contamination": tags[phase.phase]} for phase in phases
        ]
        answer(json.dumps({"out": str(out), "phases": said}))
    else:
        for phase in phases:
            tag = tags[phase.phase]
            answer(_in_words(phase) + (f"; trained on: {tag['says']}" if tag else ""))
        answer(out)
    return 0


def _beside(run: Path) -> Path:
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(f"{named.name}-scored")


def _spec(args: argparse.Namespace, out: Path, domain: AnyDomain) -> RunSpec:
    """The spec of the first run, with the domain that judged."""
    spec = spec_of(args.runs[0]).spec.moved(args.runs[0], out)
    if args.domain is None:
        return spec
    named = spec.model_copy(update={"domain": str(domain.located.path)})
    return spec.model_copy(update={"domain": named.moved(Path(), out).domain})


def _tag(runs: list[Path], phase: str) -> dict[str, Any] | None:
    """What the runs say of what the policy was trained on; None where none says it."""
    folders = (RunFolder(run) for run in runs)
    said = (said_of(folder, list(folder.lines()), phase).contamination for folder in folders)
    tag = next((each for each in said if each is not None), None)
    return None if tag is None else msgspec.to_builtins(tag)


def _in_words(phase: Rescored) -> str:
    return (
        f"{phase.phase}: success {phase.before} before, {phase.after} now, on {phase.n} dialogues; "
        f"{phase.gained} gained, {phase.lost} lost, {phase.faults} faults"
    )
