"""`muarl review RUN`: let people judge what `muarl synth` made.

`--page FILE` writes a page with some of the dialogues: one file, that fetches nothing and shows nothing of
what the checks found. Whoever reads it accepts or rejects each and saves her reviews as JSON. `--take FILE`
takes them: a dialogue that a reviewer rejects is left out from then on, and what is printed says how far
reviewers agree with each other and with the checks (Cohen's kappa with its 95 % interval).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from muarl.cli._answer import answer
from muarl.cli._arguments import positive, seed
from muarl.cli._telling import remark
from muarl.cli._torn import tell_torn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder that `muarl synth` wrote")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--page", type=Path, metavar="FILE", help="write a page to review in")
    how.add_argument(
        "--take", type=Path, nargs="+", metavar="FILE", help="take reviews that pages saved"
    )
    parser.add_argument(
        "--dialogues", type=positive, default=50, metavar="N", help="of the page (default: 50)"
    )
    parser.add_argument(
        "--which",
        choices=("kept", "refused", "all"),
        default="all",
        help="by the checks (default: all)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="draws them (default: 0)")
    parser.add_argument("--overwrite", action="store_true", help="replace the page")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the page, or take reviews and print agreements."""
    tell_torn(args.run)
    return _take(args) if args.take else _page(args)


def _page(args: argparse.Namespace) -> int:
    from muarl.cli._stored import spec_of
    from muarl.data.stored import StoredTasks
    from muarl.record import StoredEpisodes
    from muarl.record.placing import placed
    from muarl.record.saving import saving
    from muarl.suite import load_any_domain
    from muarl.synth.review import page, queue
    from muarl.synth.verdicts import read_verdicts

    keys = queue(read_verdicts(args.run), args.which, args.dialogues, args.seed)
    if not keys:
        remark(f"muarl review: {args.run} has no dialogue that was {args.which}")
        return 1
    spec = spec_of(args.run)
    tasks = StoredTasks(load_any_domain(spec.resolve(spec.spec.domain)))
    stored = StoredEpisodes([args.run / "episodes.journal"])
    found = {episode.key: episode for episode in stored if episode.key in set(keys)}
    shown = [(found[key], tasks.of(found[key])) for key in keys if key in found]
    with (
        placed(args.page, overwrite=args.overwrite, reads=[args.run]) as fresh,
        saving(args.page),
    ):
        fresh.write_text(page(f"{len(shown)} dialogues of {args.run.name}", shown), "utf-8")
    answer(
        json.dumps({"page": str(args.page), "dialogues": len(shown)}) if args.json else args.page
    )
    return 0


def _take(args: argparse.Namespace) -> int:
    from muarl.record import StoredEpisodes
    from muarl.record.claim import claimed
    from muarl.synth.graph import StateGraph
    from muarl.synth.review import agreements, as_json, read_reviews, taken
    from muarl.synth.verdicts import read_verdicts, recorded, stages_in

    with claimed(args.run, make=False):  # a synthesis would write over them as it ends
        before = read_verdicts(args.run)
        verdicts = list(taken(before, [(path, read_reviews(path)) for path in args.take]).values())
        graph = StateGraph()
        for episode in StoredEpisodes([args.run / "episodes.journal"]):
            graph.add(episode)
        table = recorded(args.run, verdicts, stages_in(args.run), graph)
    found = agreements(verdicts)
    if args.json:
        answer(json.dumps({"kept": table.kept, "agreement": as_json(found)}))
        return 0
    was = sum(verdict.kept for verdict in before.values())
    answer(f"{table.kept} dialogues kept, {was} before")
    for names, one in found.items():
        answer(f"{names}: {one}")
    return 0
