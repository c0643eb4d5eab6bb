"""A user who is trained: her supervised start, GRPO beside the policy, and what a run keeps of her."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch
from short_run import break_off, carry_out

from muarl.cli.init import write
from muarl.domain import load_domain
from muarl.errors import SetupError, SpecError, TrainError
from muarl.kernel.checkpoint import read_counters
from muarl.kernel.model import load_model, weights_checksum
from muarl.policy.torch_engine import Engine, Row
from muarl.record import Episode, Outcome, StoredEpisodes, read_journal
from muarl.scheduler.rounds import StopSignal
from muarl.scheduler.shards import rollout_keys
from muarl.spec import Located, RunSpec, dump_spec, load_run
from muarl.train.playing import open_stored_user, roll_out, stored_user
from muarl.train.progress import Silent
from muarl.train.run_folder import RunFolder

TINY = {"vocab_size": 480, "hidden_size": 48, "num_layers": 2, "ffn_size": 128}
COLD = {"episodes": 48, "steps": 80, "tokens_per_step": 256}
SHORT: dict[str, Any] = {
    "version": 1,
    "domain": "shop/domain.yaml",
    "seed": 3,
    "threads": 1,
    "model": {"tiny": TINY},
    "user": {"model": {"max_tokens": 32}},
    "rollout": {
        "group_size": 4,
        "concurrency": 16,
        "max_turns": 8,
        "max_tokens": 48,
        "context_tokens": 768,
        "max_fault_rate": 1.0,
        "retry_wait_s": 0,
        "attempts": 1,
    },
    "grpo": {"iterations": 2, "tasks_per_iteration": 3},
    "eval": {"episodes": 4, "temperatures": [1.0], "user": {"scripted": {}}},
}
HERS = {"model": {"tiny": TINY}, "grpo": {"kl_coef": 0.01}}


TASKS = """
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

ITEMS = {"train": ["kettle", "lamp", "radio"], "held_out": ["clock", "mirror", "vase", "chair"]}


def generate(split, seed, count):
    number = "B31" if split == "train" else "C52"
    facts = [FactSpec(id="order_id", value=number)]
    calls = [GoldCallSpec(tool=tool, arguments={"order_id": number})
             for tool in ("find_order", "cancel_order")]
    return [
        TaskSpec(
            id=f"{split}-{item}",
            split=split,
            goal=f"You want order {number}, a {item}, cancelled.",
            personas=["plain"],
            user=UserGoalSpec(requests=[RequestSpec(ask="cancel", facts=facts)]),
            world={"orders": {number: {"item": item, "status": "pending"}}},
            gold=calls,
        )
        for item in ITEMS[split][:count]
    ]
"""
"""All training tasks are about one order: to copy another's number takes longer to learn."""


def write_shop(folder: Path, **changes: Any) -> Path:
    """A run file beside a small domain of `muarl init`, whose tasks are few enough to be learned."""
    write(folder / "shop", "python")
    (folder / "shop" / "tasks.py").write_text(TASKS)
    domain = folder / "shop" / "domain.yaml"
    few = domain.read_text().replace("{train: 600, held_out: 100}", "{train: 3, held_out: 4}")
    assert "train: 3" in few
    domain.write_text(few)
    spec = RunSpec.model_validate({**SHORT, **changes})
    (folder / "run.yaml").write_text(dump_spec(spec))
    return folder / "run.yaml"


