"""One dialogue, read once: what every figure looks at.

What was said is matched with what the user knows. All by the words, the ledger and the tools' record
(tier T0); a simulator's own tags stand in `UserTurn.tag` and are used by nothing but the tag tier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muarl.measure.cues import agent_cues, asks_for_value, in_answer, requests, user_cues
from muarl.measure.settling import Settling
from muarl.measure.transcript import Fact, Line, ToolUse, Transcript
from muarl.measure.words import plain, shape, words
from muarl.record import Outcome
from muarl.spoken import read, says
from muarl.spoken.naming import entities

OPENING = "opening"
"""State of the dialogue when the user speaks first."""

_ELSEWHERE = {"on", "of", "for", "in", "to", "with", "from", "at", "that", "which", "under"}
"""Words after which a name only tells where to look."""

_NAMELESS = {"id", "number", "no", "code", "my", "the", "of", "name"}
"""Words of a fact's id that do not tell it from others, unless it has no other words."""


@dataclass(frozen=True, eq=False)
class AgentTurn:
    """What the agent said and did before the user spoke again.

    Attributes:
        text: As the user read it.
        words: Its words.
        cues: What it does, by its words; see `cues.AGENT`.
        asks_for: Ids of the facts that it asks the user for.
        false: Values it states that no fact of hers has, though their slot is one of hers.
        uses: Tools it used first.
        settles: How many of her requests were settled when it had been heard.
    """

    text: str
    words: tuple[str, ...]
    cues: frozenset[str]
    asks_for: tuple[str, ...]
    false: frozenset[str]
    uses: tuple[ToolUse, ...]
    settles: int

    @property
    def state(self) -> str:
        """What the user answers: the class of states that her acts are compared in."""
        for cue in ("confirm", "refuse", "done"):
            if cue in self.cues:
                return cue
        if self.asks_for:
            return f"ask:{self.asks_for[0]}"
        return "ask" if "ask" in self.cues else "other"


@dataclass(frozen=True, eq=False)
class UserTurn:
    """What the user said.

    Attributes:
        index: Which of her turns, from 0, the opening.
        text: As the agent read it.
        words: Its words.
        cues: What it does, by its words; see `cues.USER`.
        tells: Facts that she tells in it, the first time or again.
        first: Those of them that she had not told before.
        unasked: Those of `first` that nobody had asked for since one of that name was last told.
        replaces: It tells, for the first time, what one of her requests may turn into.
        ungrounded: What it names that she cannot know.
        heard: What the agent said before; None for the opening.
        stop: She ended the dialogue with it.
        unsettled: Her requests that were not settled by then.
        tag: What she says herself that she did; "" where she does not say.
        uses: Tools that she used with it.
    """

    index: int
    text: str
    words: tuple[str, ...]
    cues: frozenset[str]
    tells: tuple[Fact, ...]
    first: tuple[Fact, ...]
    unasked: tuple[Fact, ...]
    replaces: bool
    ungrounded: frozenset[str]
    heard: AgentTurn | None
    stop: bool
    unsettled: int
    tag: str
    uses: tuple[ToolUse, ...]

    @property
    def state(self) -> str:
        """What she answers."""
        return self.heard.state if self.heard else OPENING

    @cached_property
    def act(self) -> str:
        """What she does, as one class, by her words and the ledger alone."""
        if self.heard is None:
            return "open"
        if self.stop:
            return "leave" if self.unsettled else "stop"
        if (self.replaces or "change" in self.cues) and "refuse" not in self.heard.cues:
            return "change"
        for cue in ("refuse", "unknown"):
            if cue in self.cues:
                return cue
        if self.heard.asks_for and any(fact.id in self.heard.asks_for for fact in self.tells):
            return "tell"
        if "confirm" in self.heard.cues and self.cues & {"affirm", "deny"}:
            return "confirm" if "affirm" in self.cues else "deny"
        for cue in ("unclear", "object", "deny", "ask"):
            if cue in self.cues:
                return cue
        if self.heard.cues & {"done", "refuse", "offer"} and "close" not in self.cues:
            return "request"
        return "tell" if self.tells else "close" if "close" in self.cues else "other"


