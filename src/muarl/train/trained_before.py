"""What run made a model, and which of the tasks of an evaluation it trained the model on (law L10)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from muarl.errors import Problem
from muarl.evaluate.contamination import Contamination, contamination, of_all
from muarl.evaluate.held_out import (
    evaluation_tasks,
    refuse_near,
    refuse_same,
    training_splits,
)
from muarl.evaluate.seen import Seen, Tasks, seen_elsewhere, seen_tasks
from muarl.spec import Located, RunSpec, load_spec
from muarl.suite import AnyDomain, Suite, load_any_domain
from muarl.train.run_folder import RunFolder
from muarl.world import diff

_BESIDE = {"seed", "eval", "threads"}


def training_of(model: Path) -> Located[RunSpec] | None:
    """The run that made a model; None where no run is known of.

    Args:
        model: A run's folder, or `model/`, `cold_start/` or the like in it.

    Raises:
        SpecError: The spec that the run left beside the model cannot be read.
    """
    for folder in (model, model.resolve().parent):
        spec = RunFolder(folder).spec
        if spec.is_file():
            found = load_spec(spec, RunSpec)
            # A run that only played, such as an evaluation, made no model.
            return found if found.spec.trained_on() else None
    return None


def refuse_trained_tasks(run: Located[RunSpec], domain: AnyDomain, model: Path) -> Seen | None:
    """Refuse to evaluate a run's model on tasks that the run trained it on, or on nearly the same.

    Tasks of another domain are looked at where one of both is a suite, for suites share domains.

    Returns:
        What of the evaluation was trained on, which is something only where the run accepts that; None
        where it is not known what the model was trained on.

    Raises:
        SpecError: A task is in a split it was trained on (law L10), or the spec that the run left
            beside the model cannot be read.
    """
    before = training_of(model)
    if before is None:
        return None
    path = before.resolve(before.spec.domain)
    if not path.exists():
        return None
    there = domain if path.resolve() == domain.located.path.resolve() else load_any_domain(path)
    suites = isinstance(domain, Suite) or isinstance(there, Suite)
    evaluated = Tasks(domain, domain.tasks(run.spec.eval.split)[: run.spec.eval.episodes])
    if not suites and there.folder.resolve() != domain.folder.resolve():
        return Seen(len(evaluated.tasks))
    trained = sorted(training_splits(before.spec))
    practised = Tasks(there, [task for split in trained for task in there.tasks(split)])

    def at(message: str) -> Problem:
        return run.problem(("eval", "split"), message)

    refuse_same(domain, run.spec, practised, trained, at=at)
    evaluated = Tasks(domain, evaluation_tasks(domain, run.spec, at=at))
    if run.spec.overlap.accepted is not None:
        return seen_elsewhere(evaluated, practised)
    seen = seen_tasks(evaluated, practised)
    refuse_near(domain, run.spec, seen, at=at)
    return seen


def contaminations(
    run: Located[RunSpec], domain: AnyDomain, models: Mapping[str, Sequence[Path]]
) -> dict[str, Contamination]:
    """What of a run's evaluation policies were trained on.

    Args:
        run: Says which tasks are evaluated.
        domain: Theirs.
        models: Policy to the folders of its weights, one for each training of it; none: it is rules.

    Raises:
        SpecError: As of `refuse_trained_tasks`.
    """
    evaluated = len(domain.tasks(run.spec.eval.split)[: run.spec.eval.episodes])
    known: dict[Path | None, Contamination] = {None: contamination(evaluated, None)}
    for model in (folder for folders in models.values() for folder in folders):
        before = training_of(model)
        if before is not None and before.path not in known:
            seen = refuse_trained_tasks(run, domain, model)
            known[before.path] = tag_of(seen, before, evaluated)
    return {
        name: of_all(known[_made_by(folder)] for folder in folders)
        if folders
        else contamination(evaluated, 0)
        for name, folders in models.items()
    }


def _made_by(model: Path) -> Path | None:
    before = training_of(model)
    return None if before is None else before.path


def tag_of(seen: Seen | None, before: Located[RunSpec] | None, evaluated: int) -> Contamination:
    """The tag of one model, by what was found of it.

    Args:
        seen: By `refuse_trained_tasks`.
        before: By `training_of`.
        evaluated: Tasks of the evaluation.
    """
    if seen is None or before is None:
        return contamination(evaluated, None)
    return contamination(
        evaluated, len(seen.pairs), from_outside=before.spec.model.path is not None
    )


def other_than_seed(trainings: Iterable[Located[RunSpec]]) -> list[str]:
    """What of several trainings differs beside the seed, in words; nothing: they are of one kind.

    What is evaluated, and on how many threads, makes no other training. A relative path counts as what it
    leads to.
    """
    first, *others = (
        one.spec.moved(one.path.parent.resolve(), Path("/")).model_dump(
            mode="json", exclude=_BESIDE
        )
        for one in trainings
    )
    return [str(change) for other in others for change in diff(first, other)]
