"""The words of tasks, said otherwise by an LLM; what changes the meaning is not taken.

A wording is held to what can be told for sure: it says every fact of the user's, in the order in which the
template says them; no figure, address or value of any other task that the template does not say; it speaks to
her; it is about as long. What breaks this is asked for again, and after that the template's words stay, and
are counted.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from muarl.errors import EpisodeError
from muarl.goals.words import missing_facts
from muarl.http.chat_client import ChatClient, ChatMessage, strip_reasoning
from muarl.seeds import derive_seed
from muarl.spec import FactSpec, TaskSpec
from muarl.spoken import read, tokens
from muarl.spoken.known import Known, values_in

_ROLE = """\
You are given what somebody wants from a company's assistant, told to her as "you". Tell her the same in \
other words, as one person would tell another.

- Answer with the new text alone: no quotes, no label, no comment, one paragraph.
- Speak to her as "you".
- Every name, number and identifier stays as it is spelled, in the same order; leave none out and add none.
- Keep everything she knows, does not know, wants, and does under a condition; add nothing."""

_SHORTEST, _LONGEST = 0.5, 2.0
"""Of the template's length."""
_NAME = re.compile(r"[\w@.+-]*[\d@][\w@.+-]*\w|\w*\d\w*")
_TO_HER = frozenset(["you", "your", "you're", "yours", "yourself"])


@dataclass(frozen=True)
class Reworded:
    """Tasks, some of them in other words.

    Attributes:
        tasks: All of them, in order.
        count: How many have other words.
        kept: Why the others have not, to how many.
    """

    tasks: list[TaskSpec]
    count: int
    kept: Counter[str]


async def reworded(
    tasks: Sequence[TaskSpec],
    client: ChatClient,
    *,
    tries: int = 3,
    temperature: float = 1.0,
    max_tokens: int = 512,
    at_once: int = 16,
) -> Reworded:
    """Word the goals of tasks otherwise.

    Args:
        tasks: Whose `goal` is worded.
        client: Who is asked.
        tries: How often for each task.
        temperature: Of the model.
        max_tokens: Cap on one wording.
        at_once: Requests at once.
    """
    guard = WordingGuard(tasks)
    goals: list[str] = [task.goal for task in tasks]
    kept: Counter[str] = Counter()
    limit = anyio.CapacityLimiter(at_once)

    async def word(index: int, task: TaskSpec) -> None:
        reason = ""
        for number in range(tries):
            try:
                async with limit:
                    reply = await client.complete(
                        [ChatMessage("system", _ROLE), ChatMessage("user", task.goal)],
                        seed=derive_seed("wording", task.id, number),
                        temperature=temperature,
                        max_tokens=max_tokens,
                    )
            except EpisodeError as error:
                reason = f"the endpoint does not answer: {error}"
                break
            text = " ".join(strip_reasoning(reply.text).split())
            if reply.cut:
                reason = "it is cut off"
            elif text == task.goal:
                reason = "it is in the same words"
            else:
                reason = guard.objection(task, text)
            if not reason:
                goals[index] = text
                return
        kept[reason] += 1

    async with anyio.create_task_group() as group:
        for index, task in enumerate(tasks):
            group.start_soon(word, index, task)
    worded = [
        task if goal == task.goal else task.model_copy(update={"goal": goal})
        for task, goal in zip(tasks, goals, strict=True)
    ]
    return Reworded(worded, len(tasks) - kept.total(), kept)


class WordingGuard:
    """Tells whether other words of a task say the same, as far as that can be told for sure.

    Args:
        tasks: All of them; a value of one of them that another does not speak of must not come into it.
    """

    def __init__(self, tasks: Iterable[TaskSpec]) -> None:
        values = {value for task in tasks for value in _values(task)}
        self._values: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for value in sorted(values):
            if said := tokens(value):
                self._values[said[0]].append(value)

    def objection(self, task: TaskSpec, text: str) -> str:
        """Why a text cannot stand for a task's goal; "" if it can."""
        if not text:
            return "it is empty"
        if not _SHORTEST <= len(text) / len(task.goal) <= _LONGEST:
            return "it is much shorter or longer"
        if not _TO_HER & set(re.findall(r"[\w']+", text.casefold())):
            return "it does not speak to her"
        if missing_facts(text, _facts(task)):
            return "it leaves a fact out"
        if _order(text, task) != _order(task.goal, task):
            return "it tells facts in another order"
        if self._added(task.goal, text):
            return "it adds a fact"
        return ""

    def _added(self, goal: str, text: str) -> bool:
        if set(_NAME.findall(text.casefold())) - set(_NAME.findall(goal.casefold())):
            return True
        said, known = Known([text]), Known([goal])
        could_be = (value for token in set(tokens(text)) for value in self._values.get(token, ()))
        return any(said.hold(value) and not known.hold(value) for value in could_be)


def _facts(task: TaskSpec) -> list[FactSpec]:
    if task.user is None:
        return []
    return [
        *(fact for request in task.user.requests for fact in request.all_facts()),
        *task.user.facts,
    ]


def _values(task: TaskSpec) -> Iterable[str]:
    """What a task is about, so that it would be a fact in another's words."""
    yield from (fact.value for fact in _facts(task))
    for call in task.gold:
        yield from (text for _, text in values_in(call.arguments))


def _order(text: str, task: TaskSpec) -> list[str]:
    """The values of facts, in the order in which a text first says them."""
    said = read(text).tokens
    places: Mapping[str, int] = {
        value: next(
            (at for at in range(len(said)) if said[at : at + len(wanted)] == wanted), len(said)
        )
        for value, wanted in {fact.value: read(fact.value).tokens for fact in _facts(task)}.items()
    }
    return sorted(places, key=lambda value: (places[value], value))
