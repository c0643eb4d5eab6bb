"""Spans: one for each group, dialogue, policy message, tool call and user reply, rightly nested."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import anyio
import pytest
from dialogue_kit import write_notes
from observed_run import SCRIPT, observed_round, says
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from muarl.domain import Domain
from muarl.errors import PolicyError
from muarl.observe import Observation
from muarl.observe import collector as collector_module
from muarl.observe.spans import Spans
from muarl.policy import GenerateRequest, Generation
from muarl.record import EpisodeKey
from muarl.scheduler import EpisodePlan, Group
from muarl.testing import build_episode, build_key

pytestmark = pytest.mark.anyio


class Down:
    policy_version = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        raise PolicyError("http://me:pw@host did not answer")


class Waits:
    policy_version = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        await anyio.sleep_forever()
        raise AssertionError


@pytest.fixture
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


class Collected:
    """Spans over a memory exporter."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    @property
    def count(self) -> Counter[str]:
        return Counter(span.name for span in self._exporter.get_finished_spans())


def about(span: ReadableSpan) -> dict[str, Any]:
    return {
        name.removeprefix("muarl."): value
        for name, value in (span.attributes or {}).items()
        if name.startswith("muarl.")
    }


async def test_every_group_dialogue_message_call_and_reply_is_one_span_within_its_own(
    domain: Domain,
) -> None:
    collected = Collected()
    with Spans(collected.provider) as spans:
        # The counters around and below change nothing of it.
        await observed_round(domain, Observation(spans))
    assert collected.count == {
        "group": 2,
        "dialogue": 4,
        "policy message": 16,
        "tool call": 8,
        "user reply": 12,
    }
    groups = {span.context.span_id: span for span in collected.named("group")}
    dialogues = {span.context.span_id: span for span in collected.named("dialogue")}
    for span in dialogues.values():
        group = groups[span.parent.span_id]
        assert about(span)["episode"].startswith(about(group)["group"] + "/")
        assert span.context.trace_id == group.context.trace_id
    turns: dict[int, list[int]] = {}
    for name in ("policy message", "tool call", "user reply"):
        for span in collected.named(name):
            dialogue = dialogues[span.parent.span_id]
            assert dialogue.start_time <= span.start_time <= span.end_time <= dialogue.end_time
            if name == "policy message":
                turns.setdefault(span.parent.span_id, []).append(about(span)["turn"])
    assert list(turns.values()) == [[0, 1, 2, 3]] * 4
    assert len({group.context.trace_id for group in groups.values()}) == 2


async def test_attributes_say_in_our_words_what_happened_and_not_what_was_said(
    domain: Domain,
) -> None:
    collected = Collected()
    with Spans(collected.provider) as spans:
        await observed_round(domain, spans, num_tasks=1, group_size=1)
    (group,), (dialogue,) = collected.named("group"), collected.named("dialogue")
    assert about(group) == {
        "phase": "train",
        "iteration": 3,
        "task": "note-0",
        "group": "train/3/note-0",
        "episodes": 1,
        "faults": 0,
        "reward_mean": 1.0,
    }
    sampled = [about(span)["sampled_tokens"] for span in collected.named("policy message")]
    wanted = {
        "episode": "train/3/note-0/0",
        "attempt": 1,
        "persona": "plain",
        "outcome": "completed",
        "turns": 4,
        "sampled_tokens": sum(sampled),
        "policy_version": 0,
        "reward": 1.0,
        "retried": False,
    }
    assert wanted.items() <= about(dialogue).items()
    calls = [about(span) for span in collected.named("tool call")]
    assert calls == [{"tool": "put", "is_error": False}, {"tool": "get", "is_error": True}]
    replies = [(about(span)["act"], about(span)["stop"]) for span in collected.named("user reply")]
    assert replies == [("", False), ("", False), ("stop", True)]
    texts = [
        str(value)
        for s in ("dialogue", "policy message")
        for v in collected.named(s)
        for value in (v.attributes or {}).values()
    ]
    assert not any("Shall I" in text for text in texts)


async def test_a_fault_is_an_error_on_its_message_and_its_dialogue_without_secrets(
    domain: Domain,
) -> None:
    def policy_for(_task: object, key: EpisodeKey) -> Any:
        return Down() if key.sample else says(*SCRIPT)

    collected = Collected()
    with Spans(collected.provider) as spans:
        await observed_round(domain, spans, num_tasks=1, policy_for=policy_for)
    assert collected.count["dialogue"] == 3, "a second attempt is a span of its own"
    failed = [s for s in collected.named("dialogue") if s.status.status_code is StatusCode.ERROR]
    assert [about(span)["attempt"] for span in failed] == [1, 2]
    assert [about(span)["retried"] for span in failed] == [True, False]
    messages = [
        span
        for span in collected.named("policy message")
        if span.status.status_code is StatusCode.ERROR
    ]
    for span in [*failed, *messages]:
        assert about(span)["fault"] == "PolicyError"
        assert span.status.description.startswith("http://***@host did not answer")
        assert span.events == ()
    assert len(messages) == 2


async def test_what_is_broken_off_ends_and_says_so(domain: Domain) -> None:
    collected = Collected()
    with anyio.CancelScope() as everything, Spans(collected.provider) as spans:
        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await anyio.wait_all_tasks_blocked()
                everything.cancel()

            tasks.start_soon(end)
            await observed_round(domain, spans, policy_for=lambda _t, _k: Waits())
    assert collected.count == {
        "group": 2,
        "dialogue": 4,
        "policy message": 4,
        "user reply": 4,
    }
    for name in ("group", "dialogue"):
        assert all(about(span)["cut"] for span in collected.named(name))


async def test_a_group_of_an_earlier_run_is_no_span() -> None:
    collected = Collected()
    episode = build_episode()
    with Spans(collected.provider) as spans:
        spans.group_whole(Group(episode.key.group, (episode,)))
    assert not collected.count


def test_nothing_of_opentelemetry_is_loaded_unless_asked_for() -> None:
    code = (
        "import sys, muarl.observe, muarl.cli.train, muarl.cli.rollout, muarl.cli.eval; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_collector_that_went_away_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector_module, "_PATIENCE_S", 0.2)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with collector_module.collector() as provider, Spans(provider) as spans:
            spans.attempt_started(EpisodePlan(build_key()))
            begun = time.monotonic()
        assert time.monotonic() - begun < 20.0, "the SDK would wait for half a minute"
    assert not [thread for thread in threading.enumerate() if "Otel" in thread.name]
