"""Dialogues of the desk that are good, and such that were spoiled in one of five ways.

    good             the domain's expert without bad habits, and its scripted user
    hallucinated_id  the agent first looks up an order, or an account, that nobody named
    wrong_state      half: the agent says it is done without doing it, does what the user has just taken
                     back, or what the rules forbid; half: the record claims changes and a reward that
                     its calls do not lead to
    rule_broken      the agent changes an order that it has not looked up, or without a yes
    user_fault       the user tells everything at once, speaks as the agent, or names an order of nobody's
    near_copy        a good dialogue once more, with a word or two put in another way

All but the second half of `wrong_state` and the copies are really played; a dialogue of which the spoiling
left no trace (a habit that did not show) is not taken.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from muarl.domain import Agent, Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.record import Episode, UserReply
from muarl.spec import TaskSpec
from muarl.spec.user import UserKindSpec
from muarl.testing import play_agents
from muarl.user import User
from muarl.user.speaker import Speaker

DESK = Path(__file__).resolve().parent.parent / "domains" / "desk"
KINDS = ("hallucinated_id", "wrong_state", "rule_broken", "user_fault", "near_copy")
_WAYS = {"hi": "hello", "hello": "hi", "please": "kindly", "thanks": "thank you", "ok": "okay"}


class Guesses:
    """An expert whose first call is about something that nobody named."""

    def __init__(self, expert: Agent, rng: random.Random) -> None:
        self._expert = expert
        self._guess = f"{rng.choice('QXYZ')}{rng.randrange(10, 100)}"
        self._tool, self._key = rng.choice([("get_order", "order_id"), ("find_orders", "account")])
        self._held: Message | None = None
        self._guessed = False

    def act(self, history: Sequence[Message]) -> Message:
        if self._held is not None:
            held, self._held = self._held, None
            return held
        said = self._expert.act(history)
        known = any(self._guess in message.content for message in history)
        if not said.tool_calls or self._guessed or known:
            return said
        self._held, self._guessed = said, True
        call = ToolCall("guess_1", self._tool, {self._key: self._guess})
        return Message("assistant", "", (call,))


class Spoiled:
    """A user who breaks her contract from her first message on."""

    def __init__(self, user: User, task: TaskSpec, how: str) -> None:
        self._user = user
        self._how = how
        assert task.user is not None
        self._account = task.user.facts[0].value

    async def open(self) -> UserReply:
        said = await self._user.open()
        more = {
            "tells": f"my account is {self._account}",
            "flips": "how may i help you today?",
            "invents": "my friend has X07777",
        }[self._how]
        return structs.replace(said, text=f"{said.text}. {more}")

    async def reply(self, agent_text: str) -> UserReply:
        return await self._user.reply(agent_text)


class Desk(Domain):
    """The desk, with a spoiled user in the place of its own."""

    def __init__(self, domain: Domain, how: str) -> None:
        super().__init__(domain.located)
        self._how = how

    def user(
        self,
        who: UserKindSpec,
        task: TaskSpec,
        persona: str,
        seed: int,
        speaker: Speaker | None = None,
    ) -> User:
        return Spoiled(super().user(who, task, persona, seed, speaker), task, self._how)


async def planted(
    count: int, of_each: int, seed: int = 0
) -> tuple[Domain, list[tuple[str, Episode]]]:
    """So many good dialogues and so many of each kind, shuffled; a copy comes after what it copies.

    Args:
        count: Good ones.
        of_each: Of each kind of bad ones.
        seed: Of all draws.
    """
    desk = load_domain(DESK)
    tasks = list(desk.tasks("train"))
    rng = random.Random(seed)
    rng.shuffle(tasks)
    parts = iter(tasks)

    def some(number: int) -> list[TaskSpec]:
        return [next(parts) for _ in range(number)]

    def expert(**habits: float) -> Callable[[TaskSpec, random.Random], Agent]:
        return lambda task, draws: desk.expert(task, habits, draws)

    async def played(
        agent: Callable[[TaskSpec, random.Random], Agent],
        number: int,
        shows: Callable[[Episode], bool],
        domain: Domain = desk,
    ) -> list[Episode]:
        """So many in which it shows, of as many tasks as that takes."""
        found: list[Episode] = []
        while len(found) < number:
            made = await play_agents(domain, some(2 * number), agent, seed=seed)
            found += filter(shows, made)
        return found[:number]

    good = await played(expert(), count, _solved)
    half = of_each // 2
    wrong = await played(expert(quit=0.5, stale=0.5, comply=0.5), half, lambda e: not _solved(e))
    claimed = [
        _claiming(episode, rng)
        for episode in await played(expert(), of_each - half, lambda e: bool(e.changes))
    ]
    rules = await played(
        expert(skip_lookup=0.6, skip_confirm=0.6), of_each, lambda e: _solved(e) and _breaks(e)
    )
    users: list[Episode] = []
    for number, how in enumerate(("tells", "flips", "invents")):
        share = len(range(number, of_each, 3))
        users += await played(expert(), share, _solved, Desk(desk, how))
    guesses = await played(
        lambda task, draws: Guesses(desk.expert(task, {}, draws), draws),
        of_each,
        lambda e: _solved(e) and _guesses(e),
    )
    copies = [_copied(episode, rng) for episode in rng.sample(good, of_each)]
    labelled = [("good", episode) for episode in good]
    for kind, episodes in zip(KINDS, (guesses, wrong + claimed, rules, users, copies), strict=True):
        labelled += [(kind, episode) for episode in episodes]
    rng.shuffle(labelled)
    labelled.sort(key=lambda pair: pair[0] == "near_copy")
    return desk, labelled


def _solved(episode: Episode) -> bool:
    return episode.reward == 1.0 and not episode.outcome.is_truncated


def _guesses(episode: Episode) -> bool:
    """Its first call is about something that stands in nothing that was said to the agent."""
    told = [episode.opening.text]
    for turn in episode.turns:
        for call in turn.message.tool_calls:
            return not any(value in text for value in call.arguments.values() for text in told)
        told += [turn.reply.text] if turn.reply is not None else []
    return False


def _breaks(episode: Episode) -> bool:
    """An order was changed that was not looked up, or without a yes."""
    looked: set[str] = set()
    act = ""
    for turn in episode.turns:
        for call, result in zip(turn.message.tool_calls, turn.results, strict=True):
            order = call.arguments.get("order_id", "")
            if call.name == "get_order" and not result.is_error:
                looked.add(order)
            elif call.name in ("cancel_order", "return_order", "redirect_order"):
                if not result.is_error and (order not in looked or act != "confirm"):
                    return True
                act = ""
        if turn.reply is not None:
            act = turn.reply.act
    return False


def _claiming(episode: Episode, rng: random.Random) -> Episode:
    """The record with one change left out, or another value in it, and a reward of 1."""
    changes = list(episode.changes)
    place = rng.randrange(len(changes))
    if rng.random() < 0.5:
        del changes[place]
    else:
        changes[place] = structs.replace(changes[place], after="lost")
    return structs.replace(_own(episode), changes=changes, reward=1.0)


def _copied(episode: Episode, rng: random.Random) -> Episode:
    """The same under another key, one or two of its words put otherwise."""
    copy = _own(episode)
    places = [turn for turn in copy.turns if turn.reply is not None and turn.reply.text]
    copy.opening = structs.replace(copy.opening, text=_otherwise(copy.opening.text))
    for turn in rng.sample(places, min(1, len(places))):
        assert turn.reply is not None
        turn.reply = structs.replace(turn.reply, text=_otherwise(turn.reply.text))
    copy.key = structs.replace(copy.key, sample=copy.key.sample + 1)
    return copy


def _otherwise(text: str) -> str:
    return " ".join(_WAYS.get(word.strip(",."), word) for word in text.split())


def _own(episode: Episode) -> Episode:
    """The same episode, that may be changed."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(episode), type=Episode)