@dataclass(eq=False)
class View:
    """A transcript's turns, and what was told, asked for and settled in them."""

    transcript: Transcript
    user: list[UserTurn] = field(default_factory=list)
    agent: list[AgentTurn] = field(default_factory=list)

    def __post_init__(self) -> None:
        reader = _Reader(self.transcript)
        for line in self.transcript.lines:
            if line.speaker == "user":
                self.user.append(reader.user(line))
            else:
                self.agent.append(reader.agent(line))

    @property
    def task(self) -> str:
        """Of the dialogue."""
        return self.transcript.task

    @cached_property
    def facts(self) -> tuple[Fact, ...]:
        """All that she knows, or is meant not to."""
        return ledger(self.transcript)

    @property
    def is_fault(self) -> bool:
        """It ended by no doing of either side: in no figure but the rate of faults."""
        return self.transcript.outcome in (Outcome.USER_FAULT, Outcome.INFRA_FAULT)

    @property
    def succeeded(self) -> bool:
        """It earned the whole reward."""
        reward = self.transcript.reward
        return reward is not None and reward >= 1 - 1e-6

    @property
    def outcome_class(self) -> str:
        """`success`, `failure`, `left` (the user gave up), `cut` (a cap ended it) or `unscored`."""
        outcome = self.transcript.outcome
        if outcome == Outcome.ABANDONED:
            return "left"
        if outcome.startswith("truncated"):
            return "cut"
        if self.transcript.reward is None:
            return "unscored"
        return "success" if self.succeeded else "failure"

    @property
    def pairs(self) -> list[tuple[AgentTurn, UserTurn]]:
        """Each message of the agent that the user answered, and the answer."""
        return [(turn.heard, turn) for turn in self.user if turn.heard is not None]


def ledger(transcript: Transcript) -> tuple[Fact, ...]:
    """Her facts, those of her requests, and those of what she may change them to."""
    found = dict.fromkeys(transcript.facts)
    for goal in transcript.goals:
        found |= dict.fromkeys((*goal.facts, *goal.instead))
    return tuple(found)


