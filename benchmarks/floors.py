"""What public benchmarks pay for no skill: trivial policies on imported tasks, by the official rules.

    python benchmarks/floors.py --json
    python benchmarks/floors.py --only "tau2 HEAD airline" --json
    python benchmarks/floors.py --markdown

Each policy plays each task once, on our tools over MCP: the user says what she wants and ends the dialogue
after the first message that the policy writes to her; in BFCL she says her fixed messages first.
`do_nothing` is what the official evaluator gives a conversation without a tool call. NL_ASSERTION is not
judged and counts as 1, as in published counts.

- `floors`: set to policy to tasks with reward 1; `share` likewise as shares; `tasks`: how many a set has.
- `do_nothing_agrees`: whether the counts are those that the official code gave (`../shared/reference`),
  where it was asked.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
from _tables import markdown

from muarl.compat.acebench.importer import write_domains as write_acebench
from muarl.compat.bfcl.importer import VERSIONS, write_domains
from muarl.compat.tau.importer import Made, imported_tau1, imported_tau2
from muarl.compat.tau.writing import write
from muarl.data.trivial import TRIVIAL, trivial_agent
from muarl.domain import Agent, Domain, load_domain
from muarl.messages import Message, ToolCall, ToolSpec, with_rules
from muarl.offer import Offer
from muarl.record import Turn, UserReply
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.user import User
from muarl.user.fixed import FixedUser

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
MEASURED = {
    "tau1 retail test": 7,
    "tau1 retail train": 5,
    "tau1 retail dev": 1,
    "tau1 airline test": 19,
    "tau2 HEAD retail base": 11,
    "tau2 HEAD airline base": 23,
    "tau2 HEAD telecom base": 0,
    "tau2 HEAD mock base": 1,
    "tau2 v0.2.0 retail base": 7,
    "tau2 v0.2.0 airline base": 19,
    **{
        f"bfcl {version} {name} test": 0
        for version in ("V3", "V4")
        for name in ("base", "miss-func", "miss-param", "long-context")
    },
}
"""Reward 1 for doing nothing, from the official code; reference/benchmarks.md, section 1."""

_TRANSFER = ToolCall("only", "transfer_to_human_agents", {"summary": ""})


class Transfer:
    """Hands the user over at once, with all that the call needs."""

    def act(self, history: list[Message]) -> Message:
        if any(message.role == "tool" for message in history):
            return Message("assistant", "Done.")
        return Message("assistant", "", tool_calls=(_TRANSFER,))


def sets(data: Path, folder: Path, only: str) -> Iterator[tuple[str, Path, str]]:
    """Name, domain's file and split of each set that is imported; a set may have several domains."""
    for benchmark, version, made in _imports(data):
        for split in {**made.splits, **made.more_splits}:
            name = " ".join(filter(None, (benchmark, version, made.folder, split)))
            if name in MEASURED and name.startswith(only):
                at = write(made, folder / f"{benchmark}{version}")
                own = split in made.splits
                yield name, at / ("domain.yaml" if own else f"{split}.yaml"), split
    for version in VERSIONS:
        called = f"bfcl {version.upper()}"
        if called.startswith(only) or only.startswith(called):
            for at, _ in write_domains(data / "bfcl" / version, folder / called):
                if (name := f"{called} {at.name} test").startswith(only):
                    yield name, at / "domain.yaml", "test"
    if "acebench".startswith(only) or only.startswith("acebench"):
        for at in write_acebench(data / "acebench", folder / "acebench"):
            language, _, kind, *_ = at.name.split("-")
            if (name := f"acebench {language} multi_{kind}").startswith(only):
                yield name, at / "domain.yaml", "test"


def _imports(data: Path) -> Iterator[tuple[str, str, Made]]:
    for made in imported_tau1(data):
        yield "tau1", "", made
    for made in imported_tau2(data):
        yield "tau2", "HEAD", made
    for made in imported_tau2(data, version="v0.2.0", domains=("retail", "airline")):
        yield "tau2", "v0.2.0", made


