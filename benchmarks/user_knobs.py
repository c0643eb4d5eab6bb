"""Whether a user's knobs do what they say: rates that were asked for, and those that episodes give back.

    python benchmarks/user_knobs.py --json

Each knob is set to each rate in 400 dialogues of the desk's scripted users with the desk's oracle, on
tasks in which the knob has a chance. `recovered` is the rate that the episodes tell: acts by chances,
from `UserReply.knobs` and `UserReply.chances`; `chances` is their number. What a knob does is looked
for in the replies themselves too, without regard to what the user recorded: `unseen` counts the acts
by which the two differ, over everything, and is 0. `max_error` is the largest distance of a recovered
rate from the one that was asked for. `oracle_success` is the lowest share of the dialogues of a setting
in which the oracle earned reward 1, over all knobs but `abandon`, which leaves.

False claims need an agent that makes them: `accept_false` and `challenge_done` are played with the
oracle for its success, and with one that says something false before each true question for the rate.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from muarl.domain import Domain, load_domain
from muarl.messages import Message
from muarl.record import Episode, UserReply
from muarl.spec import KnobsSpec, TaskSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.testing import play_agents

DESK = Path(__file__).resolve().parent.parent / "domains" / "desk"
RATES = (0.0, 0.2, 0.5)
KNOBS = tuple(name for name in KnobsSpec.model_fields if name != "abandon_after")
FALSE = {"accept_false": "Cancel Z00. Shall I go ahead?", "challenge_done": "Done. Anything else?"}
"""Knobs that answer a false claim, and the claim."""
ACTS = {
    "partial": "partly:",
    "unsure": "unknown",
    "refuse": "refuse",
    "silence": "silence",
    "digress": "digress",
    "unavailable": "unavailable",
    "push_back": "push_back",
    "challenge_done": "challenge",
    "change_request": "change",
    "abandon": "abandon",
}
"""Knobs that show in an act of their own, on the tasks that are played here."""


class Misstater:
    """The oracle, but it says something false before each of its questions for a yes."""

    def __init__(self, oracle: Any, claim: str) -> None:
        self._oracle = oracle
        self._claim = claim
        self._misstated: set[str] = set()

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        said: Message = self._oracle.act(history)
        if not said.content.endswith("Shall I go ahead?") or said.content in self._misstated:
            return said
        self._misstated.add(said.content)
        return Message("assistant", self._claim)


class Bench:
    """The desk with its oracle, and so many dialogues of each setting."""

    def __init__(self, dialogues: int, seed: int) -> None:
        located = load_domain(DESK).located
        spec = located.spec.model_copy(update={"expert": "oracle.py:Oracle"})
        self._domain = Domain(replace(located, spec=spec))
        self._dialogues = dialogues
        self._seed = seed

    def tasks(self, name: str) -> list[TaskSpec]:
        """Tasks in which a knob has a chance."""
        found = [task for task in self._domain.tasks("train") if has_chance(name, task)]
        return (found * (1 + self._dialogues // len(found)))[: self._dialogues]

    async def play(
        self, tasks: Sequence[TaskSpec], knobs: KnobsSpec, claim: str = ""
    ) -> list[Episode]:
        """Dialogues of tasks; where there are fewer tasks than dialogues, each is played again."""
        laps = Counter(task.id for task in tasks)
        user = UserSpec(scripted=ScriptedUserSpec(knobs=knobs))

        def agent(task: TaskSpec, rng: random.Random) -> Any:
            oracle = self._domain.expert(task, {}, rng)
            return Misstater(oracle, claim) if claim else oracle

        played: list[Episode] = []
        for lap in range(max(laps.values())):
            once = {task.id: task for task in tasks if laps[task.id] > lap}
            seed = self._seed + lap
            played += await play_agents(
                self._domain, list(once.values()), agent, user=user, seed=seed
            )
        return played


def has_chance(name: str, task: TaskSpec) -> bool:
    """Whether a knob has a chance in a task, whatever else happens."""
    assert task.user is not None
    requests, persona = task.user.requests, task.personas[0]
    refused = len(task.gold) < len(requests)
    match name:
        case "push_back":
            return refused
        case "no_follow_up":
            return len(requests) > 1
        case "change_request":
            return persona == "fickle" or (len(requests) > 1 and not refused)
        case "partial" | "unsure" | "refuse":
            return persona == "terse"  # she is asked for the order; the forgetful one knows none
        case "withhold":
            return persona in ("plain", "fickle")
        case "challenge_done" | "accept_false" | "abandon":
            return not refused
    return True


def replies(episode: Episode) -> list[UserReply]:
    """All that the user said."""
    return [episode.opening, *(turn.reply for turn in episode.turns if turn.reply is not None)]


def seen(name: str, episode: Episode, plain: Episode) -> int:
    """How often a knob's act shows in a dialogue; `plain` is the same one without it."""
    said = replies(episode)
    if name in ACTS:
        return sum(reply.act.startswith(ACTS[name]) for reply in said)
    if name == "accept_false":
        heard = [turn.message.content for turn in episode.turns if turn.reply is not None]
        answers = zip(heard, said[1:], strict=True)
        return sum(text == FALSE[name] and reply.act == "confirm" for text, reply in answers)
    if name == "withhold":
        entries = [
            reply for reply in said if reply.act in ("open", "next", "change", "accept_refusal")
        ]
        return sum(not any(letter.isdigit() for letter in reply.text) for reply in entries)
    if name == "no_follow_up":
        return int(not any(reply.act in ("next", "accept_refusal") for reply in said))
    assert name == "typos"
    both = zip(said, replies(plain), strict=True)  # the oracle reads them as if they were none
    return sum(reply.text != without.text for reply, without in both)


