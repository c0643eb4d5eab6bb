"""Episodes as transcripts: with the ledger, the persona and the script they were played with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from muarl.data.stored import StoredTasks
from muarl.domain import Domain
from muarl.measure.transcript import Fact, Goal, Line, ToolUse, Transcript
from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode, UserReply
from muarl.spec import FactSpec, GoldCallSpec, PersonaSpec, RequestSpec, TaskSpec
from muarl.spec.grid import sides_of
from muarl.spec.wording import disclosure
from muarl.suite import AnyDomain

_MOST_VALUES = 64
"""A slot with more values than this is no choice among words; its values are told by their shape."""

_CHANGE = "change_request"
"""The knob that has her change her mind."""

_CUES = ("confirm", "refuse", "done")


class EpisodeReader:
    """Turns episodes of one domain into transcripts.

    Args:
        domain: That they were played in.
        user: Who played the user, where the episodes do not say.
        policy: Who played the agent; "": the one of the grid, or the episode's phase.
    """

    def __init__(self, domain: Domain, *, user: str = "", policy: str = "") -> None:
        self._domain = domain
        self._tasks = StoredTasks(domain)
        self._user = user
        self._policy = policy
        self._vocabularies: dict[str, dict[str, tuple[str, ...]]] = {}

    def read(self, episodes: Iterable[Episode]) -> Iterator[Transcript]:
        """Transcripts of stored episodes, in order.

        Raises:
            RecordError: The domain has no such task any more, or another one by that name.
        """
        for episode in episodes:
            yield self.transcript(episode, self._tasks.of(episode))

    def transcript(self, episode: Episode, task: TaskSpec) -> Transcript:
        """One episode, played on `task`."""
        key = episode.key
        policy, user = sides_of(key.phase) or (key.phase, self._user)
        if episode.user:  # of a pool, which is itself one of a grid's users
            user = f"{user}/{episode.user}" if sides_of(key.phase) else episode.user
        return structs.replace(
            self.before(task, episode.persona),
            id=str(key),
            lines=tuple(_lines(episode)),
            user=user,
            policy=self._policy or policy,
            group="/".join(map(str, key.group)),
            outcome=episode.outcome.value,
            reward=episode.reward,
            sampled_tokens=episode.num_sampled,
            told_to_change=sum(reply.knobs.count(_CHANGE) for reply in episode.replies()),
        )

    def before(self, task: TaskSpec, persona: str) -> Transcript:
        """A dialogue before it begins: what its user knows and wants."""
        manner = self._domain.spec.personas[persona]
        heard = self._heard(manner)
        own = task.user.facts if task.user is not None else []
        return Transcript(
            id="",
            task=task.id,
            lines=(),
            persona=persona,
            instruction=task.goal,
            facts=self._facts(own, task, manner),
            goals=self._goals(task, manner),
            phrases={cue: phrases for cue, phrases in heard.items() if cue in _CUES},
            changes_mind=manner.changes_mind,
        )

    def _heard(self, persona: PersonaSpec) -> dict[str, tuple[str, ...]]:
        """The phrases by which a persona knows what the policy does, by act."""
        script = self._domain.spec.user
        known = {} if script is None else script.heard_by(persona).understands
        return {act: tuple(phrases) for act, phrases in known.items()}

    def _facts(
        self, facts: Iterable[FactSpec], task: TaskSpec, persona: PersonaSpec
    ) -> tuple[Fact, ...]:
        others = self._vocabulary(task.split)
        heard = self._heard(persona)
        return tuple(
            Fact(
                id=fact.id,
                value=fact.value,
                disclose=disclosure(fact, persona),
                asked_by=heard.get(f"ask:{fact.id}", ()),
                others=others.get(fact.id, ()),
            )
            for fact in facts
        )

    def _goals(self, task: TaskSpec, persona: PersonaSpec) -> tuple[Goal, ...]:
        """Requests with the gold calls that share their facts; of a task without: one for all."""
        if task.user is None:
            return (Goal(calls=tuple(map(_wanted, task.gold))),)
        requests = task.user.requests
        calls: list[list[ToolUse]] = [[] for _ in requests]
        for call in task.gold:
            shared = [_shared(call, request) for request in requests]
            calls[shared.index(max(shared))].append(_wanted(call))
        return tuple(
            Goal(
                facts=self._facts(request.facts, task, persona),
                calls=tuple(fulfils),
                instead=self._facts(request.instead.facts, task, persona)
                if request.instead is not None
                else (),
            )
            for request, fulfils in zip(requests, calls, strict=True)
        )

    def _vocabulary(self, split: str) -> dict[str, tuple[str, ...]]:
        """What values a slot has in a split, where they are words and few."""
        if split not in self._vocabularies:
            values: dict[str, dict[str, None]] = {}
            for task in self._domain.tasks(split):
                for fact in _all_facts(task):
                    values.setdefault(fact.id, {})[fact.value] = None
            self._vocabularies[split] = {
                name: tuple(known)
                for name, known in values.items()
                if len(known) <= _MOST_VALUES
                and not any(c.isdecimal() for value in known for c in value)
            }
        return self._vocabularies[split]


def transcripts(
    domain: AnyDomain, episodes: Iterable[Episode], *, user: str = ""
) -> Iterator[Transcript]:
    """Transcripts of stored episodes of one or several domains, in order.

    Args:
        domain: That they were played in.
        episodes: The episodes.
        user: Who played the user, where the episodes do not say.

    Raises:
        RecordError: A domain has no such task any more, or another one by that name.
    """
    tasks = StoredTasks(domain)
    readers = {one.located.path: EpisodeReader(one, user=user) for one in domain.members}
    for episode in episodes:
        task = tasks.of(episode)
        yield readers[domain.of(task.id).located.path].transcript(episode, task)


def _all_facts(task: TaskSpec) -> Iterator[FactSpec]:
    if task.user is None:
        return
    yield from task.user.facts
    for first in task.user.requests:
        request: RequestSpec | None = first
        while request is not None:
            yield from request.facts
            request = request.instead


def _wanted(call: GoldCallSpec) -> ToolUse:
    return ToolUse(call.tool, call.arguments)


def _shared(call: GoldCallSpec, request: RequestSpec) -> int:
    """How many arguments of a gold call are facts of a request, or of what it may turn into."""
    values = {str(value) for value in call.arguments.values()}
    found = 0
    at: RequestSpec | None = request
    while at is not None:
        found = max(found, sum(fact.value in values for fact in at.facts))
        at = at.instead
    return found


def _lines(episode: Episode) -> Iterator[Line]:
    """The user's lines and, between them, what the agent said to her, after the tools it used."""
    yield _reply(episode.opening)
    uses: list[ToolUse] = []
    for turn in episode.turns:
        uses += _uses(turn.calls, turn.results)
        if turn.reply is None:
            continue
        yield Line("agent", turn.said, uses=tuple(uses))
        uses = []
        yield _reply(turn.reply)
    if uses:  # a terminal tool, or a cap
        yield Line("agent", "", uses=tuple(uses))


def _reply(said: UserReply) -> Line:
    uses = tuple(_uses(said.calls, said.results))
    return Line("user", said.text, act=said.act, stop=said.stop, uses=uses)


def _uses(calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> Iterator[ToolUse]:
    for call, result in zip(calls, results, strict=False):
        yield ToolUse(result.name, call.arguments, result.content, result.is_error)
