"""A made-up run folder: no model, but every part of the report has something to show."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from muarl.evaluate import summarise
from muarl.evaluate.statistics import wilson
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.record import (
    Episode,
    EpisodeKey,
    Outcome,
    PredicateResult,
    Sample,
    Span,
    Turn,
    UserReply,
)
from muarl.record.journal import JournalWriter, read_journal
from muarl.world import Change

SYSTEM = "You work at the order desk. Look the order up before you change it. Ask before you write."
TOOLS = [
    ToolSpec("get_order", "Look up one order.", {"type": "object", "properties": {"order_id": {}}}),
    ToolSpec("cancel_order", "Cancel an order for good.", {"type": "object"}),
    ToolSpec("change_address", "Ship an order elsewhere.", {"type": "object"}),
]
PERSONAS = ("cooperative", "withholds", "changes_mind")


def make_tokenizer(path: Path, hostile: str = "") -> Tokenizer:
    """A byte-level tokenizer trained on a few sentences; one token is the hostile text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_start|>", "<|im_end|>"] + ([hostile] if hostile else []),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([SYSTEM, "user agent order cancel tool call status"] * 4, trainer)
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return tokenizer


class EpisodeMaker:
    """Makes episodes whose tokens, mask and log-probs fit together."""

    def __init__(self, tokenizer: Tokenizer, seed: int, hostile: str = "") -> None:
        self._tokenizer = tokenizer
        self._rng = random.Random(seed)
        self._hostile = hostile

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids

    def make(self, phase: str, iteration: int, task: int, sample: int, skill: float) -> Episode:
        rng, bad = self._rng, self._hostile
        order, persona = f"W{4100 + task % 89}", PERSONAS[task % 3]
        passed, fault = rng.random() < skill, rng.random() < 0.01
        token_ids = self._ids(f"<|im_start|>system\n{SYSTEM}{bad}<|im_end|>\n<|im_start|>user\n")
        spans: list[Span] = []
        logprobs: list[float] = []

        def sampled(text: str) -> tuple[int, int]:
            start = len(token_ids)
            token_ids.extend(self._ids(text + "<|im_end|>"))
            spans.append(Span(start, len(token_ids), iteration))
            logprobs.extend(
                math.log(min(1.0, rng.betavariate(1.5 + 6 * skill, 0.6) + 1e-4))
                for _ in range(start, len(token_ids))
            )
            return start, len(token_ids)

        def given(text: str) -> None:
            token_ids.extend(
                self._ids(f"\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n")
            )

        def turn(text: str, call: ToolCall | None, result: str, **more: Any) -> Turn:
            written = text + (
                f'\n<tool_call>\n{{"name": "{call.name}"}}\n</tool_call>' if call else ""
            )
            start, end = sampled(written)
            given(result or more["reply"].text)
            calls = (call,) if call else ()
            results = (
                [ToolResult(call.id, call.name, result, more.pop("is_error", False))]
                if call
                else []
            )
            message = Message("assistant", text, calls, reasoning=bad)
            return Turn(message, 0, start, end, "stop", iteration, results, **more)

        given(f"hi, please cancel {order}")
        turns = [
            turn(
                "",
                ToolCall("1", "get_order", {"order_id": order, "note": bad}),
                json.dumps({"id": order, "item": "lamp", "status": "pending", "note": bad}),
            ),
            turn(
                f"Cancel {order}, a lamp? Please confirm. {bad}",
                None,
                "",
                reply=UserReply(
                    f"yes, cancel it {bad}",
                    act="confirm",
                    calls=[ToolCall("u1", "look", {"at": bad})],
                    results=[ToolResult("u1", "look", f"a lamp{bad}")],
                    changes=[Change("device.looked", False, f"at {bad}", "changed")],
                ),
            ),
        ]
        change = Change(f"orders.{order}.status", "pending", f"cancelled{bad}", "changed")
        if rng.random() < 0.3:
            turns.append(
                turn(
                    "",
                    ToolCall("2", "cancel_order", {"order": order}),
                    f"unknown argument 'order'{bad}",
                    is_error=True,
                )
            )
        if passed:
            turns.append(
                turn(
                    "",
                    ToolCall("3", "cancel_order", {"order_id": order}),
                    f"cancelled {order}",
                    changes=[change],
                )
            )
        turns.append(
            turn(
                f"Done: {order} is taken care of.",
                None,
                "",
                reply=UserReply("thank you, bye", stop=True, act="stop"),
            )
        )
        reason = (
            "the final world equals the gold world"
            if passed
            else f"orders.{order}.status: 'pending' -> 'cancelled' is missing{bad}"
        )
        return Episode(
            key=EpisodeKey(3, phase, iteration, f"cancel-{task:03d}{bad}", sample),
            domain=f"desk{bad}",
            persona=persona + bad,
            split="held_out" if "eval" in phase else "train",
            task_hash="0123abcd",
            system=SYSTEM + bad,
            tools=TOOLS,
            opening=UserReply(f"hi, please cancel {order} {bad}", act="open"),
            outcome=Outcome.INFRA_FAULT if fault else Outcome.COMPLETED,
            error=f"tool server died{bad}" if fault else None,
            reward=None if fault else float(passed),
            rewards=[PredicateResult(f"gold_world{bad}", float(passed), reason)],
            metrics=[PredicateResult("confirmed", 1.0 if passed else None, "1 of 1 writes")],
            changes=[change] if passed else [],
            turns=turns,
            samples=[Sample(token_ids, spans, logprobs)],
        )