def count(episodes: Iterable[Episode]) -> tuple[Counter[str], Counter[str]]:
    """Acts and chances of knobs, as recorded."""
    acted: Counter[str] = Counter()
    chances: Counter[str] = Counter()
    for episode in episodes:
        for reply in replies(episode):
            acted.update(reply.knobs)
            chances.update(reply.chances)
    return acted, chances


async def measure(bench: Bench, names: Sequence[str]) -> dict[str, Any]:
    """All settings."""
    settings: dict[str, Any] = {}
    unseen = 0
    success = 1.0
    for name in names:
        tasks = bench.tasks(name)
        after = {"abandon_after": 1} if name == "abandon" else {}
        plain: list[Episode] = []
        for rate in RATES:
            knobs = KnobsSpec.model_validate({name: rate, **after})
            episodes = await bench.play(tasks, knobs, FALSE.get(name, ""))
            plain = plain or episodes
            acted, chances = count(episodes)
            shown = sum(seen(name, *pair) for pair in zip(episodes, plain, strict=True))
            unseen += abs(shown - acted[name])
            recovered = acted[name] / chances[name]
            settings[f"{name}={rate:g}"] = {
                "recovered": round(recovered, 4),
                "error": round(abs(recovered - rate), 4),
                "chances": chances[name],
            }
            served = await bench.play(tasks, knobs) if name in FALSE else episodes
            won = sum(episode.reward == 1 for episode in served) / len(served)
            if name != "abandon":
                success = min(success, won)
            settings[f"{name}={rate:g}"]["oracle"] = round(won, 4)
            print(f"{name}={rate:g}: {settings[f'{name}={rate:g}']}", file=sys.stderr)
    return {
        "max_error": max(setting["error"] for setting in settings.values()),
        "oracle_success": success,
        "unseen": unseen,
        "settings": settings,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--dialogues", type=int, default=400, help="of each setting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--knob", action="append", choices=KNOBS, help="only this one")
    args = parser.parse_args()
    began = time.monotonic()
    found = anyio.run(measure, Bench(args.dialogues, args.seed), args.knob or KNOBS)
    figures = {
        "benchmark": "user_knobs",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "dialogues": args.dialogues,
        "seed": args.seed,
        "wall_s": round(time.monotonic() - began, 1),
        **found,
    }
    print(json.dumps(figures, indent=None if args.json else 2))


if __name__ == "__main__":
    main()
