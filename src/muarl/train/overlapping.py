"""What a run trains on and must not: refused, or accepted for a reason that stands in its metrics (L10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muarl.data.item_sets import items_of
from muarl.errors import SetupError, UsageError
from muarl.evaluate.contamination import Contamination, contamination
from muarl.evaluate.held_out import seen_in_run, training_splits
from muarl.evaluate.seen import Seen
from muarl.overlap import Item, Overlap, between, of_dialogue, of_task
from muarl.spec import Located, RunSpec, TaskSpec
from muarl.spec.finding import Finding
from muarl.suite import AnyDomain
from muarl.synth.chat_file import ChatDialogue
from muarl.train.progress import Progress
from muarl.train.run_folder import RunFolder

KIND = "overlap"
"""Of the lines in a run's metrics: `against`, `shared` of `tasks` looked at, `exact`, `pairs` (the first),
`accepted`."""

_NAMED = 5
_KEPT = 1000
"""Pairs that the metrics hold of one set."""


def overlap_findings(run: Located[RunSpec], domain: AnyDomain) -> Iterator[Finding]:
    """Sets that are to stay unseen, and that the training tasks overlap with."""
    if run.spec.overlap.accepted is not None:
        return
    for name, found in _against(run, domain):
        if found.pairs:
            named = ", ".join(f"{pair.item!r} like {pair.like!r}" for pair in found.pairs[:_NAMED])
            message = (
                f"what is trained on overlaps with {name!r}: of its items {found} such as {named}; "
                "train on other tasks, or say under `overlap.accepted` why this is meant"
            )
            yield Finding(("overlap", "against", name), message)


def tasks_played(
    dialogues: Sequence[ChatDialogue], tasks: Sequence[TaskSpec], domain: AnyDomain
) -> list[str]:
    """The task of each dialogue that is on one of some tasks.

    Where a dialogue bears the hash of a task of the domain, that says which; else what is done in it does.
    """
    known = {task.situation_hash for split in domain.splits for task in domain.tasks(split)}
    by_hash = {task.situation_hash: task.id for task in tasks}
    named = [str(dialogue.provenance.get("task_hash")) for dialogue in dialogues]
    unnamed = [
        _item(str(number), dialogue)
        for number, dialogue in enumerate(dialogues)
        if named[number] not in known
    ]
    like = between(list(map(of_task, tasks)), unnamed).pairs if unnamed else ()
    return [by_hash[said] for said in named if said in by_hash] + [
        pair.like for pair in like if "exact" in pair.levels
    ]


def _item(name: str, dialogue: ChatDialogue) -> Item:
    said = [message.content for message in dialogue.messages if message.role == "user"]
    calls = [(c.name, c.arguments) for message in dialogue.messages for c in message.tool_calls]
    return of_dialogue(name, "\n".join(said), calls)


def own_up(run: Located[RunSpec], domain: AnyDomain, folder: RunFolder, progress: Progress) -> None:
    """Say what is trained on although it must not be, as the run begins and once in its metrics."""
    known = any(line["kind"] == KIND for line in folder.lines())
    for line in () if known else overlap_lines(run, domain):
        folder.log(KIND, **line)
        progress.note(
            f"{line['shared']} of {line['tasks']} items of {line['against']} overlap with what is trained "
            f"on; accepted: {line['accepted']}"
        )


def overlap_lines(run: Located[RunSpec], domain: AnyDomain) -> Iterator[dict[str, Any]]:
    """What a run that accepts an overlap has to say of it, a line for each set."""
    reason = run.spec.overlap.accepted
    if reason is None:
        return
    yield seen_line(_evaluated(run.spec), seen_in_run(domain, run.spec), reason)
    for name, found in _against(run, domain):
        yield {
            "against": name,
            "shared": len(found.pairs),
            "tasks": found.second,
            "exact": found.counts["exact"],
            "pairs": [[pair.item, pair.like] for pair in found.pairs[:_KEPT]],
            "accepted": reason,
        }


def seen_line(against: str, seen: Seen, reason: str) -> dict[str, Any]:
    """What of an evaluation is trained on, as such a line.

    Args:
        against: What is evaluated.
        seen: What of it is trained on.
        reason: Why that is accepted.
    """
    return {
        "against": against,
        "shared": len(seen.pairs),
        "tasks": seen.evaluated,
        "exact": len(seen.same),
        "pairs": list(map(list, seen.pairs.items()))[:_KEPT],
        "accepted": reason,
    }


def contamination_in_run(run: RunSpec, domain: AnyDomain, folder: RunFolder) -> Contamination:
    """What of its evaluation the policy was trained on that a run trains, by what the run owned up to."""
    evaluated = len(domain.tasks(run.eval.split)[: run.eval.episodes])
    lines = (line for line in folder.lines() if line["kind"] == KIND)
    shared = [line["shared"] for line in lines if line["against"] == _evaluated(run)]
    return contamination(evaluated, *shared[:1] or [0], from_outside=run.model.path is not None)


def _evaluated(run: RunSpec) -> str:
    return f"split {run.eval.split}, which is evaluated"


def _against(run: Located[RunSpec], domain: AnyDomain) -> Iterator[tuple[str, Overlap]]:
    sets = run.spec.overlap.against
    if not sets:
        return
    splits = sorted(training_splits(run.spec))
    practised = [of_task(task) for split in splits for task in domain.tasks(split)]
    if run.spec.cold_start is not None and run.spec.cold_start.file is not None:
        practised += items_of(str(run.resolve(run.spec.cold_start.file)))
    for name, path in sets.items():
        try:
            unseen = items_of(str(run.resolve(path)))
        except (SetupError, UsageError) as error:
            run.refuse([Finding(("overlap", "against", name), str(error))])
            raise
        yield name, between(practised, unseen)
