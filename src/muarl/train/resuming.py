"""What of a run's spec may differ when it is resumed, and what may not.

A resumed run must come to what it would have come to, had it been begun as it is now. So its file may
say otherwise how the run is carried out: with what threads, limits, patience and endpoints. It may not
say otherwise what is played, by what model, and what is learned from it; but there may be more
iterations, or fewer, as long as those made are the ones that the new number begins with too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from muarl.spec import RunSpec
from muarl.world import Change

_HOW = (
    "domain",  # where it is; whether it is the same is seen by its content
    "threads",
    "model.device",
    "checkpoint.*",
    "sinks*",
    *(
        f"{whose}grpo.max_{what}"
        for whose in ("", "user_model.")
        for what in ("mismatch", "skipped")
    ),
    *(f"engine.vllm_server.{key}" for key in ("endpoints*", "api_key_env", "weights_dir")),
    *(f"engine.vllm_server.{key}" for key in ("timeout_s", "sync_timeout_s", "trainer_address")),
    *(f"user_model.engine.vllm_server.{key}" for key in ("endpoints*", "api_key_env")),
    *(f"rollout.{key}" for key in ("concurrency", "at_once.*", "deadline_s", "message_s")),
    *(f"rollout.{key}" for key in ("reply_s", "attempts", "retry_wait_s", "max_fault_rate")),
    *(f"user.{key}" for key in ("llm.base_url", "llm.api_key_env", "llm.timeout_s")),
    *(f"user.pool.*.user.{key}" for key in ("llm.base_url", "llm.api_key_env", "llm.timeout_s")),
)
"""Paths of what a spec says of how a run is carried out; `*` stands for anything."""

_ITERATIONS = "grpo.iterations"


def not_allowed(
    changes: Iterable[Change], before: RunSpec, now: RunSpec, lines: Iterable[Mapping[str, Any]]
) -> list[str]:
    """What a resumed run may not have changed, in words.

    Args:
        changes: What differs between the specs.
        before: The spec that the run was begun with.
        now: The one it is to go on with.
        lines: The metrics so far.
    """
    found: list[str] = []
    for change in changes:
        if any(fnmatchcase(change.path, pattern) for pattern in _HOW):
            continue
        why = _iterations(before, now, lines) if change.path == _ITERATIONS else ""
        if change.path != _ITERATIONS or why:
            found.append(f"{change}{why}")
    return found


def _iterations(before: RunSpec, now: RunSpec, lines: Iterable[Mapping[str, Any]]) -> str:
    """Why the number of iterations may not be another; "" if it may."""
    assert before.grpo is not None
    assert now.grpo is not None
    # A checkpoint may be one ahead of the metrics.
    made = max((line["iteration"] + 1 for line in lines if line["kind"] == "iteration"), default=0)
    old, new = before.grpo.iterations, now.grpo.iterations
    if made >= old:
        return (
            " (all were made, and what came of them was evaluated; a new run can begin with this "
            "one's weights: `--out <another folder> --set model.path=<its folder>/model --set "
            f"cold_start=null --set rollout.max_tokens={now.rollout.max_tokens} --set "
            f"grpo.lr={now.grpo.lr:g}`)"
        )
    if new < made + 1:
        return f" ({made} were made)"
    decay = before.grpo.lr_decay_iterations
    if decay and made and made > min(old, new) - 1 - decay:
        return (
            f" (those made had learning rates that depend on their number, since "
            f"lr_decay_iterations is {decay})"
        )
    return ""
