"""What changed between the versions of a benchmark: scores of the one are none of the other.

    python benchmarks/versions.py --json
    python benchmarks/versions.py --markdown

Tasks of tau2-bench v0.2.0 (the paper's) beside those of HEAD, entries of BFCL V3 beside those of V4, by
what of a task is another: its gold calls, what the user is told, what the world begins with, what is scored.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from _tables import markdown

from muarl.compat.conformance import UpstreamData
from muarl.compat.tau.evaluator import reward_basis
from muarl.compat.tau.imported import TASKS
from muarl.compat.tau.importer import imported_tau2
from muarl.errors import RecordError, SetupError

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
ROWS = {
    "tasks": "tasks",
    "changed": "of which anything below is another",
    "gold": "gold calls",
    "told": "what the user says or is told",
    "begins": "what the world begins with",
    "scored": "what the reward is made of",
}
Parts = Mapping[str, Any]
"""By row, what is compared."""


def tau2(data: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Domains of tau2-bench of which both versions are known."""
    domains = ("retail", "airline")
    older = imported_tau2(data, version="v0.2.0", domains=domains)
    for before, after in zip(older, imported_tau2(data, domains=domains), strict=True):
        old, new = before.files[TASKS], after.files[TASKS]
        yield f"tau2 {before.folder}", counted({n: (_tau2(old[n]), _tau2(new[n])) for n in new})


def _tau2(task: Any) -> Parts:
    calls = task["evaluation_criteria"].get("actions") or ()
    return {
        "gold": [(call["name"], call["arguments"]) for call in calls],
        "told": task["user_scenario"],
        "begins": task.get("initial_state"),
        "scored": sorted(reward_basis(task)),
    }


def bfcl(data: Path) -> Iterator[tuple[str, dict[str, int]]]:
    """Categories of BFCL."""
    files = UpstreamData(data)
    for category in CATEGORIES:
        old, new = (_entries(files, version, category) for version in ("v3", "v4"))
        yield f"BFCL {category}", counted({name: (old[name], new[name]) for name in new})


def _entries(files: UpstreamData, version: str, category: str) -> dict[str, Parts]:
    file = f"BFCL_{version}_multi_turn_{category}.json"
    answers = files.json_lines(f"bfcl/{version}/possible_answer/{file}")
    gold = {answer["id"]: answer["ground_truth"] for answer in answers}
    return {
        entry["id"]: {
            "gold": gold[entry["id"]],
            "told": entry["question"],
            "begins": entry["initial_config"],
            "scored": None,
        }
        for entry in files.json_lines(f"bfcl/{version}/{file}")
    }


def counted(pairs: Mapping[str, tuple[Parts, Parts]]) -> dict[str, int]:
    """How many tasks there are, and in how many each part is another."""
    parts = [row for row in ROWS if row not in ("tasks", "changed")]
    differs = [{row for row in parts if old[row] != new[row]} for old, new in pairs.values()]
    return {
        "tasks": len(differs),
        "changed": sum(map(bool, differs)),
        **{row: sum(row in found for found in differs) for row in parts},
    }


def audit(data: Path) -> dict[str, dict[str, int]]:
    """Counts by set."""
    return {**dict(tau2(data)), **dict(bfcl(data))}


def tables(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table of `docs/results/comparability.md`."""
    return [markdown("tasks of which ... changed", found, ROWS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="upstream data")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    try:
        found = audit(args.data)
    except (RecordError, SetupError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if args.markdown:
        print("\n\n".join(tables(found)))
    else:
        print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