def make_run(
    folder: Path,
    *,
    iterations: int = 8,
    tasks: int = 24,
    group: int = 4,
    hostile: str = "",
    seed: int = 0,
) -> Path:
    """Write a whole run folder."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "spec.resolved.yaml").write_text(
        f"version: 1\ndomain: {json.dumps('../domains/desk/domain.yaml' + hostile)}\nseed: 3\n"
        f"engine: embedded\nmodel:\n  tiny: {{num_layers: 3, hidden_size: 128, vocab_size: 600}}\n"
        f"note: {json.dumps(hostile)}\n",
        encoding="utf-8",
    )
    (folder / "versions.json").write_text(
        json.dumps(
            {
                "muarl": "0.1.0",
                "torch": "2.13.0",
                "note": hostile,
                "started": "2026-11-29 17:30 UTC",
            }
        ),
        encoding="utf-8",
    )
    maker = EpisodeMaker(
        make_tokenizer(folder / "model" / "tokenizer.json", hostile), seed, hostile
    )
    lines: list[dict[str, Any]] = [
        {
            "kind": "cold_start",
            "step": step,
            "loss": 4 * math.exp(-step / 60) + 0.3 + rng.random() / 9,
            "lr": 1e-2 * min(1, step / 30) * (1 - step / 800),
        }
        for step in range(0, 700, 5)
    ]
    lines += [{**line, "kind": "user_cold_start"} for line in lines[:9]]
    lines += [
        {
            "kind": "floor",
            "name": name + hostile,
            "success": msgspec.to_builtins(wilson(round(value * 400), 400)),
        }
        for name, value in (("do nothing", 0.108), ("random writes", 0.0))
    ]
    with JournalWriter(folder / "episodes.journal") as journal:

        def evaluate(phase: str, temperature: float, skill: float) -> None:
            episodes = [
                maker.make(f"eval:{phase}:{temperature:g}", 0, 500 + i // 2, i % 2, skill)
                for i in range(tasks * group)
            ]
            for episode in episodes:
                journal.append(episode)
            share = msgspec.to_builtins(wilson(3, 40))
            measured = {"contract": share, "asks": share, "no_such_figure" + hostile: share}
            about = {"phase": phase, "temperature": temperature, "dialogues": 40, "tasks": 20}
            lines.append({"kind": "users", **about, "faults": 0, "figures": measured})
            lines.append(
                {
                    "kind": "eval",
                    "phase": phase,
                    "temperature": temperature,
                    **msgspec.to_builtins(summarise(episodes)),
                }
            )

        for temperature in (1.0, 0.0):
            evaluate("cold", temperature, 0.36 if temperature else 0.1)
        for i in range(iterations):
            skill = 0.36 + 0.58 * (1 - math.exp(-4 * i / iterations))
            groups = [
                [maker.make("train", i, task, n, skill) for n in range(group)]
                for task in range(tasks)
            ]
            for episode in (e for one in groups for e in one):
                journal.append(episode)
            lines.append(iteration_line(i, groups, skill, rng, hostile))
            success = {"value": skill, "low": skill - 0.04, "high": skill + 0.03}
            lines.append({"kind": "validation", "iteration": i + 1, "success": success})
        for temperature in (1.0, 0.0):
            evaluate("final", temperature, 0.93 if temperature else 0.97)
    if trained := [e.key for e in read_journal(folder / "episodes.journal") if e.key.trains]:
        learned = [
            {"id": str(key), "turns": [0.5, -0.5, 1.5, 0.0][:4], "trainer_logprobs": []}
            for key in trained
        ]
        (folder / "learned.jsonl").write_text(
            json.dumps({"iteration": 0, "episodes": learned}) + "\n", encoding="utf-8"
        )
    (folder / "metrics.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    return folder


def iteration_line(
    i: int, groups: list[list[Episode]], skill: float, rng: random.Random, hostile: str
) -> dict[str, Any]:
    summary = summarise(e for one in groups for e in one)
    full = [all(e.reward == 1 for e in one) for one in groups]
    none = [not any(e.reward for e in one) for one in groups]
    return {
        "kind": "iteration",
        "iteration": i,
        "reward_mean": summary.reward.value,
        "reward_low": summary.reward.low,
        "reward_high": summary.reward.high,
        "groups_all_pass": sum(full),
        "groups_all_fail": sum(none),
        "groups_mixed": len(groups) - sum(full) - sum(none),
        "kl": 0.09 * (skill - 0.36) + rng.random() / 200,
        "entropy": 0.42 - 0.35 * skill + rng.random() / 40,
        "ratio_max": 1.2 + rng.random(),
        "first_ratio_max": 1 + rng.random() / 1e6,
        "lag_mean": 0.8 * min(i, 1),
        "lag_max": min(i, 2),
        "overlap": rng.uniform(0.5, 1.0),
        "rollout_s": rng.uniform(1, 2),
        "clip_fraction": 0.01 + rng.random() / 60,
        "grad_norm": 0.5 + rng.random(),
        "max_logprob_gap": 10 ** rng.uniform(-6, -5),
        "turns_mean": summary.turns.value,
        "response_tokens_mean": summary.sampled_tokens.value,
        "episodes": sum(map(len, groups)),
        "outcomes": summary.outcomes,
        "distinct": {"1": 0.2, "2": 0.5, "3": 0.7 - skill / 2},
        "tool_errors": {name + hostile: 0.1 for name in summary.tool_calls},
        "mismatch": {"kl": 10 ** rng.uniform(-9, -8), "largest_gap": 0.1, "tokens": 100},
        "alarms": [f"the sampler is off{hostile}"] if i == 1 else [],
        "users": {
            "figures": {"repeats_text": 0.2 + skill / 2, "act_entropy": 0.6, "flat_groups": 0.3},
            "alarms": [f"iteration {i}: repeats{hostile}"] if i == 2 else [],
        },
        "user_model": {"reward_mean": 0.4 + skill / 5, "rejected": i, "entropy": 0.8},
        "observed": {"live_mean": 40.0, "faults_by_kind": {f"PolicyError{hostile}": i}},
        "tool_calls": {name + hostile: count for name, count in summary.tool_calls.items()},
        "sampled_tokens_per_s": rng.uniform(5500, 7500),
        "wall_s": rng.uniform(3, 5),
        "faults": summary.faults,
        "token_drift": 0,
        "policy_version": 2 * i,
        "note": hostile,
    }
