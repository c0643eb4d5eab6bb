"""The labelled dialogues, and how far what is computed from them is what their reader saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from muarl.measure import Line, Transcript, View
from muarl.measure.asking import answer_to
from muarl.measure.cues import AGENT, USER
from muarl.measure.transcript import Fact, Goal, ToolUse

FILE = Path(__file__).with_name("labelled_dialogues.yaml")
PARTS = ("seen", "held_back")
CUES = {"u": {*USER, "ask", "close"} - {"thanks", "farewell"}, "a": {*AGENT, "ask"}}
"""Labels that text patterns are held against."""


@dataclass
class Labelled:
    """One dialogue.

    Attributes:
        part: "seen" or "held_back".
        transcript: The dialogue.
        labels: What its reader saw, line by line.
    """

    part: str
    transcript: Transcript
    labels: list[tuple[str, frozenset[str]]] = field(default_factory=list)


def load(path: Path = FILE) -> list[Labelled]:
    """The dialogues of the file."""
    return [_dialogue(entry) for entry in YAML(typ="safe").load(path)]


def _dialogue(entry: dict[str, Any]) -> Labelled:
    facts = {
        name: Fact(
            name,
            str(value),
            "never"
            if name in entry.get("never", ())
            else "on_request"
            if name in entry.get("on_request", ())
            else "volunteer",
        )
        for name, value in entry["facts"].items()
    }
    goals = tuple(
        Goal(
            facts=tuple(facts[name] for name in goal["has"]),
            calls=() if goal.get("refused") else (ToolUse(f"fulfil_{place}"),),
            instead=tuple(Fact(name, str(v)) for name, v in goal.get("instead", {}).items()),
        )
        for place, goal in enumerate(entry["goals"])
    )
    found = Labelled(
        entry["part"],
        Transcript(
            id=entry["id"],
            task=entry["id"],
            lines=(),
            facts=tuple(f for f in facts.values() if all(f not in g.facts for g in goals)),
            goals=goals,
            changes_mind=entry.get("changes_mind", False),
        ),
    )
    lines = []
    for said in entry["says"].strip().splitlines():
        head, _, text = said.partition("|")
        speaker, *labels = head.split()
        if unknown := {x for x in labels if x.isalpha()} - {
            *CUES[speaker], "stop", "early", "ungrounded",
        }:  # fmt: skip
            raise ValueError(f"{entry['id']}: no such labels: {unknown}")
        uses = tuple(ToolUse(f"fulfil_{x[5:]}") for x in labels if x.startswith("does:"))
        lines.append(
            Line(
                "user" if speaker == "u" else "agent",
                text.strip(),
                stop="stop" in labels,
                uses=uses,
            )
        )
        found.labels.append((speaker, frozenset(labels)))
    values = {name: getattr(found.transcript, name) for name in Transcript.__struct_fields__}
    found.transcript = Transcript(**(values | {"lines": tuple(lines)}))
    return found


def cue_counts(dialogues: Iterable[Labelled]) -> dict[str, Counter[str]]:
    """For each pattern, how often it was right, found too much, and missed something."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, speaker, labels, computed in _turns(dialogues):
        for cue in CUES[speaker]:
            kind = {(True, True): "right", (False, True): "too_much", (True, False): "missed"}.get(
                (cue in labels, cue in computed)
            )
            if kind:
                found[f"{speaker}:{cue}"][kind] += 1
    return dict(found)


def mistakes(dialogues: Iterable[Labelled]) -> Iterator[str]:
    """Each line that a pattern reads otherwise, for those who mend patterns."""
    for where, speaker, labels, computed in _turns(dialogues):
        wanted = labels & CUES[speaker]
        if wrong := wanted ^ computed:
            yield f"{where}: {sorted(wrong)}, wanted {sorted(wanted)}"


def _turns(
    dialogues: Iterable[Labelled],
) -> Iterator[tuple[str, str, frozenset[str], frozenset[str]]]:
    for dialogue in dialogues:
        view = View(dialogue.transcript)
        turns = {"u": iter(view.user), "a": iter(view.agent)}
        for (speaker, labels), line in zip(dialogue.labels, view.transcript.lines, strict=True):
            where = f"{view.transcript.id} {line.text!r}"
            yield where, speaker, labels, next(turns[speaker]).cues


def f1(counts: Iterable[Counter[str]]) -> float:
    """F1 of all decisions together (micro average)."""
    total: Counter[str] = sum(counts, Counter())
    return 2 * total["right"] / (2 * total["right"] + total["too_much"] + total["missed"])


def miscounted(dialogues: Iterable[Labelled]) -> list[str]:
    """Where what is counted by the ledger is not what the reader counted, line by line."""
    found = []
    for dialogue in dialogues:
        view = View(dialogue.transcript)
        user, agent = iter(view.user), iter(view.agent)
        facts = {}
        for fact in view.facts:
            facts.setdefault(fact.id, []).append(fact)
        for number, (speaker, labels) in enumerate(dialogue.labels):
            if speaker == "a":
                computed = {f"?{name}" for name in next(agent).asks_for}
                wanted = {x for x in labels if x.startswith("?")}
            else:
                turn = next(user)
                computed = {_told(fact, turn.unasked) for fact in turn.tells}
                computed |= {"ungrounded"} if turn.ungrounded else set()
                computed |= {"early"} if turn.stop and turn.unsettled else set()
                for name in turn.heard.asks_for if turn.heard else ():
                    told = [fact for fact in facts[name] if fact in turn.tells]
                    kind = answer_to((told or facts[name])[0], turn)
                    computed.add(f"={'answered' if kind == 'told' else kind}")
                wanted = {x for x in labels if not x.isalpha() or x in ("ungrounded", "early")}
            if computed != wanted:
                found.append(
                    f"{dialogue.transcript.id}:{number} counted {sorted(computed - wanted)}, "
                    f"not {sorted(wanted - computed)}: {dialogue.transcript.lines[number].text}"
                )
    return found


def _told(fact: Fact, unasked: Iterable[Fact]) -> str:
    if fact.disclose == "never":
        return f"~{fact.id}"
    return f"{'!' if fact.disclose == 'on_request' and fact in unasked else '+'}{fact.id}"
