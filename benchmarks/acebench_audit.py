"""What is wrong with ACEBench's agent entries, and what that does to scores.

    python benchmarks/acebench_audit.py --json
    python benchmarks/acebench_audit.py --data FOLDER
    python benchmarks/acebench_audit.py --markdown

FOLDER is ACEBench's `data_all`, with `data_en` and `data_zh`. By language and kind:

- `entries`; `solved_by_milestones`: those whose published milestones, any alternative, reach the
  published end, as upstream compares it; `_mended`: with quotes and blanks mended; `_completed`: with
  the logins that are missing, whole names of products and the message that the answer deletes.
- `solved_strictly`: by the completed ones, where every class of the answer and all it holds counts.
- `solved_by_one_harmless_call`: by any one message that runs and changes nothing.
- `not_implemented`: functions that entries offer and no class has; `not_offered`: entries with a
  milestone that calls a function which they do not offer; `misspelt`: entries with a class that there
  is not, which upstream does not compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from _tables import markdown

from muarl.compat.acebench.api import tools_of
from muarl.compat.acebench.calls import NotCalls
from muarl.compat.acebench.entries import KINDS, LANGUAGES, ByClass, Entry, entries, first_records
from muarl.compat.acebench.environment import CLASSES, Environment
from muarl.compat.acebench.initial import initial_world
from muarl.compat.acebench.score import end_to_end, mended, saved, strictly_end_to_end
from muarl.compat.acebench.solutions import solution
from muarl.errors import RecordError
from muarl.world import World

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data" / "acebench"


ROWS = {
    "entries": "there are",
    "solved_by_milestones": "the published milestones reach the published end",
    "solved_by_milestones_mended": "... once their quotes and blanks are mended",
    "solved_by_milestones_completed": "... once they have what they lack, too",
    "solved_strictly": "... and every class of the answer is compared",
    "solved_by_one_harmless_call": "one message that changes nothing solves it",
    "misspelt": "the answer names a class that there is not",
    "search_reminders": "`search_reminders` is offered and missing",
    "not_offered": "a milestone calls what is not offered",
}


def ended(entry: Entry, world: World, messages: Iterable[str]) -> list[ByClass]:
    """What is saved after some messages; those that are no calls go to the user."""
    environment = Environment(world, entry.involved, entry.language, entry.kind)
    ran = False
    for message in messages:
        try:
            ran |= environment.respond(message).ran
        except NotCalls:
            continue
    return saved(world) if ran else []


def audited(entry: Entry, begin: Callable[[], World]) -> dict[str, bool]:
    def solved(messages: Iterable[str]) -> bool:
        return end_to_end(ended(entry, begin(), messages), entry.gold).valid

    calls, completed = solution(entry, begin)
    world = begin()
    environment = Environment(world, entry.involved, entry.language, entry.kind)
    implemented = {call.name for call in calls if environment.run([call]).ran}
    offered = {function["name"] for function in entry.functions}
    return {
        "solved_by_milestones": any(map(solved, entry.milestones)),
        "solved_by_milestones_mended": any(solved(map(mended, m)) for m in entry.milestones),
        "solved_by_milestones_completed": completed,
        "solved_strictly": strictly_end_to_end(saved(world), entry.gold),
        "solved_by_one_harmless_call": solved(["[nothing]"]),
        "not_offered": not implemented <= offered,
        "misspelt": not {name for item in entry.gold for name in item} <= set(entry.involved),
    }


def audit(data: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for language in LANGUAGES:
        records = first_records(data, language)
        for kind in KINDS:
            group = entries(data, language, kind).values()
            counts: dict[str, Any] = {"entries": len(group)}
            for entry in group:
                config = (entry.involved, entry.initial_config, language, records)
                for name, holds in audited(entry, partial(initial_world, *config)).items():
                    counts[name] = counts.get(name, 0) + holds
            counts["not_implemented"] = missing(group)
            found[f"{language} {kind}"] = counts
    return found


def missing(group: Iterable[Entry]) -> dict[str, int]:
    """Functions that no class implements, to the entries that offer them."""
    counts: dict[str, int] = {}
    for entry in group:
        everything = tools_of_all(entry)
        for function in entry.functions:
            if function["name"] not in everything:
                counts[function["name"]] = counts.get(function["name"], 0) + 1
    return counts


def tools_of_all(entry: Entry) -> set[str]:
    return {name for kind in CLASSES.values() for name in tools_of(kind, entry.language)}


def tables(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table of `docs/results/acebench.md`."""
    columns = {
        name: {**counts, "search_reminders": counts["not_implemented"].get("search_reminders", 0)}
        for name, counts in found.items()
    }
    return [markdown("entries of which this is so", columns, ROWS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with data_en and data_zh")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    try:
        found = audit(args.data)
    except RecordError as error:
        print(error, file=sys.stderr)
        return 2
    if args.markdown:
        print("\n\n".join(tables(found)))
    else:
        print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
