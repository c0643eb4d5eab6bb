"""A task in words: what an LLM user is told, and readers read."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from muarl.goals.errors import GoalError
from muarl.goals.goal import Goals, Unfit, Wish, Words
from muarl.goals.scene import Scene
from muarl.spec import FactSpec
from muarl.spec.wording import SLOT
from muarl.spoken.known import Known


def goal_in_words(goals: Goals, scene: Scene, wishes: Sequence[Wish]) -> str:
    """The wishes of a scene, and what else its user knows, one sentence after another.

    Raises:
        GoalError: Words have a slot for which there is no fact, or leave a fact out.
        Unfit: They tell a fact that was to be found.
    """
    own = {fact.id: fact.value for fact in scene.facts.values()}
    said = []
    for position, wish in enumerate(wishes):
        joins = goals.joins_after if wish.follows else goals.joins
        joined = scene.rng.choice(joins) if position and joins else ""
        said.append(_sentence(joined + _wished(wish, own, scene.rng)))
    for words, facts in scene.about:
        said.append(_sentence(_filled(words, own | facts, scene.rng)))
    text = " ".join(said)
    facts_told = [f for wish in wishes for f in wish.all_facts()] + list(scene.facts.values())
    if left_out := missing_facts(text, facts_told):
        raise GoalError(
            f"the words {text!r} do not say {', '.join(left_out)}: give the sentence a slot for each "
            "fact, or an LLM user will not know it"
        )
    told = {fact.value for fact in facts_told}
    known = Known([text])
    for find in scene.finds:
        value = str(find.value)
        if value not in told and known.hold(value):
            raise Unfit("the words tell what was to be found", f"{find.fact} = {value!r}")
    return text


def missing_facts(text: str, facts: Iterable[FactSpec]) -> list[str]:
    """Facts that a text does not say, each as `id = 'value'`."""
    known = Known([text])
    return [f"{fact.id} = {fact.value!r}" for fact in facts if not known.hold(fact.value)]


def _wished(wish: Wish, own: Mapping[str, str], rng: random.Random) -> str:
    words = _filled(wish.words, {**own, **wish.facts}, rng)
    if wish.instead is None:
        return words
    instead = _wished(wish.instead, own, rng)
    return f"{_stopped(words)} When you are asked to confirm, you change your mind: {instead}"


def _filled(words: Words, facts: Mapping[str, str], rng: random.Random) -> str:
    template = words if isinstance(words, str) else rng.choice(words)
    if unknown := sorted(set(SLOT.findall(template)) - facts.keys()):
        raise GoalError(
            f"no fact for {unknown} in the words {template!r}; there are {sorted(facts)}"
        )
    return SLOT.sub(lambda slot: facts[slot[1]], template)


def _sentence(text: str) -> str:
    return _stopped(text[:1].upper() + text[1:])


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
