"""`muarl overlap FIRST SECOND`: what two sets of tasks, dialogues or texts have in common, pair by pair.

A set is a domain's folder or file (`PATH:SPLIT` is one split of it), a file of tasks, a run's folder, or a
.jsonl, .json, .parquet, .txt or .md file. Each item of the second set is compared with all of the first:
the same words or the same to be done (exact), nearly the same words, nearly the same entities. Exit code 1
if something is shared.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec

from muarl.cli._answer import answer
from muarl.cli._arguments import positive, share
from muarl.cli._torn import tell_torn

_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "first", metavar="FIRST", help="what is compared with, such as training tasks"
    )
    parser.add_argument("second", metavar="SECOND", help="what is looked at, item by item")
    parser.add_argument(
        "--words", type=share, metavar="S", help="similarity of words that counts (default 0.45)"
    )
    parser.add_argument(
        "--entities", type=share, metavar="S", help="likewise of entities (default 0.5)"
    )
    parser.add_argument(
        "--show",
        type=positive,
        default=_SHOWN,
        metavar="N",
        help=f"pairs to print (default {_SHOWN})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with all pairs")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write all pairs there, as JSON lines"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace that file")


def run(args: argparse.Namespace) -> int:
    """Compare, and say what is shared; 1 if anything is."""
    from muarl.data.item_sets import items_of
    from muarl.overlap import between
    from muarl.overlap.between import ENTITIES, WORDS
    from muarl.record.placing import placed
    from muarl.record.saving import saving

    found = between(
        items_of(args.first),
        items_of(args.second),
        words=args.words or WORDS,
        entities=args.entities or ENTITIES,
    )
    for name in (args.first, args.second):
        tell_torn(Path(name))
    pairs = [msgspec.to_builtins(pair) for pair in found.pairs]
    if args.out is not None:
        with placed(args.out, overwrite=args.overwrite) as fresh, saving(args.out):
            fresh.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    if args.json:
        sizes = {"first": found.first, "second": found.second, "shared": len(pairs)}
        answer(json.dumps({**sizes, **found.counts, "pairs": pairs}))
    else:
        lines = [
            f"{pair.item} is like {pair.like}: words {pair.words:.2f}, entities {pair.entities:.2f}"
            + (" (the same)" if "exact" in pair.levels else "")
            for pair in found.pairs[: args.show]
        ]
        if more := len(pairs) - len(lines):
            lines.append(f"and {more} more; --show, --json or --out has all")
        answer("\n".join([*lines, str(found)]))
    return int(bool(pairs))
