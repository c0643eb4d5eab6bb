"""A log of inspect_ai is opened by inspect_ai itself."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muarl.data.export.inspect_log import inspect_header, inspect_samples, write_inspect
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, EpisodeHead, EpisodeKey, Outcome, PredicateResult, Turn, Usage
from muarl.record.codec import decode_head, encode_episode
from muarl.testing import build_episode

OWN = Path(sys.prefix) / "inspect" / "bin" / "python"
"""Where `scripts/install-inspect.sh` puts it: it has many dependencies that muarl has no use for."""

READ = """\
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_samples
log = read_eval_log(sys.argv[1])
samples = list(read_eval_log_samples(sys.argv[1], all_samples_required=False))
print(json.dumps({
    "status": log.status,
    "model": log.eval.model,
    "scores": {s.name: {m: v.value for m, v in s.metrics.items()} for s in log.results.scores},
    "samples": [
        {
            "id": s.id,
            "epoch": s.epoch,
            "roles": [m.role for m in s.messages],
            "calls": [
                [c.function, c.arguments, c.parse_error]
                for m in s.messages if m.role == "assistant" for c in m.tool_calls or []
            ],
            "errors": [m.error.message for m in s.messages if m.role == "tool" and m.error],
            "scores": {name: score.value for name, score in (s.scores or {}).items()},
            "failure": s.metadata["failure"],
            "error": s.error.message if s.error else None,
            "usage": s.output.usage.total_tokens,
        }
        for s in samples
    ],
}))
"""


def episodes() -> list[Episode]:
    calls = (
        ToolCall("c1", "look", {"order_id": "W1"}),
        ToolCall("c2", "cancel", error="arguments are no JSON", raw="{broken"),
    )
    results = [
        ToolResult("c1", "look", "pending"),
        ToolResult("c2", "cancel", "arguments are no JSON", is_error=True),
    ]
    usage = Usage("some-model", 100, 7)
    called = Turn(Message("assistant", "", calls), 0, 0, 0, "stop", 0, results, usage=usage)
    metric = PredicateResult("confirmed", None, "wrote nothing")

    def key(task: str, sample: int) -> EpisodeKey:
        return EpisodeKey(0, "grid:other:own", 0, task, sample)

    return [
        build_episode(key("a", 0), reward=1.0),
        build_episode(key("a", 1), reward=0.5, turns=[called], metrics=[metric], system="Be kind."),
        build_episode(key("b", 0), outcome=Outcome.INFRA_FAULT),
    ]


def written(path: Path) -> list[EpisodeHead]:
    heads = [decode_head(encode_episode(episode)) for episode in episodes()]
    header = inspect_header(
        heads, phase="grid:other:own", model="some-model", created=datetime(2026, 1, 2, tzinfo=UTC)
    )
    assert write_inspect(header, inspect_samples(episodes()), path) == 3
    return heads


def test_a_log_is_json_with_a_sample_for_each_episode(tmp_path: Path) -> None:
    written(tmp_path / "log.json")
    log = json.loads((tmp_path / "log.json").read_text())
    assert [(s["id"], s["epoch"]) for s in log["samples"]] == [("a", 1), ("a", 2), ("b", 1)]
    assert log["results"]["completed_samples"] == 2
    success, reward = log["results"]["scores"]
    assert (success["metrics"]["mean"]["value"], reward["metrics"]["mean"]["value"]) == (0.5, 0.75)
    assert success["unscored_samples"] == 1


def interpreter() -> str | None:
    """A Python that has inspect_ai."""
    if importlib.util.find_spec("inspect_ai") is not None:
        return sys.executable
    named = os.environ.get("MUARL_INSPECT_PYTHON") or (str(OWN) if OWN.exists() else None)
    return named


def test_inspect_ai_opens_it(tmp_path: Path) -> None:
    python = interpreter()
    if python is None:
        why = "inspect_ai is not installed: scripts/install-inspect.sh .venv"
        if os.environ.get("MUARL_REQUIRE_INSPECT"):
            pytest.fail(why)
        pytest.skip(why)
    written(tmp_path / "log.json")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    read = subprocess.run(
        [python, "-c", READ, str(tmp_path / "log.json")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    found: dict[str, Any] = json.loads(read.stdout)
    assert (found["status"], found["model"]) == ("success", "some-model")
    assert found["scores"]["success"]["mean"] == 0.5
    first, second, third = found["samples"]
    assert first["scores"] == {"success": "C", "reward": 1.0}
    assert second["roles"] == ["system", "user", "assistant", "tool", "tool"]
    assert second["calls"] == [
        ["look", {"order_id": "W1"}, None],
        ["cancel", {}, "arguments are no JSON: {broken"],
    ]
    assert second["errors"] == ["arguments are no JSON"]
    assert second["scores"] == {"success": "I", "reward": 0.5, "confirmed": "N"}
    assert (second["failure"], second["usage"]) == ("invented_fact", 107)
    assert third["scores"] == {}
    assert third["error"] is not None
