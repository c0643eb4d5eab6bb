"""The gateway, measured: what a call through it costs, and whether any token drifts.

    python benchmarks/gateway.py --json

Cost: the desk's scripted dialogues, so many at once, led by the same plain loop three times: over
`context.generate`, over HTTP with a client that does nothing but JSON, and with the openai SDK. A message takes
the policy `--message-s` seconds, give or take half of it. CPU is that of the whole process, clients included;
latency is that of asking for a message, the policy's own time taken off. What stands beside the direct calls is
what was added.

Drift: episodes of `_wild_client.py`, which does to conversations whatever agents do. `token_drift` counts the
episodes in which the ids of a turn in the samples are not, byte for byte, those that the engine was sent and
sampled; `fork_drift` those that have another number of samples than the words say they should have.

The last line is one JSON object. `--small` sees that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import aiohttp
import anyio
from _scripted_desk import ScriptedDesk
from _wild_client import WildClient, WildPolicy, drift

from muarl.own_loop import AgentContext
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode
from muarl.render import Renderer, train_tokenizer
from muarl.rollouts import Rollouts
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner
from muarl.scheduler.journal import Unjournaled
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec

AT_ONCE = (1, 64, 512)
DIALOGUES_OF_ONE = 16
"""Dialogues one after another, where one is live at a time."""

Ask = Callable[[AgentContext, list[float]], Awaitable[None]]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def direct(context: AgentContext, seconds: list[float]) -> None:
    """Ask the policy in this process."""
    history = list(context.opening)
    while True:
        started = time.perf_counter()
        message = await context.generate(history)
        seconds.append(time.perf_counter() - started)
        history.append(message)
        history.extend([await context.call_tool(call) for call in message.tool_calls])
        if not message.tool_calls:
            history.append(await context.tell_user(message.content))


async def over_http(context: AgentContext, seconds: list[float]) -> None:
    """Ask over HTTP, with nothing but JSON."""
    endpoint = await context.endpoint()
    url = f"{endpoint.url}/chat/completions"
    tools = [tool.as_function() for tool in context.tools]
    history: list[Any] = [{"role": m.role, "content": m.content} for m in context.opening]
    async with aiohttp.ClientSession(headers=endpoint.headers) as session:
        while True:
            body = {"model": endpoint.model, "messages": history, "tools": tools}
            started = time.perf_counter()
            async with session.post(url, json=body) as response:
                said = (await response.json())["choices"][0]["message"]
            seconds.append(time.perf_counter() - started)
            history.append(said)
            await answer(context, history, said.get("tool_calls", ()), said["content"])


async def over_openai(context: AgentContext, seconds: list[float]) -> None:
    """Ask with the openai SDK."""
    from openai import AsyncOpenAI

    endpoint = await context.endpoint()
    tools: Any = [tool.as_function() for tool in context.tools]
    history: list[Any] = [{"role": m.role, "content": m.content} for m in context.opening]
    async with AsyncOpenAI(base_url=endpoint.url, api_key=endpoint.key) as client:
        while True:
            started = time.perf_counter()
            whole = await client.chat.completions.create(
                model=endpoint.model, messages=history, tools=tools
            )
            seconds.append(time.perf_counter() - started)
            said = whole.choices[0].message.model_dump(exclude_none=True)
            history.append(said)
            await answer(context, history, said.get("tool_calls", ()), said.get("content"))


async def answer(context: AgentContext, history: list[Any], calls: Any, text: str | None) -> None:
    """Append what answers a message: results of its calls, or the user."""
    for call in calls:
        given = json.loads(call["function"]["arguments"])
        result = await context.call_tool(call["function"]["name"], given)
        history.append({"role": "tool", "tool_call_id": call["id"], "content": result.content})
    if not calls:
        reply = await context.tell_user(text or "")
        history.append({"role": "user", "content": reply.content})


WAYS: dict[str, Ask] = {"direct": direct, "http": over_http, "openai_sdk": over_openai}


class Slept:
    """A policy, and the seconds that its messages take, drawn from their seeds."""

    policy_version = 0

    def __init__(self, policy: Any, mean_s: float, slept: list[float]) -> None:
        self._policy = policy
        self._mean_s = mean_s
        self._slept = slept

    async def generate(self, request: GenerateRequest) -> Generation:
        seconds = self._mean_s * (0.5 + request.seed / 2**63)
        started = time.perf_counter()
        await anyio.sleep(seconds)
        generation: Generation = await self._policy.generate(request)
        self._slept.append(time.perf_counter() - started)
        return generation


async def cost(
    desk: ScriptedDesk, way: str, at_once: int, count: int, mean_s: float
) -> dict[str, Any]:
    """CPU and latency of each call, in milliseconds, of so many dialogues."""
    seconds: list[float] = []
    slept: list[float] = []

    async def loop(context: AgentContext) -> None:
        await WAYS[way](context, seconds)

    runner = DialogueRunner(
        domain=desk.domain,
        tasks=desk.tasks,
        renderer=desk.renderer,
        limits=RolloutSpec(max_turns=12, context_tokens=4096, deadline_s=3600),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda task, key: Slept(desk.policy(task, key), mean_s, slept),
        loop=loop,
    )
    keys = desk.keys(count, seed=0, phase="train")
    limits = Limits(concurrency=at_once, deadline_s=3600, max_fault_rate=1.0)
    episodes: list[Episode] = []
    begun = time.process_time()
    async with (
        runner.sharing(),
        run_groups(keys, runner, limits=limits, journal=Unjournaled()) as groups,
    ):
        async for group in groups:
            episodes += group.episodes
    cpu = time.process_time() - begun
    faults = [episode.error for episode in episodes if episode.outcome.is_fault]
    if faults:
        raise SystemExit(f"{way}: {faults[0]}")
    return {
        "calls": len(seconds),
        "cpu_ms": 1000 * cpu / len(seconds),
        "latency_ms": 1000 * (statistics.fmean(seconds) - statistics.fmean(slept)),
        "forks": sum(episode.forks for episode in episodes),
    }


async def costs(message_s: float, at_once: tuple[int, ...], rounds: int) -> dict[str, Any]:
    """What each way costs, and what is added to asking directly: the median of so many rounds."""
    desk = await ScriptedDesk.load()
    found: dict[str, Any] = {}
    for live in at_once:
        count, mean_s = (DIALOGUES_OF_ONE, 0.0) if live == 1 else (live, message_s)
        measured: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(rounds + 1):  # the first warms up
            for way in WAYS:
                measured[way].append(await cost(desk, way, live, count, mean_s))
        row: dict[str, Any] = {}
        for way, results in measured.items():
            middle = partial(_median, results[1:])
            row[way] = {"cpu_ms": middle("cpu_ms"), "latency_ms": middle("latency_ms")}
            assert not any(result["forks"] for result in results)
        for way in ("http", "openai_sdk"):
            row[way] |= {
                f"added_{name}": round(row[way][name] - row["direct"][name], 3)
                for name in ("cpu_ms", "latency_ms")
            }
        found[str(live)] = row
        say(f"{live} at once: {json.dumps(row)}")
    return found


def _median(results: list[dict[str, Any]], name: str) -> float:
    return round(statistics.median(result[name] for result in results), 3)


async def drifts(episodes: int, at_once: int) -> dict[str, Any]:
    """Fuzzed episodes, and what of them is not as it should be."""
    domain = (await ScriptedDesk.load()).domain
    renderer = Renderer(
        train_tokenizer([domain.spec.rules, "order A10 done yes"] * 8, vocab_size=600)
    )
    policy = WildPolicy(renderer)
    clients: dict[str, WildClient] = {}

    async def loop(context: AgentContext) -> None:
        client = clients[context.task.id] = WildClient(context.task.id)
        await client(context)

    tasks: list[TaskSpec] = domain.tasks("train")[:episodes]
    limits = RolloutSpec(
        concurrency=at_once, max_turns=200, max_tokens=4096, context_tokens=1_000_000, attempts=1
    )
    done: Counter[str] = Counter()
    did: Counter[str] = Counter()
    async with Rollouts(
        domain, policy, renderer, tasks=tasks, loop=loop, limits=limits
    ) as rollouts:
        async for group in rollouts:
            for episode in group.episodes:
                client = clients[episode.key.task_id]
                did += client.did
                done["episodes"] += 1
                done["turns"] += len(episode.turns)
                done["samples"] += len(episode.samples)
                done["faults"] += episode.outcome.is_fault
                done["token_drift"] += drift(episode, policy.sampled[str(episode.key)]) > 0
                done["fork_drift"] += len(episode.samples) != client.expected
                if episode.error:
                    say(episode.error)
    return {**done, "did": dict(did)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--episodes", type=int, default=1000, help="fuzzed")
    parser.add_argument("--message-s", type=float, default=2.0, help="that a message takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip", nargs="*", default=[], choices=["cost", "drift"])
    parser.add_argument("--small", action="store_true", help="see that it works")
    args = parser.parse_args()
    at_once = AT_ONCE
    if args.small:
        args.episodes, args.message_s, args.rounds, at_once = 20, 0.05, 1, (1, 8)
    figures: dict[str, Any] = {"cores": os.cpu_count()}
    if "drift" not in args.skip:
        figures |= anyio.run(drifts, args.episodes, 64)
        say(f"drift: {json.dumps(figures)}")
    if "cost" not in args.skip:
        figures["at_once"] = anyio.run(costs, args.message_s, at_once, args.rounds)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
