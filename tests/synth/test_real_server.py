"""Pipeline two over a published MCP server: its calls really run, and replay on a fresh one."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from test_third_party_servers import published

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from synth_real_mcp import measure


def test_dialogues_over_a_published_server_are_verified_by_replay() -> None:
    """Two of benchmarks/synth_real_mcp.py."""
    published("contacts")  # or the test is skipped
    found = anyio.run(measure, 2, 1)
    assert (found["dialogues"], found["replay_verified"], found["kept"]) == (2, 2, 2)
