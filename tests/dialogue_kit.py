"""A small domain, policies and users for tests of dialogues."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import anyio.lowlevel

from muarl.dialogue import Dialogue
from muarl.domain import Domain, load_domain
from muarl.model_user import ModelSpeaker
from muarl.own_dialogue import LedDialogue
from muarl.own_loop import AgentLoop
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.record import Episode, UserReply
from muarl.record.codec import decode_episode, encode_episode
from muarl.render import Renderer, train_tokenizer
from muarl.spec import GoldCallSpec, TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.testing import ScriptedPolicy, build_key
from muarl.user import User
from muarl.waits import Gates

DOMAIN = """\
version: 1
id: notes
summary: Keeps notes.
rules: Keep notes. Ask first.
tools: {python: tools.py:serve, stateless: true}
writes: [put]
terminal: [leave]
world: {data: {notes: {old: 1}}}
tasks: {files: [tasks.yaml]}
personas: {plain: {style: plain}}
reward: [{gold_world: true}]
metrics: [{confirmed: {}}]
"""

TASKS = """\
version: 1
domain: notes
tasks:
  - {id: note-1, goal: Note it., personas: [plain], gold: [{tool: put, arguments: {key: a, value: 1}}]}
"""

TOOLS = """\
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world):
    server = MCPServer("notes")

    @server.tool()
    async def put(key: str, value: Any) -> str:
        world["notes"][key] = value
        return "ok"

    @server.tool()
    async def get(key: str) -> Any:
        if key not in world["notes"]:
            raise ToolError(f"no note {key}")
        return world["notes"][key]

    @server.tool()
    async def echo(text: str) -> str:
        return text

    @server.tool()
    async def leave() -> str:
        return "ok"

    return server
"""


def write_notes(folder: Path) -> Domain:
    """The domain `notes`, in a folder of its own."""
    (folder / "domain.yaml").write_text(DOMAIN)
    (folder / "tasks.yaml").write_text(TASKS)
    (folder / "tools.py").write_text(TOOLS)
    return load_domain(folder)


def note_task(**fields: Any) -> TaskSpec:
    """A task of `notes`: put `a` to 1."""
    gold = [GoldCallSpec(tool="put", arguments={"key": "a", "value": 1})]
    given: dict[str, Any] = {"id": "note-1", "goal": "Note it.", "personas": ["plain"]}
    return TaskSpec(**(given | {"gold": gold} | fields))


@cache
def renderer() -> Renderer:
    """A renderer over a tokenizer that knows a few words."""
    texts = ['hello there user assistant {"name": "put", "arguments": {"key": "a"}}'] * 8
    return Renderer(train_tokenizer(texts, vocab_size=500))


def ids_of(text: str) -> list[int]:
    """Ids of a message as a policy writes it: tool-call and thinking marks are control tokens."""
    tokenizer, ids = renderer().tokenizer, []
    marks = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    while text:
        found = [(text.index(mark), mark) for mark in marks if mark in text]
        if not found:
            return ids + tokenizer.encode(text)
        at, mark = min(found)
        ids += [*tokenizer.encode(text[:at]), tokenizer.convert_tokens_to_ids(mark)]
        text = text[at + len(mark) :]
    return ids


def called(*blocks: str) -> str:
    """Tool-call markup around each block."""
    return "\n".join(f"<tool_call>\n{block}\n</tool_call>" for block in blocks)


class Sampler:
    """Samples what a function of the request draws: ids, and whether a stop token ends them.

    What no stop token ends goes on to the cap; what is longer is cut. Both finish for length, as an
    engine would do it.

    Attributes:
        requests: Everything it was sent.
        generations: Everything it sampled.
    """

    policy_version = 0

    def __init__(self, draw: Callable[[GenerateRequest], tuple[list[int], bool]]) -> None:
        self._draw = draw
        self.requests: list[GenerateRequest] = []
        self.generations: list[Generation] = []

    async def generate(self, request: GenerateRequest) -> Generation:
        await anyio.lowlevel.checkpoint()
        rng = random.Random(request.seed)
        ids, stops = self._draw(request)
        ids = [i for i in ids if i not in request.stop_token_ids]
        if stops:
            ids = [*ids, rng.choice(request.stop_token_ids)]
        ids = ids or [5]
        stops = stops and len(ids) <= request.max_tokens
        if not stops:
            ids = list(islice(cycle(ids), request.max_tokens))
        generation = Generation(
            ids, [-rng.random() for _ in ids], "stop" if stops else "length", self.policy_version
        )
        self.requests.append(request)
        self.generations.append(generation)
        return generation


class TalkingUser:
    """Says its texts in order, then stops; remembers what it heard."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self.heard: list[str] = []

    async def open(self) -> UserReply:
        return UserReply(self._texts.pop(0) if self._texts else "hello", act="open")

    async def reply(self, agent_text: str) -> UserReply:
        self.heard.append(agent_text)
        await anyio.lowlevel.checkpoint()
        if not self._texts:
            return UserReply("bye", stop=True, act="stop")
        return UserReply(self._texts.pop(0))


