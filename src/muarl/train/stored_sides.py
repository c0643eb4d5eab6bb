"""Read what runs left of their evaluations, to be compared: who played, with whom, and how well."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from muarl.domain.content import changes
from muarl.errors import RecordError, UsageError, did_you_mean
from muarl.evaluate.contamination import Contamination, contamination
from muarl.evaluate.floor import above_floor
from muarl.evaluate.sides import Kind, Place, Side, Task
from muarl.evaluate.statistics import Interval
from muarl.evaluate.summary import EvalSummary, succeeded, summarise
from muarl.record import TRAIN, Episode, StoredEpisodes
from muarl.record.odd_files import refuse_no_run, refuse_odd_files
from muarl.spec import Located, RunSpec, load_spec
from muarl.spec.grid import sides_of
from muarl.train.run_folder import RunFolder
from muarl.train.said import RESULT, said_of, user_of_grid
from muarl.train.trained_before import other_than_seed, training_of
from muarl.world import Change, diff

_SHOWN = 5
"""Changes that a message names."""

_BESIDE_PLAY = {"concurrency", "group_size", "at_once", "draws", "perturb", "temperature"}
"""Fields of `rollout` by which no dialogue of an evaluation goes otherwise."""


class StoredSide(NamedTuple):
    """One phase of one run.

    Attributes:
        side: What was played, as it is compared.
        folder: The run's.
        phase: Its name in the journal.
        summary: All else that an evaluation says.
        above_floor: As of `Cell`; None where no policy without skill played.
        floor: Likewise.
        contamination: What of the tasks the policy was trained on.
        observed: What was measured as it played; empty where nobody did.
        training: The run that made the policy; None where none is known.
        of: Which of that run's weights: `model`, `cold_start`, ...
        plays: What makes dialogues go otherwise: limits and user.
        notes: What a reader should know of it, in sentences.
    """

    side: Side
    folder: Path
    phase: str
    summary: EvalSummary
    above_floor: Interval | None
    floor: Interval | None
    contamination: Contamination
    observed: dict[str, Any]
    training: Located[RunSpec] | None
    of: str
    plays: dict[str, Any]
    notes: list[str]


def stored_sides(runs: Sequence[Path], phases: Sequence[str] = ()) -> list[StoredSide]:
    """Read runs.

    Args:
        runs: Their folders.
        phases: Of each; none: the one evaluation that counts, which is that of the trained policy at the
            first temperature.

    Raises:
        UsageError: A folder is not a run's, has no such phase or several, or is all there is.
        RecordError: One is damaged, or nothing of it was scored.
        SpecError: A run's spec is spoiled.
    """
    real = [os.path.realpath(run) for run in runs]
    for place, run in enumerate(runs):
        if real[place] in real[:place]:
            raise UsageError(f"{run} is named twice; name each run once")
    if twice := [phase for phase in phases if phases.count(phase) > 1]:
        raise UsageError(f"phase {twice[0]!r} is named twice; name each phase once")
    found = [side for run in runs for side in _of_run(run, phases)]
    if len(found) < 2:
        raise UsageError(
            f"{found[0].side.name} is all there is: name another run, or several phases of this one with "
            "--phase"
        )
    return found


def kinds_of(sides: Sequence[StoredSide]) -> list[Kind]:
    """Put together what differs only by the seed of the training that made it."""
    groups: list[list[StoredSide]] = []
    for side in sides:
        for group in groups:
            if _alike(side, group[0]) and all(side.side.seed != one.side.seed for one in group):
                group.append(side)
                break
        else:
            groups.append([side])
    return [Kind(group[0].side.name, [one.side for one in group]) for group in groups]


def _alike(one: StoredSide, other: StoredSide) -> bool:
    if one.training is None or other.training is None:
        return False
    if (one.phase, one.of, one.plays) != (other.phase, other.of, other.plays):
        return False
    return not other_than_seed([one.training, other.training])


def notes_of(sides: Sequence[StoredSide]) -> Iterator[str]:
    """What a reader should know of sides and of their being compared, in sentences."""
    first, *others = sides
    for side in sides:
        for note in side.notes:
            yield f"{side.side.name}: {note}"
    for other in others:
        differ = list(map(_in_words, diff(first.plays, other.plays)))
        if differ:
            more = f", and {len(differ) - _SHOWN} more" if len(differ) > _SHOWN else ""
            yield (
                f"{other.side.name} was played otherwise than {first.side.name}, and what is compared is "
                f"that, too: {'; '.join(differ[:_SHOWN])}{more}"
            )


def what_changed(sides: Iterable[StoredSide], one: str, other: str) -> str:
    """What of the domain changed between two sides, by their names; "" where that is not known."""
    folders = {side.side.name: side.folder for side in sides}
    tables = []
    for name in (one, other):
        try:
            table = RunFolder(folders[name]).domain.read_bytes()
            tables.append(msgspec.json.decode(table, type=dict[str, Any]))
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ""
    words = changes(*tables)
    more = f", and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more


def _of_run(run: Path, phases: Sequence[str]) -> Iterator[StoredSide]:
    folder = RunFolder(run)
    refuse_no_run(run, folder.journal.name, folder.spec.name)
    refuse_odd_files(run)
    spec = load_spec(folder.spec, RunSpec)
    there = {head.key.phase for head in StoredEpisodes([folder.journal]).heads()}
    if not there:
        raise RecordError(f"{run}: no episode is finished")
    lines = list(folder.lines())
    for phase in phases or [_headline(run, spec.spec, there)]:
        if phase not in there:
            hint = did_you_mean(phase, there) or f"; its phases: {', '.join(sorted(there))}"
            raise UsageError(f"{run}: no episode is of phase {phase!r}{hint}")
        if phase == TRAIN:
            raise UsageError(
                f"{run}: in phase {phase!r} the policy changes as it learns; compare evaluations"
            )
        yield _side(folder, spec, phase, lines, several=len(phases) > 1)


def _headline(run: Path, spec: RunSpec, there: set[str]) -> str:
    """The phase whose success a run is known by."""
    temperature = f"T{spec.eval.temperatures[0]:g}"
    for name in ("final", "model"):
        if (phase := f"eval:{name}:{temperature}") in there:
            return phase
    candidates = sorted(phase for phase in there if _is_evaluation(phase))
    if len(candidates) == 1:
        return candidates[0]
    which = ", ".join(candidates) if candidates else f"none of {', '.join(sorted(there))} is one"
    raise UsageError(f"{run}: say with --phase which evaluation counts: {which}")


def _is_evaluation(phase: str) -> bool:
    return phase.startswith("eval:") or phase == "rollout" or sides_of(phase) is not None


def _side(
    folder: RunFolder,
    spec: Located[RunSpec],
    phase: str,
    lines: list[dict[str, Any]],
    *,
    several: bool,
) -> StoredSide:
    tries: defaultdict[Place, list[bool]] = defaultdict(list)
    tasks: dict[str, Task] = {}

    def read() -> Iterator[Episode]:
        for episode in StoredEpisodes([folder.journal], [phase]):
            task = episode.key.task_id
            was = Task(episode.domain, episode.task_hash, episode.content_hash)
            if tasks.setdefault(task, was) != was:
                raise RecordError(
                    f"{folder.path}: task {task!r} changed while {phase} was played, and half of its "
                    "dialogues are of each. Play it anew with --overwrite"
                )
            if not episode.outcome.is_fault and episode.reward is not None:
                tries[task, episode.user].append(succeeded(episode))
            yield episode

    summary = summarise(read(), seed=spec.spec.seed)
    name = f"{folder.path} ({phase})" if several else str(folder.path)
    if not tries:
        raise RecordError(
            f"{name}: all {summary.faults} dialogues are faults, so that nothing was scored. `muarl eval` "
            "plays them anew"
        )
    model = _model(folder, phase)
    training = None if model is None else training_of(model)
    of = phase if model == folder.path else "" if model is None else model.name
    said = said_of(folder, lines, phase)
    floor = said.floor
    tag = said.contamination or _tag(model == folder.path, spec.spec, lines, len(tasks))
    return StoredSide(
        side=Side(name, dict(tries), tasks, None if training is None else training.spec.seed),
        folder=folder.path,
        phase=phase,
        summary=summary,
        above_floor=None if floor is None else above_floor(summary.success, floor),
        floor=floor,
        contamination=tag,
        observed=said.observed,
        training=training,
        of=of,
        plays=_plays(folder, spec.spec, phase),
        notes=list(_notes(folder, spec.spec, phase, summary)),
    )


def _model(folder: RunFolder, phase: str) -> Path | None:
    """Whose weights played: a run's own folder, the folder that it was given, or None for neither."""
    plan = folder.said_plan()
    if (sides := sides_of(phase)) is not None:
        policy = plan.get(f"grid.policies.{sides[0]}")
    else:
        policy = plan.get("policy")
    if policy is not None:  # of rules not a path, of several trainings no single one
        return Path(policy) if Path(policy).is_dir() else None
    own = phase.startswith("eval:") and training_of(folder.path) is not None
    return folder.path if own else None


