"""Dialogues the other way round: what a scripted user said, as if a model had sampled it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dialogue_kit import Sampler, ids_of, renderer
from phone_kit import Handy, phone_task, use, write_phones

from muarl.cli.init import write
from muarl.data.role_reversal import role_reversed
from muarl.dialogue import Dialogue
from muarl.domain import Domain, load_domain
from muarl.model_user import ModelSpeaker, ModelUser
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode
from muarl.spec.model import ColdStartSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ModelUserSpec, UserKindSpec
from muarl.synth.demonstrations import demonstrations
from muarl.testing import build_key
from muarl.train.user_grpo import user_token_drift

pytestmark = pytest.mark.anyio

TOKENIZER = renderer().tokenizer
LIMITS = RolloutSpec(max_tokens=2_000, context_tokens=20_000)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("shop")
    write(folder, "python")
    return load_domain(folder)


async def shown(domain: Domain, count: int = 4) -> list[Episode]:
    return await demonstrations(
        domain, renderer(), ColdStartSpec(episodes=count), LIMITS, run_seed=1
    )


async def test_her_tokens_and_no_others_are_learned(shop: Domain) -> None:
    tasks = {task.id: task for task in shop.tasks("train")}
    for episode in await shown(shop):
        (samples,), lost = await role_reversed(shop, tasks, [episode], renderer())
        assert not lost
        (sample,) = samples
        said = [TOKENIZER.decode(sample.token_ids[a:b]) for a, b in sample.messages()]
        replies = episode.replies()
        ends = ["\n###STOP###" if reply.stop else "" for reply in replies]
        assert said == [
            f"{reply.text}{end}<|im_end|>" for reply, end in zip(replies, ends, strict=True)
        ]
        rest = [i for i, hers in zip(sample.token_ids, sample.loss_mask(), strict=True) if not hers]
        read = TOKENIZER.decode(rest)
        assert tasks[episode.key.task_id].goal in read
        for turn in episode.turns:
            if turn.message.tool_calls:
                assert all(
                    result.content not in read for result in turn.results if len(result.content) > 8
                )
            else:
                assert turn.message.content in read
        assert sum(sample.loss_mask()) == sample.num_sampled == len(sample.logprobs)


async def test_they_are_the_tokens_of_a_model_that_says_the_same_L1(shop: Domain) -> None:
    """Recited and sampled take one path: the same prompts, the same mask."""
    tasks = {task.id: task for task in shop.tasks("train")}
    (episode,) = await shown(shop, 1)
    task = tasks[episode.key.task_id]
    (recited,) = (await role_reversed(shop, tasks, [episode], renderer())).samples

    coming = iter(recited.messages())

    class Same:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            start, end = next(coming)
            assert request.prompt_ids == recited.token_ids[:start], "sent what was recited to"
            return Generation(recited.token_ids[start:end], [-0.5] * (end - start), "stop", 0)

    turns = iter(episode.turns)
    agent = Sampler(lambda _request: (renderer().encode_reply(next(turns).message)[:-1], True))
    speaker = ModelSpeaker(Same(), renderer(), dialogue="d", context_tokens=9999)
    kind = UserKindSpec(model=ModelUserSpec(guards=[], max_tokens=400))
    her = ModelUser(shop.user(kind, task, episode.persona, 0, speaker), speaker)
    sampled = await Dialogue(
        key=build_key(task.id),
        domain=shop,
        task=task,
        persona=episode.persona,
        policy=agent,
        user=her,
        renderer=renderer(),
        limits=LIMITS,
        speaker=speaker,
    ).run()
    assert [reply.text for reply in sampled.replies()] == [r.text for r in episode.replies()]
    (sample,) = sampled.user_samples
    assert (sample.token_ids, sample.spans) == (recited.token_ids, recited.spans)


async def test_what_she_did_on_her_device_is_learned_too(tmp_path: Path) -> None:
    domain, task = write_phones(tmp_path), phone_task()
    her = Handy([use("status")], [use("set_airplane", on=True), use("status")])
    episode = await Dialogue(
        key=build_key(task.id),
        domain=domain,
        task=task,
        persona="plain",
        policy=Sampler(lambda _request: (ids_of("hello there"), True)),
        user=her,
        renderer=renderer(),
        limits=LIMITS,
    ).run()
    (samples,), lost = await role_reversed(domain, {task.id: task}, [episode], renderer())
    assert not lost
    (sample,) = samples
    said = [TOKENIZER.decode(sample.token_ids[a:b]) for a, b in sample.messages()]
    assert [text.count("<tool_call>") for text in said] == [1, 0, 1, 1, 0, 0]
    assert user_token_drift([episode]) == 0
    rest = [i for i, hers in zip(sample.token_ids, sample.loss_mask(), strict=True) if not hers]
    assert TOKENIZER.decode(rest).count("<tool_response>") == 3


async def test_one_that_does_not_fit_is_lost_and_said_why(shop: Domain) -> None:
    tasks = {task.id: task for task in shop.tasks("train")}
    (episode,) = await shown(shop, 1)
    dialogues, (why,) = await role_reversed(shop, tasks, [episode], renderer(), context_tokens=30)
    assert not dialogues
    assert why.startswith(f"{episode.key}: her context of 30 tokens is used up")
