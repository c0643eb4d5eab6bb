"""A user without model and script: any domain can be tried out with her."""

from __future__ import annotations

import pytest

from muarl.domain import load_domain
from muarl.messages import Message
from muarl.spec.user import TellerUserSpec, UserSpec
from muarl.testing import play_agents
from muarl.user.fixed import teller


class Chatty:
    def act(self, history):
        return Message("assistant", "Tell me more.")


@pytest.mark.anyio
async def test_she_tells_the_goal_answers_as_often_as_told_and_leaves():
    user = teller("Cancel W1.", answers=1)
    opening, first, second = await user.open(), await user.reply("?"), await user.reply("?")
    assert opening.text == "Cancel W1."
    assert (first.stop, second.stop, second.text) == (False, True, "")
    assert first.text


@pytest.mark.anyio
async def test_she_plays_a_domain_that_has_no_script(tmp_path):
    (tmp_path / "domain.yaml").write_text(
        "version: 1\nid: bare\nsummary: s\nrules: r\ntools: {python: 'tools.py:serve'}\nworld: {data: {}}\n"
        "personas: {plain: {style: s}}\nreward: [{gold_world: true}]\n"
    )
    (tmp_path / "tasks.yaml").write_text(
        "version: 1\ndomain: bare\ntasks: [{id: one, goal: Say hello., gold: []}]\n"
    )
    (tmp_path / "tools.py").write_text(
        "from mcp.server import MCPServer\n\n\ndef serve(world):\n    return MCPServer('bare')\n"
    )
    domain = load_domain(tmp_path)
    (episode,) = await play_agents(
        domain,
        domain.tasks("train"),
        lambda _task, _rng: Chatty(),
        user=UserSpec(teller=TellerUserSpec(answers=2)),
    )
    assert (episode.outcome.value, episode.opening.text) == ("completed", "Say hello.")
    assert len(episode.turns) == 3
