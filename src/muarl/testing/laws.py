"""What worlds, users, tool servers and policies of one's own have to keep, as checks to call in a test.

Each raises `LawError`, which says what was broken and how to see it again. They look from outside, as a
dialogue does, and need neither a model nor a run.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import anyio
from msgspec import structs

from muarl.messages import ToolCall, ToolResult
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.policy.flaws import flaw_of
from muarl.record import UserReply
from muarl.tools import ToolServer
from muarl.user import User
from muarl.world import World, apply_changes, diff, plain


class LawError(AssertionError):
    """Something of one's own does not keep what everything of its kind has to."""


def world_laws(
    base: World, write: Callable[[World, random.Random], object], *, runs: int = 25
) -> None:
    """Look whether worlds of a class keep law L3.

    A fork has the same content and class, and shares no write with what it came from, in either
    direction; a fork of a fork likewise. `diff` of a world before and after names every change, so that
    making these changes again gives the same world, and nothing else is named. What `save` wrote,
    `restored` reads.

    Args:
        base: A world as one begins.
        write: Changes a world in some way that tools may, by these draws.
        runs: How often.

    Raises:
        LawError: One is broken.
    """
    for run in range(runs):
        rng = random.Random(run)
        begun = plain(base)
        parent = base.fork()
        write(parent, rng)
        before, child = plain(parent), parent.fork()

        def law(holds: bool, broken: str, run: int = run) -> None:
            if not holds:
                raise LawError(f"run {run} (random.Random({run})): {broken}")

        law(type(child) is type(base), f"a fork is a {type(child).__name__}; override `fresh`")
        law(plain(child) == before, "a fork differs from what it was made of")
        law(not diff(parent, child), "diff names changes between a world and its fork")
        law(plain(base) == begun, "a write into a fork is seen in the base")
        write(child, rng)
        after = plain(child)
        law(plain(parent) == before, "a write into a fork is seen in what it was made of")
        changes = diff(parent, child)
        law(bool(changes) == (before != after), "diff names no change where there is one")
        again = parent.fork()
        apply_changes(again, changes)
        law(plain(again) == after, "the changes that diff names do not make the world again")
        write(parent, rng)
        law(plain(child) == after, "a write into a world is seen in its fork")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "world"
            child.save(path)
            restored = base.restored(path)
        law(type(restored) is type(base), f"`restored` gives a {type(restored).__name__}")
        law(not diff(child, restored), "what `save` wrote is not what `restored` reads")
        write(restored, rng)
        law(
            plain(child) == after,
            "a write into a restored world is seen in the one it was saved of",
        )
        law(plain(base) == begun, "a write into a restored world is seen in the base")


async def user_laws(
    make: Callable[[int], User],
    *,
    agent: Callable[[int], str] = "message {}".format,
    seeds: Iterable[int] = range(5),
    turns: int = 100,
) -> None:
    """Look whether users say what can be read, end some time, and follow their own seed alone (law L5).

    Args:
        make: Makes the user of a seed.
        agent: What the agent says in a turn, counted from 0.
        seeds: Those that are tried.
        turns: By then she must have ended the dialogue.

    Raises:
        LawError: One is broken.
    """
    for seed in seeds:
        alone = await _talk([make(seed)], agent, turns)
        together = await _talk([make(seed), make(seed + 1), make(seed)], agent, turns)
        if alone[0] != together[0] or alone[0] != together[2]:
            raise LawError(
                f"seed {seed}: with the same seed she says something else, at the latest while others "
                "talk beside her: keep what she draws and remembers in herself"
            )


async def _talk(
    users: Sequence[User], agent: Callable[[int], str], turns: int
) -> list[list[UserReply]]:
    """What users say who talk in turns."""
    said = [[await user.open()] for user in users]
    for turn in range(turns):
        for user, replies in zip(users, said, strict=True):
            if not replies[-1].stop:
                replies.append(await user.reply(agent(turn)))
    for replies in said:
        for reply in replies:
            if not (isinstance(reply, UserReply) and isinstance(reply.text, str)):
                raise LawError(f"she said {reply!r:.80}; expected a UserReply with a text")
        if not replies[-1].stop:
            raise LawError(f"after {turns} messages she has not ended the dialogue (law L4)")
    return said


