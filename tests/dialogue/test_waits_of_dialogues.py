"""Every wait has a name and a deadline; what is shared is limited; effects end the attempts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import DOMAIN, Sampler, TalkingUser, called, ids_of, note_task, renderer
from dialogue_kit import write_notes as write
from pydantic import TypeAdapter

from muarl.domain import Domain, load_domain
from muarl.errors import PolicyError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.policy import EngineLoad, GenerateRequest, Generation, Policy
from muarl.record import Episode, Outcome, UserReply
from muarl.scheduler import EpisodePlan, Limits, Observer
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, load_of
from muarl.scheduler.rounds import bounds, run_round
from muarl.spec.run import AtOnceSpec, RolloutSpec
from muarl.spec.tools import AnyToolsSpec, ToolsSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.testing import run_in_virtual_time
from muarl.tools import ToolServer
from muarl.world import World

TASKS = [note_task(id=f"note-{i}") for i in range(4)]
FOR_EVER = 1e6
PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    return write(tmp_path)


class Speaker:
    """Says its texts in order, each after some seconds; then raises."""

    policy_version = 0

    def __init__(self, *said: tuple[float, str]) -> None:
        self._said = list(said)

    async def generate(self, request: GenerateRequest) -> Generation:
        if not self._said:
            raise PolicyError("the engine died")
        seconds, text = self._said.pop(0)
        await anyio.sleep(seconds)
        ids = [*ids_of(text), request.stop_token_ids[0]]
        return Generation(ids, [-0.1] * len(ids), "stop", 0)


class SlowUser(TalkingUser):
    """Takes her time over each message."""

    def __init__(self, *seconds: float) -> None:
        super().__init__(["hello"] * len(seconds))
        self._seconds = list(seconds)

    async def open(self) -> UserReply:
        await anyio.sleep(self._seconds.pop(0))
        return await super().open()

    async def reply(self, agent_text: str) -> UserReply:
        await anyio.sleep(self._seconds.pop(0))
        return await super().reply(agent_text)


class SlowServer:
    """A tool server without tools of its own; starts, answers and ends as slowly as it is told."""

    def __init__(self, start_s: float = 0.0, call_s: float = 0.0, end_s: float = 0.0) -> None:
        self._seconds = (start_s, call_s, end_s)
        self.calls = self.most_calls = 0
        self.sessions = self.most_sessions = 0

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[SlowServer]:
        self.sessions += 1
        self.most_sessions = max(self.most_sessions, self.sessions)
        await anyio.sleep(self._seconds[0])
        yield self
        await anyio.sleep(self._seconds[2])
        self.sessions -= 1

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return (ToolSpec("put", "", {"type": "object"}),)

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls += 1
        self.most_calls = max(self.most_calls, self.calls)
        try:
            await anyio.sleep(self._seconds[1])
        finally:
            self.calls -= 1
        return ToolResult(call.id, call.name, "ok")


class Seen(Observer):
    """Puts a tool server in place of the domain's, and writes down what it is told."""

    def __init__(self, server: Any = None) -> None:
        self._server = server
        self.told: list[tuple[str, int, float | None]] = []

    def server(self, plan: EpisodePlan, server: ToolServer) -> ToolServer:
        return self._server or server

    def attempt_started(self, plan: EpisodePlan) -> None:
        self.told.append(("started", plan.attempt, None))

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        self.told.append(("ended", plan.attempt, retry_after_s))


class Journal:
    def append(self, episode: Episode) -> None:
        del episode


def play(
    domain: Domain,
    *,
    policy_for: Any = lambda _task, _key: Speaker((0.0, "hello"), (0.0, "hello")),
    user: Any = lambda *_: TalkingUser(["hello", "more"]),
    observer: Seen | None = None,
    dialogues: int = 1,
    **limits: Any,
) -> list[Episode]:
    """The episodes of one round in virtual time."""
    roomy = {"max_tokens": 400, "context_tokens": 8_000, "attempts": 1, "max_fault_rate": 1.0}
    spec = RolloutSpec(**(roomy | limits))
    observer = observer or Seen()
    domain.user = user  # type: ignore[method-assign]
    runner = DialogueRunner(
        domain=domain,
        tasks=TASKS,
        renderer=renderer(),
        limits=spec,
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=policy_for,
        observer=observer,
    )
    keys = episode_keys(TASKS[:1], run_seed=0, phase="p", group_size=dialogues)

    async def main() -> list[Episode]:
        (group,) = await run_round(
            keys, runner, limits=bounds(spec), journal=Journal(), observer=observer
        )
        return list(group.episodes)

    return run_in_virtual_time(main)


