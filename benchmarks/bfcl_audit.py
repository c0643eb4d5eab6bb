"""What is odd about BFCL's multi-turn entries, and what that does to scores.

    python benchmarks/bfcl_audit.py --json
    python benchmarks/bfcl_audit.py --only v4 --markdown

By version and category, counts of entries of which something holds, found by running the gold calls on
muarl's own classes, which answer as the official ones do, and by asking the official checker's rules for
verdicts. `ROWS` says what each count is; `examples` names the first entries of each.
"""

from __future__ import annotations

import argparse
import ast
import calendar
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from _tables import markdown

from muarl.compat.bfcl.checker import judged
from muarl.compat.bfcl.imported import MAX_STEPS
from muarl.compat.bfcl.sandbox import CLASSES, Sandbox, initial_state
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.bfcl.upstream import Upstream
from muarl.compat.conformance import UpstreamData
from muarl.errors import RecordError
from muarl.world import World

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
VERSIONS: tuple[Version, ...] = ("v3", "v4")
CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
EXAMPLES = 12
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-\d{2}")
_WORDED = 5
"""Words from which a text is the model's own."""
ROWS = {
    "entries": "entries",
    "gold_calls": "gold calls",
    "failing_calls": "... that are answered with an error",
    "failing": "entries with such a call",
    "solved_by_gold": "entries that the gold calls solve",
    "solved_by_nothing": "entries that doing nothing solves",
    "solved_by_any_call": "... or one harmless call in every turn",
    "turns_differ": "entries with more or fewer turns of gold calls than of the user's",
    "long_turns": "entries with a turn of more gold calls than steps are allowed",
    "idle_turns": "turns in which gold calls nothing",
    "idle_unpunished": "... in which calling something fails nobody",
    "unchanging_turns": "turns in which gold calls something and changes nothing",
    "unknown": "entries with a value in gold calls that stands nowhere before them",
    "same_gold": "entries with the gold calls of another entry",
    "ellipsis": "entries in which an answer holds Python's Ellipsis",
}


