"""The checker's rules, on a small entry of one class without tables."""

from __future__ import annotations

import pytest

from muarl.compat.bfcl.checker import judged
from muarl.compat.bfcl.sandbox import Sandbox, initial_state
from muarl.compat.bfcl.upstream import Upstream
from muarl.world import World

FILES = {"root": {"w": {"type": "directory", "contents": {"a": {"type": "file", "content": "x"}}}}}
GOLD = [["cat('a')"], [], ["touch('b')"]]


class NoFiles:
    def json(self, path):
        return {}


UPSTREAM = Upstream(NoFiles(), "bfcl/v4")


def fresh():
    config = {"GorillaFileSystem": FILES}
    state = initial_state(["GorillaFileSystem"], config, UPSTREAM, long=False)
    return Sandbox(World(state), UPSTREAM, "v4")


@pytest.mark.parametrize(
    ("model", "error", "turn"),
    [
        ([[["cat('a')"]], [], [["touch('b')"]]], None, None),
        ([[["ls()"], ["cat('a')"]], [["ls()"]], [["touch('b')"]]], None, None),
        ([[["cat('a')"]], [], []], "multi_turn:empty_turn_model_response", 2),
        ([[["ls()"]], [], [["touch('b')"]]], "multi_turn:execution_response_mismatch", 0),
        (
            [[["cat('a')"]], [["touch('c')"]], [["touch('b')"]]],
            "multi_turn:instance_state_mismatch",
            2,
        ),
        ([[["cat('a')"]], []], "multi_turn:force_terminated", None),
    ],
)
def test_a_dialogue_is_judged_turn_by_turn(model, error, turn):
    verdict = judged(model, GOLD, fresh)
    assert (verdict.valid, verdict.error, verdict.turn) == (error is None, error, turn)


def test_what_is_private_is_not_compared():
    steps = [[["cat('a')"]], [["mkdir('d')"], ["cd('d')"], ["cd('..')"], ["rmdir('d')"]]]
    assert judged(steps, GOLD[:2], fresh).valid


def test_a_directory_copied_into_itself_ends_no_checker():
    gold = [["mkdir('d')"], ["ls()"]]
    model = [[["mkdir('d')"]], [["cp('d', 'd')", "find()", "du()", "ls()"]]]
    assert judged(model, gold, fresh).error == "multi_turn:instance_state_mismatch"


def test_acting_without_need_is_told_and_not_punished():
    verdict = judged([[["cat('a')"]], [["ls()"]], [["touch('b')"]]], GOLD, fresh)
    assert verdict.valid
    assert verdict.acted_without_need