def dialogue(
    domain: Domain,
    policy: Policy,
    user: User,
    *,
    task: TaskSpec | None = None,
    rendered_by: Renderer | None = None,
    seed: int = 0,
    gates: Gates | None = None,
    speaker: ModelSpeaker | None = None,
    **limits: Any,
) -> Dialogue:
    """A dialogue of `notes`, with roomy limits where none are given."""
    roomy = {"max_turns": 12, "max_tokens": 400, "context_tokens": 8_000}
    task = task or note_task()
    return Dialogue(
        key=build_key(task.id, run_seed=seed),
        domain=domain,
        task=task,
        persona="plain",
        policy=policy,
        user=user,
        renderer=rendered_by or renderer(),
        limits=RolloutSpec(**(roomy | limits)),
        gates=gates,
        speaker=speaker,
    )


def led(
    domain: Domain, loop: AgentLoop, policy: Policy, texts: list[str] | None = None, **limits: Any
) -> LedDialogue:
    """A dialogue of `notes` that an agent's own loop leads."""
    roomy = {"max_turns": 12, "max_tokens": 400, "context_tokens": 8_000}
    task = note_task()
    return LedDialogue(
        loop,
        key=build_key(task.id),
        domain=domain,
        task=task,
        persona="plain",
        policy=policy,
        user=TalkingUser(texts or ["note it", "yes"]),
        renderer=renderer(),
        limits=RolloutSpec(**(roomy | limits)),
    )


def says(*texts: str) -> ScriptedPolicy:
    """A policy that says these, in each dialogue from the first on."""
    return ScriptedPolicy(texts, ids_of)


def check_threads(episode: Episode, policy: Sampler) -> None:
    """Law L1 where several conversations are under way: each turn is as it was sent and sampled."""
    assert len(episode.turns) == len(policy.generations)
    sampled = [set[int]() for _ in episode.samples]
    logprobs: list[dict[int, float]] = [{} for _ in episode.samples]
    unmatched = list(zip(policy.requests, policy.generations, strict=True))
    for turn in episode.turns:
        ids = episode.samples[turn.sample].token_ids
        found = next(
            (request, generation)
            for request, generation in unmatched
            if request.prompt_ids == ids[: turn.start]
            and generation.token_ids == ids[turn.start : turn.end]
        )
        unmatched.remove(found)
        places = range(turn.start, turn.end)
        assert not sampled[turn.sample] & set(places), "two turns on the same tokens"
        sampled[turn.sample] |= set(places)
        logprobs[turn.sample] |= dict(zip(places, found[1].logprobs, strict=True))
    for sample, positions, known in zip(episode.samples, sampled, logprobs, strict=True):
        mask = sample.loss_mask()
        assert {i for i, is_sampled in enumerate(mask) if is_sampled} == positions
        assert sample.logprobs == [known[i] for i in sorted(known)]
    assert episode.forks == len(episode.samples) - 1
    assert decode_episode(encode_episode(episode)) == episode


def check_user_tokens(episode: Episode, policy: Sampler) -> None:
    """Law L1 for a user who is a model, and the policy that sampled her.

    Each message she sampled was said or thrown away, once, and is where the record says.
    """
    said = [
        (sample, start, end) for sample in episode.user_samples for start, end in sample.messages()
    ]
    rejected = [(sample, *sample.messages()[0]) for sample in episode.user_rejected]
    assert len(said) + len(rejected) == len(policy.generations)
    logprobs: list[list[float]] = [[], []]
    for request, generation in zip(policy.requests, policy.generations, strict=True):
        whole = request.prompt_ids + generation.token_ids
        found = [
            (place, where)
            for place, where in enumerate((said, rejected))
            if where
            and where[0][0].token_ids[: where[0][2]] == whole
            and where[0][1] == len(request.prompt_ids)
        ]
        assert found, "a message she sampled is nowhere, or not as it was sent and sampled"
        place, where = found[0]
        where.pop(0)
        logprobs[place] += generation.logprobs
    assert not said
    assert not rejected
    for place, samples in enumerate((episode.user_samples, episode.user_rejected)):
        assert [x for sample in samples for x in sample.logprobs] == logprobs[place]
        for sample in samples:
            assert sum(sample.loss_mask()) == sample.num_sampled == len(sample.logprobs)
            assert len(sample.token_ids) == sample.spans[-1].end, "something after what she said"
    assert all(len(sample.messages()) == 1 for sample in episode.user_rejected)
    assert episode.user_forks >= len(episode.user_samples) - 1


def check_tokens(episode: Episode, policy: Sampler) -> None:
    """Law L1, for an episode and the policy that sampled it."""
    assert len(episode.turns) == len(policy.generations)
    ends = [len(sample.token_ids) for sample in episode.samples]
    sampled: list[set[int]] = [set() for _ in episode.samples]
    for turn, request, generation in zip(
        episode.turns, policy.requests, policy.generations, strict=True
    ):
        ids = episode.samples[turn.sample].token_ids
        assert ids[: turn.start] == request.prompt_ids, "not what the policy was sent"
        assert ids[turn.start : turn.end] == generation.token_ids, "not what it sampled"
        sampled[turn.sample] |= set(range(turn.start, turn.end))
        ends[turn.sample] = turn.end
    for sample, positions, end in zip(episode.samples, sampled, ends, strict=True):
        mask = sample.loss_mask()
        assert {i for i, is_sampled in enumerate(mask) if is_sampled} == positions
        assert sum(mask) == sample.num_sampled == len(sample.logprobs)
        assert len(sample.token_ids) == end, "something was added after the last sampled token"
    logprobs = [logprob for sample in episode.samples for logprob in sample.logprobs]
    assert logprobs == [x for generation in policy.generations for x in generation.logprobs]
    assert episode.num_sampled == len(logprobs)
    assert episode.forks == len(episode.samples) - 1