class _Reader:
    """Goes through the lines, and knows at each what happened before."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._facts = [(fact, read(fact.value)) for fact in ledger(transcript)]
        self._told: set[Fact] = set()
        self._asked: set[str] = set()
        self._known = set(entities(transcript.instruction))
        self._true = set(self._known)
        for fact, _ in self._facts:
            self._true |= entities(fact.value)
            if fact.disclose != "never":
                self._known |= entities(fact.value)
        self._alternatives = [set(goal.instead) - set(goal.facts) for goal in transcript.goals]
        self._replaced: set[int] = set()
        self._change_told = False
        """She said that she changes her mind, and has not told to what yet."""
        self._insists = False
        """Her last turn objects to a refusal, or to word that something is done, and tells nothing new."""
        self._settling = Settling(transcript.goals)
        self._heard: AgentTurn | None = None
        self._num_user = 0

    def user(self, line: Line) -> UserTurn:
        said = read(line.text)
        tells = tuple(fact for fact, value in self._facts if said.says(value))
        first = tuple(fact for fact in tells if fact not in self._told)
        # Of two facts with one value, an order that is numbered like the account, one was asked for.
        open_to_her = {
            fact.value for fact in tells if fact.id in self._asked or fact.disclose == "volunteer"
        }
        unasked = tuple(
            fact
            for fact in first
            if fact.id not in self._asked
            and (fact.disclose == "volunteer" or fact.value not in open_to_her)
        )
        for use in line.uses:
            self._known |= entities(use.result)
        self._settling.used(line.uses)
        cues = in_answer(user_cues(line.text), self._heard_cues())
        settling = self._heard.cues & {"refuse", "done"} if self._heard is not None else ()
        self._insists = "object" in cues and bool(settling) and not first
        turn = UserTurn(
            index=self._num_user,
            text=line.text,
            words=words(line.text),
            cues=cues,
            tells=tells,
            first=first,
            unasked=unasked,
            replaces=self._replaces(set(first), cues),
            ungrounded=frozenset(entities(line.text) - self._known - self._owned(tells)),
            heard=self._heard,
            stop=line.stop,
            unsettled=self._settling.settled.count(False),
            tag=line.act,
            uses=line.uses,
        )
        self._true |= entities(line.text)
        self._told.update(first)
        self._asked -= {fact.id for fact in first}
        self._num_user += 1
        return turn

    def _replaces(self, first: set[Fact], cues: frozenset[str]) -> bool:
        """Whether a turn turns to what a request may become: once for each, however many turns tell it."""
        turns_to = {
            place for place, others in enumerate(self._alternatives) if others & first
        } - self._replaced
        self._replaced |= turns_to
        was_told = self._change_told
        self._change_told = not turns_to and (was_told or "change" in cues)
        return bool(turns_to) and not was_told

    def agent(self, line: Line) -> AgentTurn:
        cues = set(agent_cues(line.text))
        heard = plain(line.text)
        for cue, phrases in self._transcript.phrases.items():
            if any(phrase.casefold() in heard for phrase in phrases):
                cues.add(cue)
        asks_for = self._asks_for(line.text, "confirm" in cues)
        if asks_for:
            cues.add("ask")
        for use in line.uses:
            self._true |= entities(use.result)
        self._settling.used(line.uses)
        self._settling.said(cues, again=self._insists)
        turn = AgentTurn(
            text=line.text,
            words=words(line.text),
            cues=frozenset(cues),
            asks_for=asks_for,
            false=self._false(line.text, asks_for),
            uses=line.uses,
            settles=self._settling.settled.count(True),
        )
        self._asked.update(asks_for)
        self._known |= entities(line.text)
        self._heard = turn
        return turn

    def _heard_cues(self) -> frozenset[str] | None:
        if self._heard is None:
            return None
        return self._heard.cues | ({"false"} if self._heard.false else set())

    def _owned(self, tells: tuple[Fact, ...]) -> set[str]:
        """What she names by telling a fact, one that she should have kept to herself as well."""
        return {name for fact in tells for name in entities(fact.value)}

    def _asks_for(self, text: str, confirms: bool) -> tuple[str, ...]:
        """Facts that a message asks for: by their own phrases, or by name in a question."""
        heard = plain(text)
        names = {fact.id: name_of(fact.id) for fact, _ in self._facts}
        asking = filter(asks_for_value, requests(text))
        named = {x for sentence in asking for x in asked_in(sentence, names)}
        return tuple(
            dict.fromkeys(
                fact.id
                for fact, _ in self._facts
                if any(phrase.casefold() in heard for phrase in fact.asked_by)
                or (fact.id in named and not confirms)
            )
        )

    def _false(self, text: str, asks_for: tuple[str, ...]) -> frozenset[str]:
        """Values that fit a slot of hers, are not hers, and came from no tool."""
        heard = text.casefold()
        her_words = {fact.value.casefold() for fact, _ in self._facts}
        found = set()
        for fact, _ in self._facts:
            if fact.id in asks_for:
                continue
            if looks := shape(fact.value):
                found |= {v for v in looks.findall(text) if not entities(v) <= self._true}
            for other in fact.others:
                name = other.casefold()
                if name in heard and name not in her_words and says(text, other):
                    found.add(other)
        return frozenset(found)


def name_of(fact_id: str) -> frozenset[str]:
    """Words that name a fact in a question.

    Example:
        >>> sorted(name_of("order_id")), sorted(name_of("name"))
        (['order'], ['name'])
    """
    parts = [part for part in fact_id.casefold().replace("-", "_").split("_") if part]
    return frozenset(part for part in parts if part not in _NAMELESS) or frozenset(parts)


def asked_in(sentence: str, names: Mapping[str, frozenset[str]]) -> list[str]:
    """Facts that a question asks for: the first it names, and those it lists with it.

    Example:
        >>> names = {"email": frozenset({"email"}), "order": frozenset({"order"})}
        >>> asked_in("what is the email on the order?", names)
        ['email']
        >>> asked_in("what are your order number and email?", names)
        ['order', 'email']
    """
    said = words(sentence)
    places = sorted(
        (max(said.index(part) for part in name), fact_id)
        for fact_id, name in names.items()
        if name <= set(said)
    )
    found: list[str] = []
    last = 0
    for place, fact_id in places:
        if found and _ELSEWHERE & set(said[last:place]):
            break
        found.append(fact_id)
        last = place
    return found
