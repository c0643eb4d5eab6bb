"""What no engine can have sampled is found out, whatever it is."""

from __future__ import annotations

from typing import Any, cast

import pytest

from muarl.messages import Message, ToolCall
from muarl.policy import GenerateRequest, Generation, VersionSwitch
from muarl.policy.flaws import flaw_of
from muarl.record import Usage

REQUEST = GenerateRequest(
    prompt_ids=[1], dialogue="d", seed=0, max_tokens=4, temperature=1.0, stop_token_ids=(3,)
)
SOUND: dict[str, Any] = {
    "token_ids": [5, 6, 3],
    "logprobs": [-0.5, 0, -1.0],
    "finish_reason": "stop",
    "policy_version": 2,
    "switches": (VersionSwitch(1, 3), VersionSwitch(2, 4)),
}


def calls(argument: Any) -> Message:
    return Message("assistant", "", (ToolCall("call_1", "put", {"key": argument}),))


def test_a_sound_message_has_no_flaw() -> None:
    assert flaw_of(Generation(**SOUND), REQUEST, 100) == ""


def test_a_message_that_somebody_wrote_has_no_flaw() -> None:
    written = SOUND | {"message": calls(float("nan")), "usage": Usage("theirs", 3)}
    assert flaw_of(Generation(**written), REQUEST, 100) == ""


def test_a_message_that_fills_its_cap_has_no_flaw() -> None:
    assert flaw_of(Generation([5] * 4, [-0.1] * 4, "length", 2), REQUEST, 100) == ""


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [
        ({"token_ids": None}, "not in a list"),
        ({"token_ids": [], "logprobs": []}, "at least one"),
        ({"logprobs": [-1.0]}, "3 tokens with 1 log-probs"),
        ({"token_ids": [5.0, 6.0, 3]}, "not whole numbers"),
        ({"token_ids": [True, 6, 3]}, "not whole numbers"),
        ({"token_ids": [5, 99_999, 3]}, "the vocabulary ends"),
        ({"logprobs": [None, -1.0, -1.0]}, "not finite"),
        ({"logprobs": ["-1", -1.0, -1.0]}, "not finite"),
        ({"logprobs": [0.5, -1.0, -1.0]}, "above 1"),
        ({"token_ids": [3, 6, 3]}, "went on sampling"),
        ({"finish_reason": "abort"}, "expected 'stop' or 'length'"),
        ({"finish_reason": "length"}, "though its last token is a stop token"),
        (
            {"finish_reason": "length", "token_ids": [5, 6, 7]},
            "'length' after 3 tokens; asked for 4",
        ),
        ({"policy_version": 2**70}, "versions"),
        ({"policy_version": None}, "versions"),
        ({"switches": (VersionSwitch(999, 3),)}, "changed at tokens [999] of 3"),
        ({"switches": (VersionSwitch(2, 3), VersionSwitch(1, 4))}, "changed at tokens [2, 1]"),
        ({"switches": (VersionSwitch(-3, 3),)}, "changed at tokens [-3]"),
        (
            {"message": Message("assistant", cast("str", None))},
            "Expected `str`, got `None` - at `$.content`",
        ),
        ({"message": {"role": "assistant"}}, "returned a message that is none: it is a dict"),
        ({"message": Message("user", "hi")}, "returned a message of role 'user'"),
        ({"message": calls(object())}, "returned a message that is none: "),
        (
            {"usage": Usage(cast("str", 5))},
            "returned a usage that is none: Expected `str`, got `int`",
        ),
    ],
)
def test_what_cannot_have_been_sampled_is_named(changes: dict[str, Any], flaw: str) -> None:
    assert flaw in flaw_of(Generation(**SOUND | changes), REQUEST, 100)


def test_what_is_no_generation_at_all_is_named() -> None:
    nothing: Any = None
    assert flaw_of(nothing, REQUEST, 100) == "returned NoneType, not a Generation"
