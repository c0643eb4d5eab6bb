"""A shop with several orders, an expert, a synthesis file, and dialogues to be spoiled."""

from __future__ import annotations

from pathlib import Path

import msgspec
from spec_files import spoil, write_all

from muarl.record import Episode

ORDERS = ("W1", "W2", "W3", "W4", "W5", "W6")

TASK = """\
  - id: cancel-{n}
    goal: Cancel {order}.
    personas: [plain]
    user:
      requests:
        - ask: cancel
          facts: [{{id: order_id, value: {order}}}]
    gold:
      - tool: cancel
        arguments: {{order_id: {order}}}
"""

SYNTH = """\
version: 1
domain: domain.yaml
dialogues: 6
agent: {expert: {}}
licence: CC-BY-4.0
"""


def write_synth(folder: Path, *more: str) -> Path:
    """The shop with six tasks, and a synthesis file with further lines; gives the file."""
    write_all(folder)
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    orders = "".join(f"      {order}: {{status: pending}}\n" for order in ORDERS)
    spoil(folder / "domain.yaml", "      W1: {status: pending}\n", orders)
    tasks = "".join(TASK.format(n=n, order=order) for n, order in enumerate(ORDERS))
    (folder / "tasks.yaml").write_text(f"version: 1\ndomain: shop\ntasks:\n{tasks}")
    path = folder / "synth.yaml"
    path.write_text(SYNTH + "".join(f"{line}\n" for line in more))
    return path


def own(episode: Episode) -> Episode:
    """The same episode, which may be changed."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(episode), type=Episode)
