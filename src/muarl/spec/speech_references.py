"""What users of a domain say and understand: acts, facts, actions and voices that are named there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from muarl.spec.domain import DomainSpec, PersonaSpec, SplitPhrasings, UserScriptSpec
from muarl.spec.finding import Finding, unknown
from muarl.spec.split_references import ANY_SPLIT
from muarl.spec.wording import BUILT_IN, OF_DEEDS, slots

_ODD_SLOT = re.compile(r"\{(?![A-Za-z0-9][A-Za-z0-9_.-]*\})[\w .-]*\}")

_AGENT_ACTS = ("confirm", "refuse", "done")
_USER_ACTS = (
    *("open", "next", "confirm", "deny", "change", "accept_refusal"),
    *("unknown", "unclear", "stop", "abandon"),
    *(act for act in BUILT_IN if act != "partly"),
)
_ACTS_ON_FACTS = ("ask:", "tell:", "partly:")
_ACTS_OF_DEEDS = tuple(f"{kind}:" for kind in OF_DEEDS)


def speech_findings(domain: DomainSpec) -> Iterator[Finding]:
    """Dangling names in the language of a domain's users, and in that of each persona."""
    splits = domain.tasks.splits
    actions = domain.user.actions if domain.user is not None else {}
    for name, persona in domain.personas.items():
        at = ("personas", name)
        for finding in _phrasings(persona.phrasings, splits, actions):
            yield finding.below(*at, "phrasings")
        if domain.user is not None:
            yield from (f.below(*at) for f in _voice(persona, domain.user))
            yield from (f.below(*at, "understands") for f in _own_ears(persona, domain.user))
            facts = _facts_spoken_of(domain)
            for fact in persona.disclose:
                if fact not in facts:
                    message = f"{unknown('fact', fact, facts)} (no act and no wording names it)"
                    yield Finding((*at, "disclose", fact), message, True)
    if domain.user is not None:
        of_all = _phrasings(domain.user.phrasings, splits, actions)
        yield from (f.below("user", "phrasings") for f in of_all)
        for voice, phrasings in domain.user.voices.items():
            of_voice = _phrasings(phrasings, splits, actions)
            yield from (f.below("user", "voices", voice) for f in of_voice)
        yield from (f.below("user", "understands") for f in _understands(domain.user))
        yield from (f.below("user") for f in _actions(domain.user, domain.device is not None))


def _actions(script: UserScriptSpec, device: bool) -> Iterator[Finding]:
    """Actions that nobody asks for, that there are none of, or that want a device."""
    asked = {act.removeprefix("do:") for act in script.understands if act.startswith("do:")}
    for act in sorted(asked - script.actions.keys()):
        yield Finding(
            ("understands", f"do:{act}"), unknown("action", act, script.actions), at_key=True
        )
    for action in script.actions:
        if action not in asked:
            message = f"nobody can ask for it: `understands` has no `do:{action}`"
            yield Finding(("actions", action), message, at_key=True)
    if script.actions and not device:
        yield Finding(("actions",), "actions are done on a `device`, which this domain lacks", True)


def _phrasings(
    phrasings: SplitPhrasings, splits: Collection[str], actions: Collection[str]
) -> Iterator[Finding]:
    for split, acts in phrasings.items():
        if splits and split not in (*splits, ANY_SPLIT):
            yield Finding((split,), unknown("split", split, [*splits, ANY_SPLIT]), True)
        for act, templates in acts.items():
            if act not in _USER_ACTS and not act.startswith((*_ACTS_ON_FACTS, *_ACTS_OF_DEEDS)):
                known = [*_USER_ACTS, "ask:<intent>", "tell:<fact>", "partly:<fact>"]
                known += ["did:<action>", "failed:<action>"]
                yield Finding((split, act), unknown("act", act, known), True)
            kind, _, action = act.partition(":")
            if kind in OF_DEEDS and action and action not in actions:
                yield Finding((split, act), unknown("action", action, actions), True)
            if not templates:
                yield Finding((split, act), f"act {act!r} has no templates; give at least one")
            for index, template in enumerate(templates):
                for braces in _ODD_SLOT.findall(template):
                    message = f"{braces!r} is no fact's name in braces, and is said as it stands"
                    yield Finding((split, act, index), message)
                if "{part}" in template and not act.startswith("partly"):
                    message = "{part} is a part of a value, which only `partly:<fact>` tells"
                    yield Finding((split, act, index), message)
                if act.startswith("ask:") and "{request}" in template:
                    message = f"{act!r} is what {{request}} stands for; it cannot hold it"
                    yield Finding((split, act, index), message)


def _voice(persona: PersonaSpec, script: UserScriptSpec) -> Iterator[Finding]:
    """A language or tone that a scripted user of the domain could not speak in."""
    for field in ("language", "tone"):
        voice = getattr(persona, field)
        if voice is not None and voice not in script.voices:
            yield Finding((field,), f"{unknown('voice', voice, script.voices)} (see user.voices)")


def _own_ears(persona: PersonaSpec, script: UserScriptSpec) -> Iterator[Finding]:
    """Acts that a persona knows in a way of her own, and nobody else knows at all."""
    for act in persona.understands:
        if act not in script.understands:
            message = f"{unknown('act', act, script.understands)} (see user.understands)"
            yield Finding((act,), message, True)
    yield from _empty_phrases(persona.understands)


def _understands(script: UserScriptSpec) -> Iterator[Finding]:
    for act in script.understands:
        if act not in _AGENT_ACTS and not act.startswith(("ask:", "do:")):
            known = [*_AGENT_ACTS, "ask:<fact>", "do:<action>"]
            yield Finding((act,), unknown("act", act, known), True)
    yield from _empty_phrases(script.understands)


def _empty_phrases(understands: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for act, phrases in understands.items():
        for index, phrase in enumerate(phrases):
            if not phrase.strip():
                yield Finding((act, index), "an empty phrase is in every message; write words")


def _facts_spoken_of(domain: DomainSpec) -> list[str]:
    """Facts that the domain's language can ask for, tell or use."""
    assert domain.user is not None
    acts = list(domain.user.understands)
    facts = [act.removeprefix("ask:") for act in acts if act.startswith("ask:")]
    of_personas = (persona.phrasings for persona in domain.personas.values())
    for phrasings in (domain.user.phrasings, *domain.user.voices.values(), *of_personas):
        for told in phrasings.values():
            facts += [act.removeprefix("tell:") for act in told if act.startswith("tell:")]
            facts += [fact for templates in told.values() for t in templates for fact in slots(t)]
    return sorted(set(facts))