class Audit:
    """Counts of one category."""

    def __init__(self, data: UpstreamData, version: Version, category: str) -> None:
        self._data = data
        self._upstream = Upstream(data, f"bfcl/{version}")
        self._version = version
        self._long = category == "long_context"
        file = f"BFCL_{version}_multi_turn_{category}.json"
        self._entries = data.json_lines(f"bfcl/{version}/{file}")
        answers = data.json_lines(f"bfcl/{version}/possible_answer/{file}")
        self._gold = {answer["id"]: answer["ground_truth"] for answer in answers}
        self.counts: Counter[str] = Counter()
        self.examples: defaultdict[str, list[str]] = defaultdict(list)

    def run(self, limit: int | None = None) -> dict[str, Any]:
        """Look at every entry, or at the first ones."""
        same: defaultdict[str, list[str]] = defaultdict(list)
        for entry in self._entries[:limit]:
            gold = self._gold[entry["id"]]
            self.counts["entries"] += 1
            same[json.dumps([gold, entry["initial_config"]], sort_keys=True)].append(entry["id"])
            self._look(entry, gold)
        for names in same.values():
            for name in names if len(names) > 1 else ():
                self._note("same_gold", name)
        return {
            **{row: self.counts[row] for row in ROWS},
            "examples": {row: named[:EXAMPLES] for row, named in self.examples.items()},
        }

    def _note(self, row: str, entry: str, *, holds: bool = True) -> None:
        if holds:
            self.counts[row] += 1
            self.examples[row].append(entry)

    def _sandbox(self, entry: Any) -> Sandbox:
        state = initial_state(
            entry["involved_classes"], entry["initial_config"], self._upstream, long=self._long
        )
        return Sandbox(World(state), self._upstream, self._version)

    def _documents(self, entry: Any) -> list[str]:
        """What the model is told of the functions, and the airports, which a function lists."""
        modules = {CLASSES[name].MODULE for name in entry["involved_classes"]}
        folder = f"bfcl/{self._version}/multi_turn_func_doc"
        told = [(self._data.folder / folder / f"{m}.json").read_text() for m in sorted(modules)]
        if "TravelAPI" in entry["involved_classes"]:
            place = ("travel_booking", "TravelAPI.list_all_airports", "return")
            told.append(json.dumps(self._upstream.table(*place)))
        return told

    def _look(self, entry: Any, gold: Sequence[Sequence[str]]) -> None:
        name = entry["id"]
        sandbox = self._sandbox(entry)
        known = [json.dumps(sandbox.public(), default=str), *self._documents(entry)]
        errors, ellipsis, unknown = 0, False, set[str]()
        for number, calls in enumerate(gold):
            said = entry["question"][number] if number < len(entry["question"]) else []
            known += [message["content"] for message in said]
            before = sandbox.public()
            for call in calls:
                unknown |= {text for text in literals(call) if not told(text, known)}
                answer = sandbox.call(call)
                errors += answer.is_error
                ellipsis |= "Ellipsis" in answer.text
                known.append(answer.text)
            self.counts["gold_calls"] += len(calls)
            self.counts["unchanging_turns"] += bool(calls) and sandbox.public() == before
        self.counts["failing_calls"] += errors
        self._note("failing", name, holds=errors > 0)
        self._note("ellipsis", name, holds=ellipsis)
        self._note("long_turns", name, holds=max(map(len, gold)) > MAX_STEPS + 1)
        self._note("turns_differ", name, holds=len(entry["question"]) != len(gold))
        if unknown:
            self._note("unknown", f"{name}: {', '.join(sorted(unknown))}")
        fresh = partial(self._sandbox, entry)
        steps = [[list(calls)] if calls else [] for calls in gold]
        self._note("solved_by_gold", name, holds=judged(steps, gold, fresh).valid)
        idle: list[list[list[str]]] = [[] for _ in gold]
        self._note("solved_by_nothing", name, holds=judged(idle, gold, fresh).valid)
        any_call = [[["nothing()"]] for _ in gold]
        self._note("solved_by_any_call", name, holds=judged(any_call, gold, fresh).valid)
        for number, calls in enumerate(gold):
            if not calls:
                self.counts["idle_turns"] += 1
                needless = [*steps[:number], [["nothing()"]], *steps[number + 1 :]]
                self.counts["idle_unpunished"] += judged(needless, gold, fresh).valid


def literals(call: str) -> Iterator[str]:
    """Texts among the arguments of a call, but those that a model words itself."""
    for node in ast.walk(ast.parse(call, mode="eval")):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if 0 < len(_words(node.value)) < _WORDED:
            yield node.value


def told(text: str, known: Sequence[str]) -> bool:
    """Whether each word and number of a text stands in what was said or answered before it.

    Of a date its day does, and its month in figures or in words.
    """

    def heard(word: str) -> bool:
        return any(word in part.casefold() for part in known)

    if _DATE.fullmatch(text):
        _, month, day = text.split("-")
        named = calendar.month_name[int(month)][:3].casefold()
        return heard(str(int(day))) and (heard(str(int(month))) or heard(named))
    return all(heard(word) for word in _words(text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\d+", text.casefold())


def tables(found: dict[str, dict[str, Any]]) -> list[str]:
    """The table of `docs/results/bfcl.md`."""
    return [markdown("count", found, ROWS)]


def audit(data: Path, only: str = "", limit: int | None = None) -> dict[str, dict[str, Any]]:
    """Counts by version and category."""
    upstream = UpstreamData(data)
    return {
        f"{version} {category}": Audit(upstream, version, category).run(limit)
        for version in VERSIONS
        for category in CATEGORIES
        if f"{version} {category}".startswith(only)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder with bfcl/v3 and bfcl/v4")
    parser.add_argument("--only", default="", help="sets whose name begins so, such as `v4 base`")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    try:
        found = audit(args.data, args.only)
    except (RecordError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if args.markdown:
        print("\n\n".join(tables(found)))
    else:
        print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