async def tool_server_laws(server: ToolServer, base: World, calls: Sequence[ToolCall]) -> None:
    """Look whether each session of a server acts on its own world, alike and alone (law L3).

    The same calls on equal worlds give the same answers and changes, also where sessions are open beside
    each other; what is wrong with a call is answered with an error.

    Args:
        server: The server.
        base: The world that dialogues begin with.
        calls: Calls that may be made one after the other; some should change the world.

    Raises:
        LawError: One is broken.
    """
    begun = plain(base)
    unknown = ToolCall("unknown", "no_tool_has_this_name", {})
    worlds = [base.fork() for _ in range(3)]
    answers: list[list[ToolResult]] = [[], [], []]
    async with server.session(worlds[0]) as first:
        listed = first.tools
        names = [tool.name for tool in listed]
        if len(set(names)) < len(names):
            raise LawError(f"two of its tools have one name: {', '.join(names)}")
        answers[0] = [await first.call(call) for call in calls]
    async with server.session(worlds[1]) as second, server.session(worlds[2]) as third:
        if second.tools != listed:
            raise LawError("another session offers other tools")
        for call in calls:
            answers[1].append(await second.call(call))
            answers[2].append(await third.call(call))
        if not (answer := await second.call(unknown)).is_error:
            raise LawError(f"a tool that does not exist was answered without an error: {answer!r}")
    for call, *of_call in zip(calls, *answers, strict=True):
        for answer in of_call:
            if answer != of_call[0]:
                said = f"{of_call[0].content!r} and {answer.content!r}"
                raise LawError(f"on equal worlds {call.name} was answered {said}")
            if answer.call_id != call.id:
                raise LawError(
                    f"the answer to call {call.id!r} is said to be to {answer.call_id!r}"
                )
    for world in worlds[1:]:
        if changes := diff(worlds[0], world):
            raise LawError(f"the same calls left different worlds: {changes[0]}")
    if plain(base) != begun:
        raise LawError("a call changed a world that is not its session's")


async def policy_laws(
    policy: Policy, request: GenerateRequest, vocab_size: int, *, seeded: bool = True
) -> None:
    """Look whether a policy samples what it is asked for (laws L1 and L5).

    As many log-probs as tokens, within the cap, ended by a stop token or by the cap; the same seed, the
    same tokens, whatever is sampled beside it; a call that is cancelled leaves it as it was.

    Args:
        policy: The policy.
        request: A message to ask for; it is asked for with other seeds and caps as well.
        vocab_size: Ids that the tokenizer knows.
        seeded: Whether its draws follow the seed.

    Raises:
        LawError: One is broken.
    """
    requests = [
        structs.replace(request, seed=seed, max_tokens=cap)
        for seed in (request.seed, request.seed + 1)
        for cap in sorted({1, request.max_tokens})
    ]
    alone = [await policy.generate(one) for one in requests]
    with anyio.CancelScope() as scope:
        scope.cancel()
        await policy.generate(request)
    together = await _all_at_once(policy, requests)
    for one, first, again in zip(requests, alone, together, strict=True):
        for generation in (first, again):
            if flaw := flaw_of(generation, one, vocab_size):
                raise LawError(f"asked for at most {one.max_tokens} tokens it {flaw}")
        if seeded and first.token_ids != again.token_ids:
            raise LawError(f"seed {one.seed}: it sampled {first.token_ids} and {again.token_ids}")


async def _all_at_once(policy: Policy, requests: Sequence[GenerateRequest]) -> list[Generation]:
    found: dict[int, Generation] = {}

    async def ask(index: int) -> None:
        found[index] = await policy.generate(requests[index])

    async with anyio.create_task_group() as tasks:
        for index in range(len(requests)):
            tasks.start_soon(ask, index)
    return [found[index] for index in range(len(requests))]
