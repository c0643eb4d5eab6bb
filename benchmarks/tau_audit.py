"""What is odd about the tasks of tau-bench and tau2-bench, and what that does to scores.

    python benchmarks/tau_audit.py --json
    python benchmarks/tau_audit.py --only "tau2 HEAD airline" --json
    python benchmarks/tau_audit.py --markdown

By set, counts of tasks of which something holds, found by running their gold calls on muarl's own tools,
which answer as the official ones do, and by asking the official rules for verdicts. `ROWS` says what each
count is; `telecom` has rows of its own, for its users act and its rewards are assertions. `rules` counts gold
calls of the airline that break a rule which the agent is given in writing, as far as the database can
tell; `examples` names the first tasks of each count.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _airline_rules import broken_rules
from _tables import markdown

from muarl.compat.tau.airline import AIRPORTS
from muarl.compat.tau.databases import tau1_kit, tau2_made
from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.evaluator import judged, must_be_said, reward_basis
from muarl.compat.tau.hashing import TAU1, TAU2, DatabaseHash
from muarl.compat.tau.imported import DEVICE_WORLD, TASKS, WORLD
from muarl.compat.tau.importer import Made, imported_tau1, imported_tau2
from muarl.compat.tau.published import scenario
from muarl.compat.tau.retail import item_of, turn_into
from muarl.compat.tau.retail_tau2 import Tau2Retail
from muarl.errors import SetupError
from muarl.world import World, plain

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
EXAMPLES = 12
_NUMBERS = " ".join(str(number) for number in range(1000))
_GUESSED = {"state", "country", "reason", "summary", "cabin", "insurance", "flight_type", "source"}
"""Arguments that an agent words or infers: nobody has to tell them as they are."""

ROWS = {
    "tasks": "tasks",
    "gold_calls": "gold calls",
    "failing_calls": "... that are answered with an error",
    "failing": "tasks with such a call",
    "failing_writes": "... where it is a call that writes",
    "writes_nothing": "tasks whose gold calls change nothing",
    "solved_by_nothing": "... that doing nothing solves",
    "recited": "... or reciting the whole numbers up to 999",
    "short_texts": "tasks with a text to be said of one or two figures, which longer numbers hold",
    "same_end": "tasks with the end state and texts of another task",
    "unnamed": "tasks whose user cannot say who she is as the rules want it",
    "unknown": "tasks with a written value that nobody can know",
    "others": "tasks whose gold calls touch records of several users",
    "breaks_a_rule": "tasks whose gold calls break a written rule",
    "last_variant": "tasks whose end state is made by the last-variant fault",
    "unsaid": "tasks with texts to be said that do not count",
    "not_judged": "tasks with assertions in natural language that count",
    "never_judged": "tasks with such assertions that do not count",
    "nothing_to_judge": "tasks whose reward names such assertions and that have none",
}
_OF_TAU2 = ("unsaid", "not_judged", "never_judged", "nothing_to_judge")
TELECOM_ROWS = {
    "tasks": "tasks",
    "gold_calls": "gold calls",
    "of_user": "... that the user is to make",
    "failing_calls": "... that are answered with an error",
    "met_at_start": "tasks whose assertions all hold at the start",
    "met_and_no_action": "... and whose reward asks for no call",
    "some_met_at_start": "tasks of which one assertion holds at the start",
    "database_differs": "tasks whose gold calls do not reach the gold database",
    "counts_calls": "tasks whose reward asks for the gold calls themselves",
}


@dataclass(frozen=True)
class Published:
    """A set of published tasks.

    Attributes:
        name: Benchmark, version, domain, split.
        made: What the importer makes of it.
        ids: The tasks of the split.
        generation: 1 or 2.
    """

    name: str
    made: Made
    ids: tuple[str, ...]
    generation: int

    def tasks(self) -> Iterator[tuple[str, Task]]:
        """Tasks in the form of tau2-bench."""
        for name in self.ids:
            task = self.made.files[TASKS][name]
            yield name, _as_tau2(task) if self.generation == 1 else task

    def environments(
        self, agent: Callable[[Any], Any] | None = None
    ) -> Callable[[], Tau2Environment]:
        """Makes environments over the databases before any task, with other tools if some are given."""
        domain = self.made.upstream_domain
        world = World(self.made.files[WORLD])
        if self.generation == 1:
            kit = agent or tau1_kit(domain)
            return lambda: Tau2Environment(kit(world.fork()))
        device = self.made.files.get(DEVICE_WORLD)
        hers = None if device is None else World(device)
        both = tau2_made(domain)
        if agent is not None:
            return lambda: Tau2Environment(agent(world.fork()))
        return lambda: both.over(world.fork(), None if hers is None else hers.fork())

    def hashes(self) -> tuple[DatabaseHash, DatabaseHash]:
        """Of the agent's and of the user's database."""
        return (TAU1(), TAU1()) if self.generation == 1 else (TAU2(), TAU2())


def _as_tau2(task: Task) -> Task:
    actions = [{"name": a["name"], "arguments": a["kwargs"]} for a in task["actions"]]
    told = {"user_scenario": {"instructions": task["instruction"]}}
    return {
        **told,
        "evaluation_criteria": {"actions": actions, "communicate_info": task["outputs"]},
    }


def sets(data: Path, only: str) -> Iterator[Published]:
    """The sets whose name begins so."""
    for version, generation, found in (
        ("tau1", 1, imported_tau1(data)),
        ("tau2 v0.2.0", 2, imported_tau2(data, version="v0.2.0", domains=("retail", "airline"))),
        ("tau2 HEAD", 2, imported_tau2(data, domains=("retail", "airline", "telecom"))),
    ):
        for made in found:
            wanted = ("base", "full") if generation == 2 else ("train", "dev", "test")
            for split, ids in {**made.splits, **made.more_splits}.items():
                name = f"{version} {made.folder} {split}"
                if split in wanted and name.startswith(only):
                    yield Published(name, made, tuple(ids), generation)


class Audit:
    """Counts of one set."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.domain = published.made.upstream_domain
        self.counts: Counter[str] = Counter()
        self.examples: defaultdict[str, list[str]] = defaultdict(list)
        self.rules: Counter[str] = Counter()
        self._fresh = published.environments()
        self._hashes = published.hashes()
        self._writes = set(published.made.writes)
        self._ends: defaultdict[Any, list[str]] = defaultdict(list)
        self._right = None
        if self.domain == "retail" and published.generation == 2:
            self._right = published.environments(_EachItsVariant)

    def run(self) -> dict[str, Any]:
        """Look at every task."""
        look = self._telecom if self.domain == "telecom" else self._shop
        rows = TELECOM_ROWS if self.domain == "telecom" else ROWS
        for name, task in self.published.tasks():
            self._note("tasks", name)
            look(name, task)
        for names in self._ends.values():
            for name in names if len(names) > 1 else ():
                self._note("same_end", name)
        del self.examples["tasks"]
        seen = [row for row in rows if row in self.counts or not self._is_foreign(row)]
        return {
            **{row: self.counts[row] for row in seen},
            **({"rules": dict(sorted(self.rules.items()))} if self.domain == "airline" else {}),
            "examples": {row: named[:EXAMPLES] for row, named in self.examples.items()},
        }

    def _is_foreign(self, row: str) -> bool:
        """Whether a row can say nothing of this set."""
        return (
            (row == "breaks_a_rule" and self.domain != "airline")
            or (row == "last_variant" and self._right is None)
            or (row in _OF_TAU2 and self.published.generation == 1)
        )

    def _note(self, row: str, task: str, *, holds: bool = True) -> bool:
        if holds:
            self.counts[row] += 1
            self.examples[row].append(task)
        return holds

    def _shop(self, name: str, task: Task) -> None:
        criteria = task["evaluation_criteria"]
        calls = criteria.get("actions") or []
        env = self._fresh()
        before = self._hash(env)
        failed, broken, touched = [], set[str](), set[str | None]()
        cabins: dict[str, str] = {}
        for call in calls:
            arguments = call["arguments"]
            found = set()
            if self.domain == "airline":
                generation = self.published.generation
                found = set(broken_rules(env.agent.db, call, cabins, generation=generation))
            owner = self._owner(env.agent.db, arguments)
            if env.agent.call(call["name"], arguments).is_error:
                failed.append(call["name"])
                continue
            touched.add(owner)
            broken |= found
            if call["name"] == "update_reservation_flights":
                cabins[arguments["reservation_id"]] = arguments["cabin"]
        end = self._hash(env)
        self.counts["gold_calls"] += len(calls)
        self.counts["failing_calls"] += len(failed)
        self._note("failing", name, holds=bool(failed))
        self._note("failing_writes", name, holds=any(call in self._writes for call in failed))
        self._note("others", name, holds=len(touched - {None}) > 1)
        if self._note("breaks_a_rule", name, holds=bool(broken)):
            self.examples["breaks_a_rule"][-1] = f"{name}: {', '.join(sorted(broken))}"
        self.rules.update(broken)
        texts = tuple(must_be_said(task))
        if self._note("writes_nothing", name, holds=end == before):
            for row, said in (("solved_by_nothing", "Done."), ("recited", _NUMBERS)):
                verdict = judged(task, [], [said], self._fresh, self._hashes)
                self._note(row, name, holds=verdict.reward(reward_basis(task)) == 1)
        else:
            self._ends[end, tuple(sorted(texts))].append(name)
        self._note("short_texts", name, holds=any(t.isdecimal() and len(t) < 3 for t in texts))
        if self._right is not None:
            right = self._right()
            for call in calls:
                right.agent.call(call["name"], call["arguments"])
            self._note("last_variant", name, holds=self._hash(right) != end)
        self._facts(name, task, calls, env.agent.db)
        self._said(name, task)

    def _hash(self, env: Tau2Environment) -> str:
        return self._hashes[0].of(env.agent.db)

    def _owner(self, db: Any, arguments: Mapping[str, Any]) -> str | None:
        """Whose record a call names."""
        for table, key in (("orders", "order_id"), ("reservations", "reservation_id")):
            if table in db and arguments.get(key) in db[table]:
                owner: str = db[table][arguments[key]]["user_id"]
                return owner
        user = arguments.get("user_id")
        return user if user in db["users"] else None

    def _facts(self, name: str, task: Task, calls: list[Any], db: Any) -> None:
        """Whether the user can say who she is, and the agent can know what the gold calls write."""
        told = scenario(task).casefold()
        base = self._fresh().agent.db
        owners = {self._owner(base, call["arguments"]) for call in calls} - {None}
        named = [{"user_id": user, **plain(base["users"][user])} for user in owners]
        if named:
            self._note("unnamed", name, holds=not any(self._names(told, u) for u in named))
        known = [told, self.published.made.files["rules.md"].casefold()]
        known += [json.dumps(user).casefold() for user in named]
        for table in ("orders", "reservations"):
            own = [record for user in named for record in user.get(table, ())]
            if table in base:
                known += [
                    json.dumps(plain(base[table][i])).casefold() for i in own if i in base[table]
                ]
        text = " ".join(known)
        wanted = {
            leaf
            for call in calls
            if call["name"] in self._writes
            for leaf in _leaves(call["arguments"])
        }
        unknown = sorted(leaf for leaf in wanted if leaf.casefold() not in text)
        unknown = [leaf for leaf in unknown if not self._found(base, leaf)]
        if self._note("unknown", name, holds=bool(unknown)):
            self.examples["unknown"][-1] = f"{name}: {', '.join(unknown)}"

    def _names(self, told: str, user: Mapping[str, Any]) -> bool:
        """The shop asks for an e-mail address, or a name with a ZIP code; the airline for the user's id."""
        if self.domain == "airline":
            return user["user_id"].casefold() in told
        name = user["name"]
        parts = (name["first_name"], name["last_name"], user["address"]["zip"])
        by_name = all(part.casefold() in told.replace("_", " ") for part in parts)
        return by_name or user["email"].casefold() in told

    def _found(self, base: Any, leaf: str) -> bool:
        """Whether a tool shows a value to everybody: what is sold, what flies and where."""
        if self.domain == "airline":
            return leaf in AIRPORTS or leaf in base["flights"] or leaf in _dates(base)
        return any(leaf in product["variants"] for product in base["products"].values())

    def _said(self, name: str, task: Task) -> None:
        if self.published.generation == 1:
            return
        criteria, basis = task["evaluation_criteria"], reward_basis(task)
        counts = "NL_ASSERTION" in basis
        told = bool(criteria.get("communicate_info"))
        self._note("unsaid", name, holds=told and "COMMUNICATE" not in basis)
        assertions = bool(criteria.get("nl_assertions"))
        self._note("not_judged", name, holds=assertions and counts)
        self._note("never_judged", name, holds=assertions and not counts)
        self._note("nothing_to_judge", name, holds=counts and not assertions)

    def _telecom(self, name: str, task: Task) -> None:
        criteria = task["evaluation_criteria"]
        calls = criteria.get("actions") or []
        env = self._fresh()
        env.begin(task)
        answers = [
            env.call(call["name"], call["arguments"], call.get("requestor") or "assistant")
            for call in calls
        ]
        self.counts["gold_calls"] += len(calls)
        self.counts["of_user"] += sum(call.get("requestor") == "user" for call in calls)
        self.counts["failing_calls"] += sum(answer.is_error for answer in answers)
        start = judged(task, [], [], self._fresh, self._hashes)
        basis = reward_basis(task)
        if self._note("met_at_start", name, holds=all(start.assertions)):
            self._note("met_and_no_action", name, holds="ACTION" not in basis)
        self._note("some_met_at_start", name, holds=any(start.assertions))
        made = [{**c, "requestor": c.get("requestor") or "assistant"} for c in calls]
        gold = judged(task, made, [], self._fresh, self._hashes)
        self._note("database_differs", name, holds=not gold.database)
        self._note("counts_calls", name, holds="ACTION" in basis)