def _tag(own: bool, spec: RunSpec, lines: list[dict[str, Any]], evaluated: int) -> Contamination:
    """Of a run of before that tag: it refused what overlaps with its own training, or owned up to it."""
    if not own:
        return contamination(evaluated, None)
    shared = [int(each.get("shared", 0)) for each in lines if each["kind"] == "overlap"]
    return contamination(evaluated, *shared[:1] or [0], from_outside=spec.model.path is not None)


def _plays(folder: RunFolder, spec: RunSpec, phase: str) -> dict[str, Any]:
    user: Any = spec.user if phase == "rollout" else spec.eval_user
    if (sides := sides_of(phase)) is not None:
        user = user_of_grid(folder, sides[1])
    else:
        user = user.model_dump(mode="json", exclude_none=True)
    return {
        "user": user,
        "rollout": spec.rollout.model_dump(mode="json", exclude=_BESIDE_PLAY),
        "temperature": _temperature(folder, spec, phase),
    }


def _temperature(folder: RunFolder, spec: RunSpec, phase: str) -> float | None:
    """At which its policy was sampled; None of an expert, who is not sampled."""
    if phase == "rollout":
        return None if folder.said_plan().get("policy") == "expert" else spec.rollout.temperature
    if sides_of(phase) is not None:
        return spec.eval.temperatures[0]
    said = re.search(r":T([\d.e+-]+)$", phase)
    return float(said[1]) if said else None


def _in_words(change: Change) -> str:
    """What a run did otherwise than another."""
    before, after = (_shown(value) for value in (change.before, change.after))
    return f"{change.path} is {after}, and there {before}"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value)


def _notes(folder: RunFolder, spec: RunSpec, phase: str, summary: EvalSummary) -> Iterator[str]:
    if sides_of(phase) is not None and not (folder.path / RESULT).is_file():
        yield f"unfinished: the grid has no {RESULT} yet, which says what it was trained on"
    played = summary.n + summary.faults
    planned = spec.eval.dialogues if phase.startswith("eval:") else played
    if played < planned:
        yield (
            f"unfinished: {played:,} of {planned:,} dialogues; those that are short come first, which "
            "are not like the rest"
        )
    if summary.faults:
        yield f"{summary.faults:,} of {played:,} dialogues are faults and do not count"