def trained(run_file: Path) -> list[Episode]:
    journal = run_file.parent / "out/episodes.journal"
    return [episode for episode in read_journal(journal) if episode.key.phase == "train"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run in which both have a cold start and learn together, and its iterations."""
    hers = {**HERS, "cold_start": COLD, "past": {"size": 1, "every": 1}}
    cold = {**COLD, "imperfections": {"quit": 0.5}, "steps": 60}
    run_file = write_shop(tmp_path_factory.mktemp("shop"), cold_start=cold, user_model=hers)
    return run_file, carry_out(run_file, run_file.parent / "out")


def test_what_she_says_becomes_likelier_in_her_supervised_start(
    whole: tuple[Path, list[dict[str, Any]]],
) -> None:
    out = whole[0].parent / "out"
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "user_cold_start"]
    assert len(losses) == 8
    assert losses[-1] < 0.2 * losses[0]
    assert (out / "user_cold_start/tokenizer.json").is_file(), "anything can sample from it"


def test_a_trained_user_holds_dialogues(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    """With the expert, on the tasks she was trained on, and held to her contract by every guard."""
    run_file = whole[0]
    located = load_run(run_file)
    assert located.spec.user_model is not None
    tiny = located.spec
    with pytest.raises(SpecError, match=r"training makes; .*user_model.model.path="):
        stored_user(located, [tiny.user])
    located = with_user(located, "out/user_cold_start")
    domain = load_domain(run_file.parent / "shop")
    tasks = domain.tasks("train")
    keys = rollout_keys(tasks, 12, group_size=2, run_seed=1)
    played = run_file.parent / "played"
    folder = RunFolder.create(played, located.spec, resume=False, overwrite=False)

    async def main() -> None:
        await roll_out(
            *(domain, located.spec, None, keys),
            folder=folder,
            progress=Silent(),
            stop=StopSignal(),
            user=stored_user(located, [located.spec.user]),
        )

    anyio.run(main)
    episodes = list(StoredEpisodes([folder.journal]))
    assert len(episodes) == 12
    held = [episode for episode in episodes if episode.outcome == Outcome.COMPLETED]
    assert len(held) >= 10, Counter(e.breach or e.outcome for e in episodes)
    assert sum(episode.reward == 1.0 for episode in held) >= 10
    assert all(episode.user_samples for episode in held)


def with_user(located: Located[RunSpec], folder: str) -> Located[RunSpec]:
    """The same run with her model from a folder, playing the tasks that she was trained on."""
    spec = located.spec.model_dump()
    spec |= {"grpo": None, "cold_start": None, "user_model": {"model": {"path": folder}}}
    spec["user"] = {"model": {"max_tokens": 32, "temperature": 0.2}}
    spec["eval"] |= {"split": "train", "episodes": 12, "user": None}
    return replace(located, spec=RunSpec.model_validate(spec))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU for her")
@pytest.mark.anyio
async def test_a_stored_user_is_on_the_device_of_the_run(
    whole: tuple[Path, list[dict[str, Any]]],
) -> None:
    located = with_user(load_run(whole[0]), "out/user_cold_start")
    model = located.spec.model.model_copy(update={"device": "cuda"})
    run = located.spec.model_copy(update={"model": model})
    with pytest.raises(SetupError, match="torch sees no GPU"):
        async with open_stored_user(run, stored_user(located, [located.spec.user])):
            pass


def test_both_learn_from_the_same_dialogues(whole: tuple[Path, list[dict[str, Any]]]) -> None:
    run_file, rounds = whole
    out = run_file.parent / "out"
    assert [line["user_model"]["met"] for line in rounds] == [1, 2]
    for number, line in enumerate(rounds):
        hers = line["user_model"]
        assert line["token_drift"] == hers["token_drift"] == 0
        assert hers["episodes"] > 0
        assert hers["sampled_tokens"] > 0
        of_round = [e for e in trained(run_file) if e.key.iteration == number]
        versions = Counter(s.spans[0].policy_version for e in of_round for s in e.user_samples)
        assert set(versions) <= {number, *range(number)}
        if "trained_tokens" in hers:
            assert hers["trained_tokens"] <= hers["sampled_tokens"]
            assert hers["first_ratio_mean"] == pytest.approx(1, abs=1e-4)
            assert hers["max_logprob_gap"] <= 1e-4
    assert any("trained_tokens" in line["user_model"] for line in rounds), "she learned"
    checksums = [
        weights_checksum(load_model(out / name)) for name in ("user_cold_start", "user_model")
    ]
    assert checksums[0] != checksums[1], "her weights moved"
    assert weights_checksum(load_model(out / "cold_start")) != weights_checksum(
        load_model(out / "model")
    )
    elsewhere = [e for e in read_journal(out / "episodes.journal") if e.key.phase != "train"]
    assert elsewhere
    assert not any(e.user_samples for e in elsewhere), "evaluations meet a user who stays the same"


FAST = {"episodes": 16, "steps": 20, "tokens_per_step": 128}
UNGUARDED = {"model": {"max_tokens": 24, "guards": [], "tries": 1}}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run of seconds in which they take turns, which nothing broke off."""
    grpo = {**HERS["grpo"], "turns": "alternately"}
    hers = {**HERS, "cold_start": FAST, "grpo": grpo, "past": {"size": 2, "every": 1}}
    run_file = write_shop(
        tmp_path_factory.mktemp("fast"), user=UNGUARDED, user_model=hers, eval=SHORT["eval"]
    )
    return run_file, carry_out(run_file, run_file.parent / "out")


def broken_off_twice(run_file: Path, out: Path, *, ahead: bool) -> list[dict[str, Any]]:
    """Iterations of a run that was broken off in her cold start, and in the second iteration.

    Args:
        run_file: The run.
        out: Its folder.
        ahead: As if killed between her checkpoint and the policy's: hers is one iteration ahead.
    """
    break_off(run_file, out, "cold start of the user", 10)
    break_off(run_file, out, "GRPO", 1, resume=True)
    if ahead:
        shutil.rmtree(out / "checkpoint")
        assert (read_counters(out / "user_checkpoint") or {})["iteration"] == 1
    return carry_out(run_file, out, resume=True)


def same_rounds_of_hers(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for figure in ("episodes", "met", "sampled_tokens", "trained_tokens"):
            assert one["user_model"].get(figure) == other["user_model"].get(figure)


@pytest.mark.parametrize("ahead", [False, True])
def test_L9_a_run_of_both_goes_on_to_the_same_end(
    ahead: bool, tmp_path: Path, unbroken: tuple[Path, list[dict[str, Any]]]
) -> None:
    run_file, rounds = unbroken
    out = tmp_path / "broken"
    resumed = broken_off_twice(run_file, out, ahead=ahead)
    assert [line["iteration"] for line in resumed] == [0, 1]
    same_rounds_of_hers(resumed, rounds)
    for ours, theirs in zip(resumed, rounds, strict=True):
        assert ours["reward_mean"] == pytest.approx(theirs["reward_mean"])
    found = list(read_journal(out / "episodes.journal"))
    keys = Counter(e.key for e in found if not e.outcome.is_fault)
    assert set(keys.values()) == {1}, "faults alone are tried again"
    assert {e.key for e in found} == {
        e.key for e in read_journal(run_file.parent / "out/episodes.journal")
    }


def test_they_take_turns_where_the_run_says_so(
    unbroken: tuple[Path, list[dict[str, Any]]],
) -> None:
    first, second = unbroken[1]
    assert "trained_tokens" not in first["user_model"], "the first round is the policy's"
    assert "trained_tokens" not in second, "the second is the user's"


def test_a_users_sampler_that_says_other_log_probs_than_her_trainer_raises_an_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sampled = Engine._draw

    def off(engine: Engine, logits: Any, rows: list[Row]) -> Any:
        tokens, logprobs = sampled(engine, logits, rows)
        return tokens, [value - 0.3 for value in logprobs]

    monkeypatch.setattr(Engine, "_draw", off)
    hers = {**HERS, "cold_start": FAST, "grpo": {**HERS["grpo"], "max_mismatch": 0.04}}
    once = {**SHORT["grpo"], "iterations": 1, "max_mismatch": 1.0}
    run_file = write_shop(tmp_path, user=UNGUARDED, user_model=hers, grpo=once)
    (line,) = carry_out(run_file, tmp_path / "out")
    assert line["user_model"]["mismatch"]["kl"] == pytest.approx(math.exp(0.3) - 1.3, rel=1e-3)
    (alarm,) = line["alarms"]
    assert "user_model.grpo.max_mismatch 0.04" in alarm
    assert alarm in caplog.text


def test_dialogues_that_do_not_fit_into_her_context_are_refused_as_lessons(tmp_path: Path) -> None:
    hers = {**HERS, "cold_start": FAST, "context_tokens": 40}
    run_file = write_shop(tmp_path, user=UNGUARDED, user_model=hers)
    with pytest.raises(TrainError, match=r"nothing for the user's model to learn from.*used up"):
        carry_out(run_file, tmp_path / "out")
