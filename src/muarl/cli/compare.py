"""`muarl compare RUN RUN ...`: evaluations that were played already, on the tasks that all of them share.

The first is what each other one is compared with, paired by task and user: the difference with its interval,
a sign-flip test, adjusted for all the comparisons, and what the sample could not have shown. Of each run what
counts is the evaluation of its trained policy, or `--phase`; several phases of one run can be compared, too.
Runs that differ in the seed alone are several trainings of one kind: their dialogues are taken together, and
what they say of a further training stands beside. docs/evaluation.md says what each figure means.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from muarl.cli._answer import answer
from muarl.cli._tables import number, table

if TYPE_CHECKING:
    from muarl.evaluate.sides import KindScore, RunDifference
    from muarl.train.stored_sides import StoredSide


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="NAME",
        help="the evaluation that counts, such as `eval:cold:T1`; may be given several times",
    )
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="compare tasks although something changed by which they were played or judged",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Compare, and print what was found."""
    from muarl.evaluate.sides import differences_of, scores
    from muarl.train.stored_sides import kinds_of, notes_of, stored_sides, what_changed

    sides = stored_sides(args.runs, args.phase)
    kinds = kinds_of(sides)
    found = differences_of(
        kinds,
        accept_changes=args.accept_changes,
        what_changed=lambda one, other: what_changed(sides, one, other),
    )
    reached, notes = scores(kinds), list(notes_of(sides))
    if args.json:
        said = {
            "runs": list(map(_as_json, sides)),
            "kinds": msgspec.to_builtins(reached),
            "differences": msgspec.to_builtins(found),
            "notes": notes,
        }
        answer(json.dumps(said))
        return 0
    for line in (*_of_runs(sides), *_of_kinds(reached), *_of_differences(found), *notes):
        answer(line)
    return 0


def _as_json(side: StoredSide) -> dict[str, Any]:
    fields = {
        "run": str(side.folder),
        "phase": side.phase,
        "seed": side.side.seed,
        "above_floor": side.above_floor,
        "floor": side.floor,
        "contamination": side.contamination,
        "observed": side.observed,
        "summary": side.summary,
    }
    said: dict[str, Any] = msgspec.to_builtins(fields, str_keys=True)
    return said


def _of_runs(sides: Sequence[StoredSide]) -> Iterator[str]:
    from muarl.cli._status import why_failed

    most = max((k for side in sides for k in side.summary.pass_hat), default=1)
    passed = [f"pass^{most}"] if most > 1 else []
    rows = [["", "phase", "success", "above floor", *passed, "turns", "faults", "trained on"]]
    for side in sides:
        summary = side.summary
        turns = summary.turns.value
        rows.append(
            [
                *(str(side.folder), side.phase, number(summary.success)),
                "" if side.above_floor is None else number(side.above_floor),
                *(
                    number(summary.pass_hat[most]) if most in summary.pass_hat else ""
                    for _ in passed
                ),
                "" if turns is None else f"{turns:.1f}",
                f"{summary.faults:,}",
                side.contamination.tag,
            ]
        )
    yield from table(rows)
    if any(side.contamination.tag.endswith("*") for side in sides):
        yield "* what the model it began as was trained on is not known"
    for side in sides:
        for line in why_failed(side.summary.failures):
            yield f"{side.side.name}: {line}"


def _of_kinds(kinds: Sequence[KindScore]) -> Iterator[str]:
    from muarl.evaluate.trainings import ONE

    for kind in kinds:
        if len(kind.runs) > 1:
            yield f"{kind.name} and {len(kind.runs) - 1} more of its kind: {kind.success} by task"
    said: dict[str, list[str]] = {}
    for kind in kinds:
        if kind.trainings is not None:
            said.setdefault(kind.trainings.says, []).append(kind.name)
    for says, names in said.items():
        yield (
            f"{', '.join(names)}: {says}"
            if says != ONE or len(names) < len(kinds)
            else f"each: {says}"
        )


def _of_differences(found: Sequence[RunDifference]) -> Iterator[str]:
    if not found:
        yield "all runs are trainings of one kind: there is nothing to compare them with"
        return
    yield f"success, minus that of {found[0].minus} on the same tasks"
    yield from table(
        [
            [one.of, number(one.success, signed=True), f"{one.success.n} tasks", one.found, one.why]
            for one in found
        ]
    )
    if len(found) > 1:
        yield f"p in parentheses is adjusted (Holm) for {len(found)} comparisons; found is by that"
    for one in found:
        if one.trainings is not None and one.trainings.mean.n > 1:
            yield f"{one.of}, by training: {one.trainings.says}"
        if one.left_out:
            reasons = ", ".join(f"{count:,} {why}" for why, count in one.left_out.items())
            yield f"{one.of}: tasks that do not count: {reasons}"
