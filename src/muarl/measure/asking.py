"""Who asks, who answers: metrics 1, 2, 3 and 29."""

from __future__ import annotations

from collections.abc import Iterator

from muarl.measure.figure import Figure, each, turns
from muarl.measure.transcript import Fact
from muarl.measure.view import AgentTurn, UserTurn, View
from muarl.measure.words import shape, similar
from muarl.spoken import QUESTION_MARKS, read
from muarl.spoken.naming import entities

_SAME_QUESTION = 0.8
"""Questions that share so many of their words are the same question put again."""


def asks(turn: UserTurn) -> bool:
    """She asks for information; to ask for an action is no question."""
    return "ask" in turn.cues


def _answered(view: View) -> Iterator[float]:
    """For each turn that asks, whether the agent's next message says more than a question."""
    for place, turn in enumerate(view.user):
        if asks(turn) and place < len(view.agent):
            answer = view.agent[place]
            yield float(bool(answer.words) and not answer.text.strip().endswith(QUESTION_MARKS))


def _requests(view: View) -> Iterator[tuple[Fact, UserTurn]]:
    """Each fact that the agent asked for and the turn that answered; one turn may answer several."""
    by_id: dict[str, list[Fact]] = {}
    for fact in view.facts:
        by_id.setdefault(fact.id, []).append(fact)
    for heard, turn in view.pairs:
        for fact_id in heard.asks_for:
            facts = by_id[fact_id]
            told = [fact for fact in facts if fact in turn.tells]
            yield (told or facts)[0], turn


def answer_to(fact: Fact, turn: UserTurn) -> str:
    """What a request for a fact met with: `told`, `refused`, `unknown` or `ignored`."""
    if fact in turn.tells:
        return "told"
    if "refuse" in turn.cues:
        return "refused"
    return "unknown" if "unknown" in turn.cues else "ignored"


def _answers(kind: str) -> Figure:
    words = {
        "told": ("answers", "were answered with the fact", "compare"),
        "refused": ("refuses", "met with a refusal", "compare"),
        "unknown": ("does_not_know", "met with not knowing", "compare"),
        "ignored": ("ignores", "were not answered at all", "lower"),
    }
    name, met, better = words[kind]
    return Figure(
        name=name,
        number=2,
        says=f"share of the agent's requests for a fact of the ledger that {met}",
        source="UserProxyBench",
        unit="share",
        better=better,  # type: ignore[arg-type]  # a literal, out of a table
        items=each(
            lambda view: [float(answer_to(fact, turn) == kind) for fact, turn in _requests(view)]
        ),
    )


def _fabricates(view: View) -> Iterator[float]:
    """For each request for what she does not know, whether she gave something of that kind."""
    for fact, turn in _requests(view):
        if fact.disclose != "never":
            continue
        looks = shape(fact.value)
        said = read(turn.text)
        given = set(looks.findall(turn.text)) if looks else set()
        given |= {other for other in fact.others if said.says(read(other))}
        made_up = {value for value in given if entities(value) <= turn.ungrounded or not looks}
        yield float(bool(made_up) and fact not in turn.tells)


def _questions(view: View) -> Iterator[tuple[int, AgentTurn]]:
    return ((place, turn) for place, turn in enumerate(view.agent) if "ask" in turn.cues)


def _repeated(view: View) -> Iterator[float]:
    before: list[tuple[str, ...]] = []
    for _, turn in _questions(view):
        yield float(any(similar(turn.words, other) >= _SAME_QUESTION for other in before))
        before.append(turn.words)


def _needless(view: View) -> Iterator[float]:
    """For each request for a fact, whether she had told it or a tool had shown it already."""
    known: set[str] = set()
    told: set[Fact] = set()
    answered = list(_requests(view))
    for turn in view.user:
        if turn.heard is not None:
            for use in turn.heard.uses:
                known |= entities(use.result)
            for fact, answer in answered:
                if answer is turn:
                    names = entities(fact.value)
                    yield float(fact in told or (bool(names) and names <= known))
        told.update(turn.tells)


FIGURES = (
    Figure(
        name="asks",
        number=1,
        says="share of the user's turns that ask the agent for information",
        source="USI; FACA",
        unit="share",
        better="compare",
        items=turns(asks),
        turn=asks,
    ),
    Figure(
        name="answered_next",
        number=1,
        says="share of the user's questions to which the agent's next message is more than a question",
        source="USI",
        unit="share",
        better="compare",
        items=each(_answered),
    ),
    *map(_answers, ("told", "refused", "unknown", "ignored")),
    Figure(
        name="fabricates",
        number=3,
        says="share of the agent's requests for a fact the user does not know that she answered with "
        "a value of its kind that she made up",
        source="tau-bench's rules for users",
        unit="share",
        better="lower",
        items=each(_fabricates),
    ),
    Figure(
        name="user_turns",
        number=29,
        says="turns of the user in a dialogue",
        source="BAO",
        unit="turns",
        better="compare",
        items=each(lambda view: [float(len(view.user))]),
    ),
    Figure(
        name="agent_questions",
        number=29,
        says="messages of a dialogue in which the agent asks to be told something",
        source="BAO; AskBench",
        unit="messages",
        better="lower",
        items=each(lambda view: [float(sum(1 for _ in _questions(view)))]),
    ),
    Figure(
        name="repeated_questions",
        number=29,
        says=f"share of those whose words are {_SAME_QUESTION:.0%} those of an earlier one",
        source="AskBench",
        unit="share",
        better="lower",
        items=each(_repeated),
    ),
    Figure(
        name="needless_questions",
        number=29,
        says="share of the agent's requests for a fact that the user had told, or a tool had shown, "
        "already",
        source="AskBench",
        unit="share",
        better="lower",
        items=each(_needless),
    ),
)
