"""How many lines make an agent trainable that was not: a pydantic-ai agent, and its trainable twin.

    python benchmarks/embedding_lines.py --json

`embedding/desk_agent.py` is an agent for the terminal, `desk_agent_trainable.py` the same agent, trainable.
Lines that differ are counted, blank ones left out. Both are carried out: the twin leads the desk's dialogues,
with the desk's expert for the policy; the agent for the terminal plays the same dialogues as it stands, in a
process of its own, with an endpoint for its model's and the user at its terminal. The last line is one JSON
object.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from muarl.data.expert import ExpertPolicy, byte_limits, byte_renderer
from muarl.domain import Domain, load_domain
from muarl.own_loop import AgentContext, AgentLoop
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode
from muarl.rollouts import Rollouts
from muarl.seeds import generator
from muarl.spec.run import RolloutSpec

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "embedding"
BEFORE, AFTER = HERE / "desk_agent.py", HERE / "desk_agent_trainable.py"
PROMPT = b"> "


def changed(before: Sequence[str], after: Sequence[str]) -> int:
    """Lines that were added, taken away or changed; a changed one counts once."""
    lines = [[line for line in text if line.strip()] for text in (before, after)]
    blocks = difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in blocks if tag != "equal")


class Experts:
    """The desk's expert, in every dialogue."""

    policy_version = 0

    def __init__(self, domain: Domain) -> None:
        self.renderer = byte_renderer()
        self._domain = domain
        self._tasks = {task.id: task for task in domain.tasks("train")}
        self._experts: dict[str, ExpertPolicy] = {}

    async def generate(self, request: GenerateRequest) -> Generation:
        name = request.dialogue
        if name not in self._experts:
            expert = self._domain.expert(self._tasks[name.split("/")[2]], {}, generator(0, name))
            self._experts[name] = ExpertPolicy(expert, self.renderer)
        return await self._experts[name].generate(request)


async def at_its_terminal(context: AgentContext) -> None:
    """Let the agent for the terminal, as it stands, talk with the user."""
    place = await context.endpoint()
    where = {"MODEL_URL": place.url, "KEY": place.key, "TOOLS_URL": place.mcp_url}
    command = [sys.executable, "-u", str(BEFORE)]
    async with await anyio.open_process(command, env={**os.environ, **where}, stderr=None) as agent:
        assert agent.stdin is not None
        try:
            await _said(agent)  # "What can I do for you?"
            text = context.opening[-1].content
            while True:
                await agent.stdin.send(text.encode() + b"\n")
                said = await _said(agent)
                if said is None:
                    return
                text = (await context.tell_user(said)).content
        finally:
            agent.terminate()


async def _said(agent: Process) -> str | None:
    """What the agent prints before it asks for a line; None where it ends."""
    heard = b""
    assert agent.stdout is not None
    while not heard.endswith(PROMPT):
        try:
            heard += await agent.stdout.receive()
        except anyio.EndOfStream:
            return None
    return heard[: -len(PROMPT)].decode().rstrip("\n")


async def played(loop: AgentLoop | None, episodes: int) -> list[Episode]:
    """Dialogues of the desk that a loop leads."""
    domain = load_domain(ROOT / "domains" / "desk")
    policy = Experts(domain)
    limits = byte_limits(RolloutSpec(concurrency=4))
    tasks = domain.tasks("train")[:episodes]
    settings: dict[str, Any] = {"tasks": tasks, "loop": loop, "limits": limits}
    async with Rollouts(domain, policy, policy.renderer, **settings) as rollouts:
        done = [episode async for group in rollouts for episode in group.episodes]
    return sorted(done, key=lambda episode: str(episode.key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--episodes", type=int, default=20)
    args = parser.parse_args()
    sys.path.insert(0, str(HERE))
    from desk_agent_trainable import trained

    ours = anyio.run(played, None, args.episodes)
    runs = {"trainable": trained, "before": at_its_terminal}
    found = {name: anyio.run(played, loop, args.episodes) for name, loop in runs.items()}
    before, after = (path.read_text(encoding="utf-8").splitlines() for path in (BEFORE, AFTER))
    figures: dict[str, Any] = {
        "lines_before": sum(1 for line in before if line.strip()),
        "lines_changed": changed(before, after),
        "episodes": args.episodes,
    }
    for name, episodes in found.items():
        figures[name] = {
            "success": sum(episode.reward or 0 for episode in episodes) / len(episodes),
            "faults": sum(episode.outcome.is_fault for episode in episodes),
            "same_tokens_as_own_loop": sum(
                mine.samples == theirs.samples for mine, theirs in zip(ours, episodes, strict=True)
            ),
        }
        for episode in episodes:
            if episode.error:
                print(episode.error, file=sys.stderr)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
