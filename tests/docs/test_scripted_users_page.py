"""The dialogue on the page of scripted users is what its YAML makes of the policy's messages."""

from __future__ import annotations

import random
import re

import pytest
from documents import blocks
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from muarl.spec import PersonaSpec, TasksFile, UserScriptSpec
from muarl.user.scripted import ScriptedUser

PAGE = [block for block in blocks() if block.place.startswith("scripted-users.md")]
LINE = re.compile(r"^(user|agent) {3,4}(.*?)(?: {3,}(\S+))?$")


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_dialogue_shown_is_the_one_that_is_had() -> None:
    tasks, language = (YAML(typ="safe", pure=True).load(block.text) for block in PAGE[:2])
    (task,) = TasksFile.model_validate(tasks).tasks
    personas = TypeAdapter(dict[str, PersonaSpec]).validate_python(language["personas"])
    script = UserScriptSpec.model_validate(language["user"])
    assert task.user is not None
    user = ScriptedUser(script, personas["fickle"], task.user, task.split, random.Random(0))

    (shown,) = [block.text for block in PAGE if block.language == "text"]
    reply = await user.open()
    for line in shown.splitlines():
        match = LINE.match(line)
        assert match, line
        who, text, act = match.groups()
        if who == "agent":
            assert not reply.stop
            reply = await user.reply(text)
        else:
            assert (reply.text, reply.act) == (text, act)
    assert reply.stop