class Once:
    """A user who says what she wants, and is content with any answer."""

    def __init__(self, goal: str) -> None:
        self._goal = goal

    async def open(self) -> UserReply:
        return UserReply(self._goal, act="open")

    async def reply(self, agent_text: str) -> UserReply:
        return UserReply("###STOP###", stop=True, act="stop")


async def earned(domain: Domain, task: TaskSpec, policy: str, tools: tuple[ToolSpec, ...]) -> bool:
    """Whether a policy earns 1 on a task."""
    agent: Agent = Transfer()
    offer = Offer(tools, task, lambda name: name)
    if policy != "transfer_at_once":
        agent = trivial_agent(policy, domain, offer.tools, _rng(task, policy))
    world = domain.world_for(task)
    initial = world.fork()
    user: User = FixedUser(task.turns) if task.turns else Once(task.goal)
    opening = await user.open()
    history = [*with_rules(domain.spec.rules), Message("user", opening.text)]
    turns: list[Turn] = []
    async with domain.server.session(world) as session:
        while True:
            message = agent.act(history)
            history.append(message)
            turn = Turn(message, sample=0, start=0, end=0, finish_reason="stop", policy_version=0)
            turns.append(turn)
            if not message.tool_calls:
                turn.reply = await user.reply(message.content)
                if turn.reply.stop:
                    break
                history.append(Message("user", turn.reply.text))
            for call in message.tool_calls:
                turn.results.append(await session.call(call))
                history.append(turn.results[-1].as_message(call.name))
            ended = [r for r in turn.results if r.name in domain.spec.terminal and not r.is_error]
            if ended:
                break
    verdict = await domain.judge(task, world, turns, opening, initial=initial)
    return verdict.reward == 1


def _rng(task: TaskSpec, policy: str) -> random.Random:
    return generator(0, "floors", policy, task.id)


async def counted(path: Path, split: str) -> tuple[int, dict[str, int]]:
    """How many tasks a set has, and on how many each policy earns 1."""
    domain = load_domain(path)
    tools = await domain.tools()
    tasks = domain.tasks(split)
    right = dict.fromkeys(TRIVIAL, 0)
    for task in tasks:
        for policy in TRIVIAL:
            right[policy] += await earned(domain, task, policy, tools)
    return len(tasks), right


def table(floors: Mapping[str, Mapping[str, int]], sizes: Mapping[str, int]) -> str:
    """The table of `docs/results/floors.md`."""
    policies = {
        policy: {
            name: f"{right[policy]} ({100 * right[policy] / sizes[name]:.1f} %)"
            for name, right in floors.items()
        }
        for policy in TRIVIAL
    }
    return markdown("set", {"tasks": sizes, **policies}, {name: name for name in floors})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="upstream data")
    parser.add_argument("--only", default="", help="sets whose name begins so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--markdown", action="store_true", help="print the table of the page")
    args = parser.parse_args()
    if not args.data.is_dir():
        print(f"no folder {args.data}: --data names the upstream data", file=sys.stderr)
        return 2
    begin = time.perf_counter()
    floors: defaultdict[str, dict[str, int]] = defaultdict(dict)
    sizes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, path, split in sets(args.data, Path(folder), args.only):
            size, right = anyio.run(counted, path, split)
            sizes[name] += size
            floors[name] = {
                policy: floors[name].get(policy, 0) + count for policy, count in right.items()
            }
    nothing = {name: right["do_nothing"] for name, right in floors.items() if name in MEASURED}
    summary = {
        "floors": floors,
        "share": {
            name: {policy: round(n / sizes[name], 4) for policy, n in right.items()}
            for name, right in floors.items()
        },
        "tasks": sizes,
        "do_nothing_agrees": nothing == {name: MEASURED[name] for name in nothing},
        "seconds": round(time.perf_counter() - begin, 1),
    }
    said = json.dumps(summary, indent=None if args.json else 2)
    print(table(floors, sizes) if args.markdown else said)
    return 0 if summary["do_nothing_agrees"] else 1


if __name__ == "__main__":
    sys.exit(main())
