"""What a server may answer, and that nothing it says becomes a wrong message."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.errors import SetupError
from muarl.http.retry import PassingFailure
from muarl.policy import EngineLoad, VersionSwitch
from muarl.policy.vllm_load import EngineWatch, read_load
from muarl.policy.vllm_versions import check_version, split_versions
from muarl.policy.vllm_wire import Sampled, read_sampled, read_scores
from muarl.policy.weight_labels import WeightLabels


def reply(**changes: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "token_ids": [7, 8],
        "logprobs": {"content": [{"token_id": 7, "logprob": -1.5}, {"token_id": 8, "logprob": 0}]},
        "finish_reason": "stop",
        "weight_versions": [{"version": "default", "start": 0, "end": 2}],
    }
    return {"request_id": "r", "choices": [choice | changes], "prompt_logprobs": None}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_message_is_read() -> None:
    body = encoded(reply())
    assert read_sampled(body, "muarl-1") == Sampled(
        [7, 8], [-1.5, 0.0], "stop", [("default", 0, 2)]
    )
    assert read_sampled(encoded(reply(weight_versions=None)), "muarl-1").spans == []


@pytest.mark.parametrize(
    ("answers_to", "is_ours"),
    [
        ("generate-tokens-muarl-1", True),
        ("generate-tokens-muarl-2", False),
        ("a proxy's own name", True),
    ],
)
def test_an_answer_to_another_of_our_requests_is_none(answers_to: str, is_ours: bool) -> None:
    body = encoded(reply() | {"request_id": answers_to})
    with nullcontext() if is_ours else pytest.raises(PassingFailure, match="another request"):
        read_sampled(body, "muarl-1")


@pytest.mark.parametrize(
    "changes",
    [
        {"token_ids": [7]},
        {"token_ids": None},
        {"logprobs": None},
        {"logprobs": {"content": None}},
        {"finish_reason": "abort"},
        {"finish_reason": None},
        {"weight_versions": [{"version": "a", "start": 0, "end": 1}]},
        {"weight_versions": [{"version": "a", "start": 1, "end": 2}]},
        {
            "weight_versions": [
                {"version": "a", "start": 0, "end": 5},
                {"version": "b", "start": 5, "end": 2},
            ]
        },
    ],
)
def test_half_a_message_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(PassingFailure):
        read_sampled(encoded(reply(**changes)), "muarl-1")


@given(
    st.one_of(
        st.binary(max_size=60),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["choices", "token_ids", "logprobs", "content", "logprob"]),
                    inner,
                )
            ),
            max_leaves=8,
        ).map(encoded),
    )
)
def test_garbage_is_a_passing_failure_whatever_it_is(body: bytes) -> None:
    for read in (read_sampled, read_scores):
        with pytest.raises(PassingFailure):
            read(body, "muarl-1")


def test_scores_leave_out_the_first_token() -> None:
    scored = [None, {"5": {"logprob": -2.0}}, {"6": {"logprob": -3.0, "rank": 4}}]
    assert read_scores(encoded(reply() | {"prompt_logprobs": scored}), "muarl-1") == [-2.0, -3.0]
    with pytest.raises(PassingFailure):
        read_scores(encoded(reply() | {"prompt_logprobs": [None, None]}), "muarl-1")


@given(st.lists(st.integers(0, 4), max_size=6))
def test_switches_tell_every_tokens_version(lengths: list[int]) -> None:
    spans, tokens = [], []
    for version, length in enumerate(lengths):
        spans.append((str(version), len(tokens), len(tokens) + length))
        tokens += [version] * length
    first, switches = split_versions(spans, int, unlabelled=99)
    told = [first] * len(tokens)
    for switch in switches:
        assert isinstance(switch, VersionSwitch)
        told[switch.start :] = [switch.policy_version] * (len(tokens) - switch.start)
    assert told == tokens
    assert tokens or first == 99


def test_labels_of_old_are_not_enough_for_what_was_sent_after_a_sync() -> None:
    labels = WeightLabels()
    labels.found("default", 3)
    sent_before = labels.required
    new = labels.issue(4)
    assert labels.is_enough("default", labels.required)
    labels.require(new)
    assert labels.is_enough("default", sent_before)
    assert not labels.is_enough("default", labels.required)
    assert labels.is_enough(new, labels.required)
    assert not labels.is_enough("somebody else's", 0)
    assert (labels.version("default"), labels.version(new)) == (3, 4)
    assert WeightLabels().issue(4) != new


@pytest.mark.parametrize("version", ["0.31.2", "0.9.0", "0.8.5.dev1+gabc"])
def test_a_vllm_that_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(SetupError, match=r"vLLM here is version .*needs 0\.32 or newer"):
        check_version(version, "vLLM here")


@pytest.mark.parametrize(("version", "warns"), [("0.32.0", False), ("0.32.7+cpu", False)])
def test_the_tested_one_is_not_warned_of(
    version: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check_version(version, "vLLM")
    assert bool(caplog.records) is warns


@pytest.mark.parametrize("version", ["0.33.0", "1.0.0rc1", "dev"])
def test_others_are_tried_with_a_warning(version: str, caplog: pytest.LogCaptureFixture) -> None:
    check_version(version, "vLLM")
    assert "muarl was tested with 0.32" in caplog.text


@given(st.binary(max_size=80), st.sampled_from([b"1", b"nan", b"1e999", b"-1", b"1e5x", b""]))
def test_metrics_are_read_or_not_whatever_they_say(noise: bytes, value: bytes) -> None:
    line = b'vllm:num_requests_running{a="b"} ' + value
    load = read_load(noise + b"\n" + line + b"\n" + noise)
    assert load.running in (0, 1)
    assert read_load(b"") == EngineLoad(0, 0, 0.0, 0)
    assert read_load(b"vllm:num_requests_running " + b"9" * 400 + b"\n").running > 0


def test_an_engine_in_process_says_its_load_after_each_step() -> None:
    watch = EngineWatch()
    assert watch.latest() is None
    step = SimpleNamespace(num_running_reqs=3, num_waiting_reqs=2, kv_cache_usage=0.25)
    watch.record(step, SimpleNamespace(num_preempted_reqs=1))
    watch.record(step, SimpleNamespace(num_preempted_reqs=2), engine_idx=1)
    watch.record(None, SimpleNamespace(num_preempted_reqs=4))
    watch.record(SimpleNamespace(**vars(step) | {"kv_cache_usage": 0.75}), None)
    assert watch.latest() == EngineLoad(running=6, waiting=4, kv_use=0.75, preemptions=7)
