"""A small shop on disk, with everything a run needs, and the command line run on it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.cli import main

SOURCE = Path(__file__).resolve().parents[2] / "src"

RUN = """\
version: 1
domain: domain.yaml
threads: 1
model:
  tiny: {vocab_size: 400, hidden_size: 32, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16, ffn_size: 64}
rollout: {concurrency: 64, max_tokens: 16, context_tokens: 1024, attempts: 2}
grpo: {iterations: 1, tasks_per_iteration: 1}
eval: {episodes: 70, temperatures: [1.0]}
"""

HELD_OUT = """\
version: 1
domain: shop
tasks:
  - id: cancel-2
    goal: Cancel W2.
    split: held_out
    personas: [plain]
    world: {orders: {W2: {status: pending}}}
    user:
      requests:
        - ask: cancel
          facts: [{id: order_id, value: W2}]
    gold:
      - tool: cancel
        arguments: {order_id: W2}
"""


def write_shop(folder: Path) -> Path:
    """A sound domain with two splits and an expert, and a run file; gives the run file."""
    write_all(folder)
    spoil(folder / "domain.yaml", "[tasks.yaml]", "[tasks.yaml, held_out.yaml]")
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    (folder / "held_out.yaml").write_text(HELD_OUT)
    (folder / "run.yaml").write_text(RUN)
    return folder / "run.yaml"


def serve_by(folder: Path, command: Sequence[str], **settings: float) -> None:
    """Let the shop's tools be those of a process, `put` and `get`, instead of its own."""
    lines = "".join(f"  {name}: {value}\n" for name, value in settings.items())
    spoil(
        folder / "domain.yaml",
        "  python: tools.py:serve\nwrites: [cancel]",
        f"  command: {json.dumps(list(command))}\n  world_resource: world://state\n{lines}"
        "writes: [put]",
    )
    for name in ("tasks.yaml", "held_out.yaml"):
        spoil(folder / name, "tool: cancel", "tool: put")
        text = (folder / name).read_text()
        start = text.index("arguments:")
        (folder / name).write_text(text[:start] + "arguments: {key: done, value: yes}\n")
    expert = folder / "expert.py"
    spoil(expert, '"cancel"', '"put"')
    spoil(expert, '{"order_id": self.order}', '{"key": "done", "value": "yes"}')


@dataclass
class Ending:
    """How a command ended.

    Attributes:
        code: Exit code.
        out: What it printed.
        lines: Lines of stderr that are not its progress.
    """

    code: int
    out: str
    lines: list[str]

    def refuses(self, code: int, *words: str, lines: int = 1) -> None:
        """One message, in so many lines, that holds the words; the exit code; no traceback."""
        said = "\n".join(self.lines)
        assert "Traceback" not in said
        assert self.code == code, said
        assert len(self.lines) == lines, said
        for word in words:
            assert word in said


def _without_progress(err: str) -> list[str]:
    return [line for line in err.splitlines() if not line.startswith("[")]


class InProcess:
    """Runs the command line in this process: fast, since torch is imported once."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: object) -> Ending:
        self._capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capfd.readouterr()
        return Ending(code, captured.out, _without_progress(captured.err))


def in_a_new_process(*arguments: object, env: Mapping[str, str] | None = None) -> Ending:
    """`python -m muarl.cli`, as a user runs it."""
    path = os.pathsep.join(filter(None, [(env or {}).get("PYTHONPATH"), str(SOURCE)]))
    done = subprocess.run(
        [sys.executable, "-m", "muarl.cli", *map(str, arguments)],
        env={**os.environ, **(env or {}), "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return Ending(done.returncode, done.stdout, _without_progress(done.stderr))


def shown(command: Sequence[str]) -> str:
    """How messages name a tool server's command."""
    return f"tool server `{shlex.join(command)}`"
