"""What the wrappers around plug-ins cost: each call through its wrapper, beside the call itself.

    python benchmarks/plugin_cost.py --json

A plug-in's user, tool server, predicate and policy do next to nothing here, so that what is measured is what
muarl adds to each call: that what is raised is blamed on the package, and that what is returned can be recorded.
`direct` is the plug-in called as it is, `through` the same through its wrapper, as dialogues call it; `us` are
microseconds of processor time, the median of `rounds` rounds of `calls` calls.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.policy import GenerateRequest, Generation
from muarl.policy.plugin import OpenedPolicy
from muarl.record import UserReply
from muarl.reward import EndpointJudges, Evidence
from muarl.reward.plugin import PredicatePlugin, plugged
from muarl.spec import PersonaSpec, TaskSpec
from muarl.spec.plugin import Options
from muarl.tools.carrier import Limits
from muarl.tools.plugged import PluggedToolServer
from muarl.tools.plugin import ToolServerPlugin
from muarl.user.plugin import Scene, UserPlugin, plugged_user
from muarl.world import World

ROUNDS = 9
CALL = ToolCall("c", "look", {"order_id": "K07"})
REQUEST = GenerateRequest(list(range(900)), "d", 7, 64, 1.0, (0,))
GENERATION = Generation([5] * 63 + [0], [-1.0] * 64, "stop", 0)


class Named:
    """Stands for what a spec names, without a package to be installed."""

    name = provided = "mine"
    options = Options()

    def __init__(self, plugin: Any) -> None:
        self._plugin = plugin

    def registered(self, kind: type) -> Any:
        assert isinstance(self._plugin, kind)
        return self._plugin


class Mine:
    """A user, a session, a tool server and a policy at once."""

    tools = (ToolSpec("look", "Look.", {"type": "object"}),)
    policy_version = 0

    async def open(self) -> UserReply:
        return UserReply("Hello.")

    async def reply(self, agent_text: str) -> UserReply:
        return UserReply("Yes, please.", act="confirm")

    async def call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, call.name, "lamp, pending")

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[Mine]:
        yield self

    async def generate(self, request: GenerateRequest) -> Generation:
        return GENERATION


async def median_us(call: Callable[[], Awaitable[object]], calls: int) -> float:
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            await call()
        rounds.append((time.process_time() - start) / calls * 1e6)
    return round(statistics.median(rounds), 2)


async def measure(calls: int) -> dict[str, dict[str, float]]:
    """Of each kind, both figures."""
    mine, world = Mine(), World({"orders": {"K07": "pending"}})
    scene: Any = Scene(TaskSpec(id="t", goal="g", gold=[]), PersonaSpec(style="s"), "p", 0, None)  # type: ignore[arg-type]
    user = plugged_user(Named(UserPlugin(Options, lambda _o, _s: mine)), scene)  # type: ignore[arg-type]
    policy = OpenedPolicy(mine, "mine", 1000)
    server = PluggedToolServer(
        Named(ToolServerPlugin(Options, lambda _o, _f: mine)),  # type: ignore[arg-type]
        Path(),
        Limits(),
    )
    rule: Any = Named(PredicatePlugin(Options, lambda _o, _e: (True, "it holds")))
    evidence = Evidence(
        world=world,
        gold_world=world,
        turns=[],
        opening=UserReply(""),
        writes=[],
        judges=EndpointJudges(),
        begin=world.fork,
        load=lambda _: None,
    )

    async def judged() -> object:
        return rule.registered(PredicatePlugin).check(rule.options, evidence)

    async with server.session(world) as session:
        pairs: dict[str, tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]]
        pairs = {
            "user": (lambda: mine.reply("Done."), lambda: user.reply("Done.")),
            "tool_server": (lambda: mine.call(CALL), lambda: session.call(CALL)),
            "predicate": (judged, lambda: plugged(rule, evidence)),
            "policy": (lambda: mine.generate(REQUEST), lambda: policy.generate(REQUEST)),
        }
        return {
            kind: {
                "direct_us": await median_us(direct, calls),
                "through_us": await median_us(through, calls),
            }
            for kind, (direct, through) in pairs.items()
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = anyio.run(measure, args.calls)
    result = {
        "benchmark": "plugin_cost",
        **{
            f"{kind}_added_us": round(row["through_us"] - row["direct_us"], 2)
            for kind, row in figures.items()
        },
        "figures": figures,
        "calls": args.calls,
        "rounds": ROUNDS,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    if args.json:
        print(json.dumps(result))
        return
    for kind, row in figures.items():
        print(f"{kind:12} {row}")


if __name__ == "__main__":
    main()