STUCK = {
    "policy message 1": {
        "policy_for": lambda _task, _key: Speaker((0.0, "hello"), (FOR_EVER, "hello"))
    },
    "user message 0": {"user": lambda *_: SlowUser(FOR_EVER, 0.0, 0.0)},
    "user message 2": {"user": lambda *_: SlowUser(0.0, 0.0, FOR_EVER)},
    "the start of the tool server": {"observer": lambda: Seen(SlowServer(start_s=FOR_EVER))},
    "the end of the tool session": {"observer": lambda: Seen(SlowServer(end_s=FOR_EVER))},
    "tool call 0.0, 'put'": {
        "observer": lambda: Seen(SlowServer(call_s=FOR_EVER)),
        "policy_for": lambda _task, _key: Speaker((0.0, PUT)),
    },
}


@pytest.mark.parametrize("wait", STUCK)
def test_a_dialogue_past_its_deadline_says_which_wait_of_which_dialogue_it_was(
    domain: Domain, wait: str
) -> None:
    given = {name: make() if name == "observer" else make for name, make in STUCK[wait].items()}
    late = {"deadline_s": 30.0, "message_s": 2 * FOR_EVER, "reply_s": 2 * FOR_EVER}
    (episode,) = play(domain, **given, **late)
    assert episode.outcome is Outcome.INFRA_FAULT
    assert episode.fault == "EpisodeTimeout"
    assert episode.error == f"dialogue did not finish within 30 s (in p/0/note-0/0: {wait})"
    assert episode.cause == "dialogue did not finish within 30 s"


@pytest.mark.parametrize(
    ("wait", "cause"),
    [
        ("policy message 1", "policy message did not finish within 5 s"),
        ("user message 0", "user message did not finish within 7 s"),
        ("user message 2", "user message did not finish within 7 s"),
    ],
)
def test_messages_of_policy_and_user_have_deadlines_of_their_own(
    domain: Domain, wait: str, cause: str
) -> None:
    (episode,) = play(domain, **STUCK[wait], message_s=5.0, reply_s=7.0, deadline_s=100.0)
    assert episode.error == f"{cause} (in p/0/note-0/0: {wait})"
    assert episode.outcome is Outcome.INFRA_FAULT


def test_what_was_said_until_a_deadline_is_kept(domain: Domain) -> None:
    (episode,) = play(domain, **STUCK["policy message 1"], deadline_s=30.0)
    assert [turn.message.content for turn in episode.turns] == ["hello"]
    assert episode.opening.text == "hello"


def test_a_tool_call_past_the_domains_deadline_is_named_too(domain: Domain) -> None:
    (domain.folder / "tools.py").write_text(
        (domain.folder / "tools.py")
        .read_text()
        .replace(
            "async def put(key: str, value: Any) -> str:\n",
            "async def put(key: str, value: Any) -> str:\n        await anyio.sleep(1e6)\n",
        )
        .replace("from typing import Any\n", "from typing import Any\nimport anyio\n")
    )
    (episode,) = play(load_domain(domain.folder), policy_for=lambda *_: Speaker((0.0, PUT)))
    assert re.search(r"did not answer a call of 'put' within 30 s", episode.error or "")
    assert (episode.error or "").endswith("(in p/0/note-0/0: tool call 0.0, 'put')")


def test_a_fault_says_where_and_the_fuse_and_reports_count_it_by_its_cause(domain: Domain) -> None:
    episodes = play(domain, policy_for=lambda *_: Speaker((0.0, "hello")), dialogues=3)
    assert [e.error for e in episodes] == [
        f"the engine died (in p/0/note-0/{i}: policy message 1)" for i in range(3)
    ]
    assert {e.cause for e in episodes} == {"the engine died"}


