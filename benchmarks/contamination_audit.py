"""Tasks of tau2-bench that are tasks of tau-bench: who trains on the one has practised the other.

    python benchmarks/contamination_audit.py --json
    python benchmarks/contamination_audit.py --markdown

Retail and airline of tau2-bench, by version and split, beside the test tasks of tau-bench, on which the
paper trains:

- `tasks`; `alike`: those whose scenario shares at least half of its words with the instruction of one of
  tau-bench's (words of both by words of either, `|A & B| / |A | B|`); `median_best`: the median of the
  best share, and `median_any` that of all pairs.
- `writes`: tasks whose gold calls write something; `same_writes`: those of them for which tau-bench has a
  task with the same writing gold calls, in their order.
- `either`: alike, or with the same writing calls.
- `refused`: those that `muarl overlap` names, by words or entities that weigh what they tell: a run that
  names the set under `overlap` refuses to train on tau-bench's tasks.

`released`: of the rows that the paper's authors train on (`mua_rl/*_test_empty_output.parquet` of the data;
read with the extra `export`), how many have the instruction of a test task of tau-bench.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _tables import markdown

from muarl.compat.tau.imported import TASKS
from muarl.compat.tau.importer import Made, imported_tau1, imported_tau2
from muarl.compat.tau.writing import write
from muarl.data.item_sets import items_of
from muarl.errors import SetupError
from muarl.overlap import between

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
DOMAINS = ("retail", "airline")
ALIKE = 0.5
ROWS = {
    "tasks": "tasks",
    "alike": "share at least half of their words with a test task of tau-bench",
    "median_best": "... median of the best share",
    "median_any": "... median over all pairs",
    "writes": "tasks whose gold calls write something",
    "same_writes": "... the same as a test task of tau-bench",
    "either": "the words or the writing calls",
    "refused": "named by `muarl overlap`",
}


def words(text: str) -> frozenset[str]:
    """The words of a text, each once."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def told(task: Any) -> str:
    """What the user of a task of tau2-bench is told, without the headings."""
    given = task["user_scenario"]["instructions"]
    keys = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
    return given if isinstance(given, str) else " ".join(given.get(key) or "" for key in keys)


def written(actions: Any, writes: set[str]) -> str:
    """The writing ones of gold calls, in one text; "" if there are none."""
    made = [
        (call["name"], call.get("kwargs", call.get("arguments")))
        for call in actions or ()
        if call["name"] in writes
    ]
    return json.dumps(made, sort_keys=True) if made else ""


def compared(older: Made, newer: Made, refused: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Counts of each split of a domain."""
    writes = set(newer.writes)
    before = [older.files[TASKS][name] for name in older.splits["test"]]
    known = [words(task["instruction"]) for task in before]
    done = {written(task["actions"], writes) for task in before} - {""}
    shares, same, any_writes = {}, set(), set()
    for name, task in newer.files[TASKS].items():
        mine = words(told(task))
        shares[name] = [len(mine & theirs) / len(mine | theirs) for theirs in known]
        calls = written(task["evaluation_criteria"]["actions"], writes)
        any_writes |= {name} if calls else set()
        same |= {name} if calls in done else set()
    for split, ids in {**newer.more_splits, **newer.splits}.items():
        alike = {name for name in ids if max(shares[name]) >= ALIKE}
        yield (
            split,
            {
                "tasks": len(ids),
                "alike": len(alike),
                "median_best": round(statistics.median(max(shares[n]) for n in ids), 2),
                "median_any": round(statistics.median(s for n in ids for s in shares[n]), 2),
                "writes": len(any_writes & set(ids)),
                "same_writes": len(same & set(ids)),
                "either": len(alike | same & set(ids)),
                "refused": len(refused & set(ids)),
            },
        )


def guarded(older: Made, newer: Made, folder: Path) -> set[str]:
    """Tasks of the newer one that the guard finds among tasks of the older one's test split."""
    before = items_of(f"{write(older, folder / 'older')}:test")
    after = items_of(f"{write(newer, folder / 'newer')}/base.yaml")
    return {pair.item for pair in between(before, after).pairs}


def audit(data: Path, domains: Sequence[str] = DOMAINS) -> dict[str, dict[str, Any]]:
    """Counts by version, domain and split."""
    older = {made.folder: made for made in imported_tau1(data)}
    found = {}
    for version in ("v0.2.0", "HEAD"):
        chosen = version if version == "v0.2.0" else None
        for made in imported_tau2(data, version=chosen, domains=domains):
            with tempfile.TemporaryDirectory() as folder:
                refused = guarded(older[made.folder], made, Path(folder))
            for split, counts in compared(older[made.folder], made, refused):
                found[f"{version} {made.folder} {split}"] = counts
    return found


def released(data: Path) -> dict[str, dict[str, int]]:
    """Rows of the paper's training files, and those that are test tasks of tau-bench."""
    import pyarrow.parquet

    found = {}
    for made in imported_tau1(data):
        tasks = [made.files[TASKS][name]["instruction"] for name in made.splits["test"]]
        file = data / "mua_rl" / f"{made.folder}_test_empty_output.parquet"
        asked = pyarrow.parquet.read_table(file, columns=["question"]).column(0).to_pylist()
        known = {words(text) for text in tasks}
        same = sum(words(text) in known for text in asked)
        found[made.folder] = {"rows": len(asked), "test_tasks": same}
    return found


def tables(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table of `docs/results/contamination.md`."""
    shown = {name: of for name, of in found.items() if not name.endswith("train")}
    return [markdown("count", shown, ROWS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="upstream data of both benchmarks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    try:
        found = audit(args.data)
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    if args.markdown:
        print("\n\n".join(tables(found)))
        return 0
    summary: dict[str, Any] = {"sets": found}
    try:
        summary["released"] = released(args.data)
    except (ImportError, FileNotFoundError) as error:
        summary["released_not_read"] = str(error)
    print(json.dumps(summary, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