class _EachItsVariant(Tau2Retail):
    """The shop of tau2-bench without its fault: each item becomes the variant it is changed to."""

    def _put(self, order: Any, items: Any, new_items: Any, variants: list[Any]) -> None:
        for item, new_item, variant in zip(items, new_items, variants, strict=True):
            turn_into(item_of(order, item), new_item, variant)


def _dates(base: Any) -> set[str]:
    return {date for flight in base["flights"].values() for date in flight["dates"]}


def _leaves(value: Any, key: str = "") -> Iterator[str]:
    """Texts in arguments that somebody must have told or shown."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str) and value and key not in _GUESSED:
        yield value


def tables(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The tables of `docs/results/tau.md`."""
    telecom = {name: counts for name, counts in found.items() if "telecom" in name}
    shops = {name: counts for name, counts in found.items() if name not in telecom}
    rules = sorted({rule for counts in shops.values() for rule in counts.get("rules", ())})
    broken = {
        name: {rule: counts["rules"].get(rule, 0) for rule in rules}
        for name, counts in shops.items()
        if "airline" in name and "rules" in counts
    }
    return [
        markdown("count", shops, ROWS),
        markdown("gold calls in which there is", broken, {rule: rule for rule in rules}),
        markdown("count", telecom, TELECOM_ROWS),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="upstream data")
    parser.add_argument("--only", default="", help="sets whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the tables of the page")
    args = parser.parse_args()
    try:
        found = {of.name: Audit(of).run() for of in sets(args.data, args.only)}
    except SetupError as error:
        print(error, file=sys.stderr)
        return 2
    if args.markdown:
        print("\n\n".join(tables(found)))
    else:
        print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