# --- how many at once -----------------------------------------------------------------------------


class Counting:
    """Policies and users that count how many of them are at work."""

    def __init__(self) -> None:
        self.now = {"messages": 0, "replies": 0}
        self.most = {"messages": 0, "replies": 0}

    async def work(self, kind: str) -> None:
        self.now[kind] += 1
        self.most[kind] = max(self.most[kind], self.now[kind])
        await anyio.sleep(1.0)
        self.now[kind] -= 1


@pytest.mark.parametrize("limit", [{"messages": 2}, {"replies": 3}, {"calls": 1}, {}])
def test_messages_replies_and_calls_have_limits_of_their_own(
    domain: Domain, limit: dict[str, int]
) -> None:
    counting = Counting()

    class CountedUser(TalkingUser):
        async def reply(self, agent_text: str) -> UserReply:
            await counting.work("replies")
            return await super().reply(agent_text)

    class CountedSpeaker(Speaker):
        async def generate(self, request: GenerateRequest) -> Generation:
            await counting.work("messages")
            return await super().generate(request)

    server = SlowServer(call_s=1.0)
    episodes = play(
        domain,
        policy_for=lambda *_: CountedSpeaker((0.0, PUT), (0.0, "hello"), (0.0, "hello")),
        user=lambda *_: CountedUser(["hello", "more"]),
        observer=Seen(server),
        dialogues=8,
        at_once=AtOnceSpec(**limit),
    )
    assert all(episode.outcome is Outcome.COMPLETED for episode in episodes)
    most = {**counting.most, "calls": server.most_calls}
    assert {kind: most[kind] for kind in limit} == limit
    if not limit:
        assert most == {"messages": 8, "replies": 8, "calls": 8}


def test_waiting_for_a_place_has_a_name_and_counts_for_the_dialogue_alone(domain: Domain) -> None:
    episodes = play(
        domain,
        policy_for=lambda *_: Speaker((4.0, "hello"), (4.0, "hello")),
        dialogues=3,
        message_s=5.0,
        deadline_s=15.0,
        at_once=AtOnceSpec(messages=1),
    )
    late = [episode.error for episode in episodes if episode.outcome.is_fault]
    assert late
    assert "message did not finish within 5 s" not in str(late)
    assert any("a place for policy message 1" in str(error) for error in late)


def test_sessions_bound_the_dialogues_and_processes_do_unless_told(tmp_path: Path) -> None:
    def in_memory(**limits: Any) -> DialogueRunner:
        return DialogueRunner(
            domain=write(tmp_path),
            tasks=TASKS,
            renderer=renderer(),
            limits=RolloutSpec(**limits),
            user=UserSpec(scripted=ScriptedUserSpec()),
            policy_for=lambda *_: Speaker(),
        )

    assert in_memory().max_live is None
    assert in_memory(at_once=AtOnceSpec(sessions=5)).max_live == 5
    command = DOMAIN.replace("{python: tools.py:serve, stateless: true}", "{command: [serve]}")
    folder = tmp_path / "command"
    folder.mkdir()
    (folder / "domain.yaml").write_text(command)
    (folder / "tasks.yaml").write_text((tmp_path / "tasks.yaml").read_text())
    runner = in_memory()
    runner._domain = load_domain(folder)
    assert runner.max_live == 32


def test_a_dialogue_that_could_have_no_session_is_not_begun_and_its_deadline_does_not_pass(
    domain: Domain,
) -> None:
    server = domain.server = SlowServer(start_s=4.0, end_s=4.0)  # type: ignore[assignment]
    limits = {"at_once": AtOnceSpec(sessions=2), "deadline_s": 20.0, "concurrency": 8}
    episodes = play(domain, dialogues=8, **limits)
    assert not [episode.error for episode in episodes if episode.outcome.is_fault]
    assert server.most_sessions == 2, "the gold world's sessions count too"


# --- effects --------------------------------------------------------------------------------------


