"""Dialogues of the desk with a policy that draws what it says, and so does everything at times."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import anyio
import anyio.lowlevel
from dialogue_kit import Sampler

from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec

DESK = Path(__file__).parents[2] / "domains" / "desk"


@cache
def desk() -> Domain:
    return load_domain(DESK)


@cache
def renderer() -> Renderer:
    return Renderer(train_tokenizer([], vocab_size=400))


def seeded_policy() -> Sampler:
    """Says and calls what its request's seed and context make it; waits as long as that takes."""

    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        rng = random.Random(request.seed)
        words = " ".join(message.content for message in request.history[1:]).split()
        tool, argument = rng.choice(
            [("get_order", "order_id"), ("cancel_order", "order_id"), ("find_orders", "email")]
        )
        call = ToolCall("", tool, {argument: rng.choice(words).strip(",.?")})
        text = rng.choice(["Which order?", "Done.", f"{rng.choice(words)}. Shall I go ahead?"])
        message = rng.choice(
            [
                Message("assistant", text),
                Message("assistant", "", tool_calls=(call,) * rng.randint(1, 2)),
            ]
        )
        garbage = [rng.randrange(9, 250) for _ in range(rng.choice([0, 0, 0, 3]))]
        return [*renderer().encode_reply(message)[:-1], *garbage], True

    class Slow(Sampler):
        async def generate(self, request: GenerateRequest) -> Generation:
            for _ in range(request.seed % 5):
                await anyio.lowlevel.checkpoint()
            return await super().generate(request)

    return Slow(draw)


def play(backend: str, concurrency: int, *, seed: int = 0, first: int = 0) -> dict[str, Episode]:
    tasks = desk().tasks("train")[first:16]
    runner = DialogueRunner(
        domain=desk(),
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_turns=8, max_tokens=300, context_tokens=20_000),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda _task, _key: seeded_policy(),
    )
    keys = episode_keys(tasks, run_seed=seed, phase="train", group_size=4)
    limits = Limits(concurrency=concurrency)

    async def main() -> dict[str, Episode]:
        async with run_groups(keys, runner, limits=limits, journal=Unjournaled()) as groups:
            return {str(e.key): e async for group in groups for e in group.episodes}

    return anyio.run(main, backend=backend)
