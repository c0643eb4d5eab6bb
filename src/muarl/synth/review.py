"""A queue of dialogues for people: a page to read them in, and their reviews taken back.

The page is one file that fetches nothing (`muarl.report.page` says how). It does not show what the
checks found, so that nobody is led by it.
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import structs

from muarl.errors import RecordError
from muarl.opened_file import opened_file
from muarl.record import Episode, EpisodeKey
from muarl.report.inline import inline_json, source_hash
from muarl.reward import transcript_of
from muarl.spec import TaskSpec
from muarl.synth.agreement import Agreement, agreement
from muarl.synth.verify import REVIEW, SELECT, Review, Verdict

Which = Literal["kept", "refused", "all"]

CHECKS = "the checks"
"""What all that is no person is called beside reviewers."""


class _Reviewed(msgspec.Struct):
    key: EpisodeKey
    accepts: bool
    comment: str = ""


class ReviewFile(msgspec.Struct, forbid_unknown_fields=True):
    """What one person found, as the page saves it.

    Attributes:
        version: Of this form.
        reviewer: Her name.
        reviews: By dialogue.
    """

    version: Literal[1]
    reviewer: str
    reviews: list[_Reviewed]


def queue(
    verdicts: Mapping[EpisodeKey, Verdict], which: Which, count: int, seed: int
) -> list[EpisodeKey]:
    """Some dialogues, drawn by chance: those that may be handed over, those the checks refused, or of all."""

    def fits(verdict: Verdict) -> bool:
        match which:
            case "all":
                return True
            case "kept":
                return verdict.stage in ("", REVIEW)
            case "refused":
                return not by_checks(verdict)

    chosen = [key for key, verdict in verdicts.items() if fits(verdict)]
    return random.Random(seed).sample(chosen, min(count, len(chosen)))


def by_checks(verdict: Verdict) -> bool:
    """Whether a dialogue passed all checks, be it rejected by a person or not selected afterwards."""
    return verdict.stage in ("", REVIEW, SELECT)


def page(title: str, dialogues: Iterable[tuple[Episode, TaskSpec]]) -> str:
    """The page that shows dialogues, one after another."""
    data = {
        "dialogues": [
            {
                "key": msgspec.to_builtins(episode.key),
                "task": episode.key.task_id,
                "goal": task.goal,
                "lines": [("rules", episode.system), *transcript_of(episode)],
            }
            for episode, task in dialogues
        ]
    }
    style, script = _asset("review.css"), _asset("review.js")
    parts = {
        "title": html.escape(title),
        "script_hash": source_hash(script),
        "style_hash": source_hash(style),
        "style": style,
        "script": script,
        "data": inline_json(data),
    }
    # One pass over the template only: what is put in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], _asset("review.html"))


def _asset(name: str) -> str:
    return resources.files("muarl.synth").joinpath("assets", name).read_text(encoding="utf-8")


def read_reviews(path: Path) -> ReviewFile:
    """What a page saved.

    Raises:
        RecordError: The file cannot be read, or is none.
    """
    try:
        with opened_file(path) as file:
            found = msgspec.json.decode(file.read(), type=ReviewFile)
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(
            f"{path}: expected reviews as the page saves them ({{version, reviewer, reviews}}): {error}"
        ) from error
    reviewer = " ".join(found.reviewer.split())
    if not reviewer:
        raise RecordError(f"{path}: `reviewer` is empty; whose reviews are these?")
    if reviewer == CHECKS:
        raise RecordError(f"{path}: no person is called {CHECKS!r}, as the checks are")
    said: dict[EpisodeKey, bool] = {}
    for one in found.reviews:
        if said.setdefault(one.key, one.accepts) != one.accepts:
            raise RecordError(f"{path}: {reviewer} both accepts and rejects {one.key}")
    return structs.replace(found, reviewer=reviewer)


def taken(
    verdicts: Mapping[EpisodeKey, Verdict], files: Sequence[tuple[Path, ReviewFile]]
) -> dict[EpisodeKey, Verdict]:
    """The verdicts with what people found; the last word of each reviewer counts.

    Raises:
        RecordError: A review is of a dialogue that is not there.
    """
    found = dict(verdicts)
    for path, file in files:
        for review in file.reviews:
            if review.key not in found:
                raise RecordError(
                    f"{path}: {review.key} is not in this folder; reviews belong to the folder whose page "
                    "they were made with"
                )
            said = Review(file.reviewer, review.accepts, review.comment)
            before = found[review.key]
            others = tuple(one for one in before.reviews if one.reviewer != file.reviewer)
            found[review.key] = with_reviews(before, (*others, said))
    return found


def with_reviews(verdict: Verdict, reviews: tuple[Review, ...]) -> Verdict:
    """A verdict with what people found: one who rejects a dialogue leaves it out."""
    if verdict.stage not in ("", REVIEW):
        return structs.replace(verdict, reviews=reviews)
    refused = next((one for one in reviews if not one.accepts), None)
    return structs.replace(
        verdict,
        reviews=reviews,
        stage=REVIEW if refused else "",
        kind="rejected by a reviewer" if refused else "",
        reason=f"{refused.reviewer}: {refused.comment}" if refused else "",
    )


def agreements(verdicts: Iterable[Verdict]) -> dict[str, Agreement]:
    """How far each two reviewers agree, and each with the checks, by "one, other"."""
    said: dict[str, dict[EpisodeKey, bool]] = {}
    checks: dict[EpisodeKey, bool] = {}
    for verdict in verdicts:
        checks[verdict.key] = by_checks(verdict)
        for review in verdict.reviews:
            said.setdefault(review.reviewer, {})[verdict.key] = review.accepts
    everyone = {**dict(sorted(said.items())), CHECKS: checks}
    found: dict[str, Agreement] = {}
    for (one, first), (other, second) in combinations(everyone.items(), 2):
        common = first.keys() & second.keys()
        found[f"{one}, {other}"] = agreement(
            [(first[key], second[key]) for key in sorted(common, key=str)]
        )
    return found


def as_json(found: Mapping[str, Agreement]) -> dict[str, Any]:
    """Agreements, for `--json`."""
    return {name: msgspec.to_builtins(one) for name, one in found.items()}