def external(domain: Domain) -> Domain:
    path = domain.folder / "domain.yaml"
    path.write_text(DOMAIN.replace("stateless: true", "stateless: true, external: true"))
    return load_domain(domain.folder)


def attempts_of(domain: Domain, policy_for: Any, **more: Any) -> tuple[Episode, int]:
    observer = Seen(more.pop("server", None))
    (episode,) = play(domain, policy_for=policy_for, observer=observer, attempts=3, **more)
    return episode, sum(what == "started" for what, _, _ in observer.told)


def test_writes_to_a_world_in_memory_are_no_effect_and_the_dialogue_is_tried_again(
    domain: Domain,
) -> None:
    episode, attempts = attempts_of(domain, lambda *_: Speaker((0.0, PUT)))
    assert attempts == 3
    assert episode.effect is None


def test_after_a_write_outside_its_world_a_dialogue_is_not_tried_again(domain: Domain) -> None:
    episode, attempts = attempts_of(external(domain), lambda *_: Speaker((0.0, PUT)))
    assert attempts == 1
    assert (episode.outcome, episode.effect) == (Outcome.INFRA_FAULT, "put")


def test_a_write_that_never_answers_may_have_been_carried_out(domain: Domain) -> None:
    episode, attempts = attempts_of(
        external(domain),
        lambda *_: Speaker((0.0, PUT)),
        server=SlowServer(call_s=FOR_EVER),
        deadline_s=20.0,
    )
    assert attempts == 1
    assert episode.effect == "put"


@pytest.mark.parametrize("said", ["hello", called('{"name": "get", "arguments": {"key": "old"}}')])
def test_before_its_first_write_a_dialogue_of_an_external_server_is_tried_again(
    domain: Domain, said: str
) -> None:
    episode, attempts = attempts_of(external(domain), lambda *_: Speaker((0.0, said)))
    assert attempts == 3
    assert episode.effect is None


@pytest.mark.parametrize(
    ("spec", "outside"),
    [
        ({"python": "tools.py:serve"}, False),
        ({"python": "tools.py:serve", "external": True}, True),
        ({"command": ["serve"]}, True),
        ({"command": ["serve"], "world_resource": "world://all"}, False),
        ({"command": ["serve"], "external": False}, False),
        ({"command": ["serve"], "state": {"notes": {"call": "read_notes"}}}, False),
        ({"url": "http://localhost:8000/mcp"}, True),
    ],
)
def test_only_what_shows_all_its_state_is_trusted_to_write_nowhere_else(
    spec: dict[str, Any], outside: bool
) -> None:
    made: AnyToolsSpec = TypeAdapter(ToolsSpec).validate_python(spec)
    assert made.writes_outside is outside


def test_attempts_are_spaced_and_the_observer_hears_of_each(domain: Domain) -> None:
    observer = Seen()
    play(domain, policy_for=lambda *_: Speaker(), observer=observer, attempts=3, retry_wait_s=4.0)
    kinds = [(what, attempt) for what, attempt, _ in observer.told]
    assert kinds == [(what, n) for n in (1, 2, 3) for what in ("started", "ended")]
    first, second, third = (wait for what, _, wait in observer.told if what == "ended")
    assert first is not None
    assert second is not None
    assert 2.0 <= first <= 4.0 <= second <= 8.0
    assert third is None


# --- the engine's load ----------------------------------------------------------------------------


def test_a_policy_without_a_load_gives_none() -> None:
    silent: Policy = Sampler(lambda _request: ([5], True))
    assert load_of(silent) is None

    class Busy(Sampler):
        def load(self) -> EngineLoad | None:
            return EngineLoad(1, 2, 0.5)

    read = load_of(Busy(lambda _request: ([5], True)))
    assert read is not None
    assert read() == EngineLoad(1, 2, 0.5)


def test_limits_of_a_spec_are_the_schedulers() -> None:
    spec = RolloutSpec(concurrency=7, deadline_s=8.0, attempts=9, retry_wait_s=1.5)
    assert bounds(spec) == Limits(concurrency=7, deadline_s=8.0, attempts=9, retry_wait_s=1.5)
