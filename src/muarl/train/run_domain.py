"""The domain of a run, and whether the two go together; needs neither a model nor torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from muarl.data.progress import unfit_items
from muarl.domain import Domain
from muarl.domain.content import hashed
from muarl.errors import Problem, SpecError
from muarl.evaluate.held_out import (
    evaluation_tasks,
    refuse_near_duplicates,
    training_splits,
    validated,
)
from muarl.seeds import generator
from muarl.spec import Located, RunSpec, TaskSpec
from muarl.spec.base import Spec
from muarl.spec.finding import Finding
from muarl.spec.model import ColdStartSpec
from muarl.spec.perturb import OBSERVATION, PerturbSpec
from muarl.spec.plugged import versions_of
from muarl.spec.user import UserKindSpec, UserSpec
from muarl.suite import AnyDomain, load_domain_of, one_of_each
from muarl.synth.chat_file import read_chat
from muarl.train.overlapping import overlap_findings, tasks_played
from muarl.train.run_loop import loop_of
from muarl.user.build import UnfitUser


async def ready_domain(run: Located[RunSpec]) -> AnyDomain:
    """Load a run's domain, and try once whatever all of the run's dialogues need.

    Tasks are generated, the tool server is started and ended, the users and the expert are made; none
    of them speaks.

    Raises:
        SpecError: Run file, domain or tasks have to be mended.
        ToolServerError: The tool server does not start.
        SetupError: The key of the user's endpoint is not set.
    """
    domain = load_domain_of(run)
    refuse_unfit(run, domain)
    for one in domain.members:
        await one.tools()
    run.refuse(await _unfit_items(run.spec, domain))
    return domain


def refuse_unfit(run: Located[RunSpec], domain: AnyDomain) -> None:
    """Refuse a domain that is sound by itself, but not for this run; no tool server is started.

    An agent's own loop is imported.

    Raises:
        SpecError: Run file, domain, tasks or loop have to be mended.
        SetupError: The key of the user's endpoint is not set.
    """
    loop_of(run)
    evaluated = _unseen_tasks(run, run.spec, ("eval", "split"), domain)
    if (choosing := validated(run.spec)) is not None:
        _unseen_tasks(run, choosing, ("grpo", "validation", "split"), domain)
    run.refuse(overlap_findings(run, domain))
    run.refuse(_findings(run, domain))
    for split, user, loc in _who_meets(run.spec):
        is_evaluated = split == run.spec.eval.split
        tasks = evaluated if is_evaluated else domain.tasks(split)
        # Whoever is replayed has words for what is evaluated; nobody is trained with her.
        try_all_users(domain, user, tasks, run, loc, replayed=is_evaluated)


def _unseen_tasks(
    run: Located[RunSpec], spec: RunSpec, loc: tuple[str, ...], domain: AnyDomain
) -> list[TaskSpec]:
    """The tasks of an evaluation of the run, which it chooses at `loc`; refused if they are trained on."""

    def at(message: str) -> Problem:
        return run.problem(loc, message)

    tasks = evaluation_tasks(domain, spec, at=at)
    refuse_near_duplicates(domain, spec, at=at)
    return tasks


def _who_meets(run: RunSpec) -> Iterator[tuple[str, UserSpec, tuple[str, ...] | None]]:
    """Splits, who plays the user on their tasks, and where the run says so, if it does."""
    said = ("user",) if "user" in run.model_fields_set else None
    evaluates = said if run.eval.user is None else ("eval", "user")
    yield run.eval.split, run.eval_user, evaluates
    yield run.eval.split if run.grpo is None else run.grpo.split, run.user, said
    for loc, part in run.trained_on():
        if isinstance(part, ColdStartSpec):
            is_said = "user" in part.model_fields_set
            yield part.split, part.user, (*loc, "user") if is_said else None


@contextmanager
def placed(named_in: Located[Any], loc: tuple[str, ...] | None, pooled: str = "") -> Iterator[None]:
    """Say of a user who does not fit where she is named, and not in the domain that lacks something.

    Args:
        named_in: The file that names her.
        loc: Where; None: nowhere.
        pooled: Her name in a pool that stands there.
    """
    try:
        yield
    except UnfitUser as error:
        if loc is None:
            raise
        loc = (*loc, "pool", pooled, "user") if pooled else loc
        raise SpecError([named_in.problem(loc, p.message) for p in error.problems]) from None


def try_all_users(
    domain: AnyDomain,
    user: UserSpec,
    tasks: Sequence[TaskSpec],
    named_in: Located[Any],
    loc: tuple[str, ...] | None,
    *,
    replayed: bool = True,
) -> None:
    """As `try_users`, of each domain that tasks are of, which may have users of its own.

    Args:
        domain: The domain or the suite.
        user: Who plays the user where a suite says nothing else.
        tasks: What is played.
        named_in: The file that names her.
        loc: Where; None: nowhere.
        replayed: Whether users who are replayed count.
    """
    for first in one_of_each(domain, tasks):
        met, own = domain.user_for(first.id, user), domain.of(first.id)
        of_own = [task for task in tasks if domain.of(task.id) is own]
        for name, kind in met.users():
            if replayed or kind.replay is None:
                with placed(named_in, loc if met is user else None, name):
                    try_users(own, [kind], of_own)


def try_users(domain: Domain, users: Iterable[UserKindSpec], tasks: Sequence[TaskSpec]) -> None:
    """Make the users that tasks will meet: as each persona, and for each task if its own words may count.

    What one persona or task lacks for a user another may have.

    Raises:
        SpecError: Domain or tasks lack what a user needs.
        SetupError: The key of a user's endpoint is not set.
    """
    one_each = {persona: task for task in reversed(tasks) for persona in task.personas}
    for user in users:
        by_task = user.replay is not None or user.fixed is not None
        if by_task or user.plugin is not None:
            for task in tasks:
                domain.user(user, task, task.personas[0], 0)
        if by_task:
            continue
        for persona, task in one_each.items():
            domain.user(user, task, persona, 0)


async def content_of_run(domain: AnyDomain, run: Located[RunSpec], *beside: Spec) -> dict[str, Any]:
    """What the domain is made of, as far as the run uses it; who provides what; an agent's own loop.

    Args:
        domain: The domain.
        run: The run.
        beside: Further specs of the run that may name plug-ins.

    Raises:
        SpecError: World or tasks cannot be had.
        ToolServerError: The tool server does not start.
    """
    content = await domain.content(sorted({run.spec.eval.split, *training_splits(run.spec)}))
    if versions := versions_of(run.spec, *beside):
        content["plug-ins"] = {**content.get("plug-ins", {}), **versions}
    if run.spec.rollout.loop is not None:
        file = run.resolve(run.spec.rollout.loop.rpartition(":")[0])
        content["loop"] = {file.name: hashed(file.read_text(encoding="utf-8", errors="replace"))}
    return content


async def _unfit_items(run: RunSpec, domain: AnyDomain) -> list[Finding]:
    """What is wrong with the checklist that turns are credited by."""
    checklist = None if run.grpo is None else run.grpo.credit.checklist
    if checklist is None or checklist.items is None:
        return []
    found = [f for one in domain.members for f in await unfit_items(one, checklist.items)]
    return [finding.below("grpo", "credit", "checklist", "items") for finding in found]


def _findings(run: Located[RunSpec], domain: AnyDomain) -> Iterator[Finding]:
    spec = run.spec
    if spec.grpo is not None:
        tasks, wanted = len(domain.tasks(spec.grpo.split)), spec.grpo.tasks_per_iteration
        if tasks < wanted:
            message = (
                f"grpo.tasks_per_iteration is {wanted}, and split {spec.grpo.split!r} has "
                f"{tasks} {'task' if tasks == 1 else 'tasks'}; write at most {tasks}"
            )
            yield Finding(("grpo", "tasks_per_iteration"), message)
        if spec.grpo.curriculum is not None and domain.weights(domain.tasks(spec.grpo.split)):
            message = "the suite's weights and a curriculum both say what is drawn; leave one out"
            yield Finding(("grpo", "curriculum"), message)
    if any(one.spec.environment is not None for one in domain.members):
        yield from _perturbed_calls(spec)
    if spec.cold_start is not None and spec.cold_start.file is not None:
        yield from _evaluated(run, domain, spec.cold_start.file)
    elif spec.cold_start is not None:
        yield from _expert(domain, spec.cold_start, ("cold_start",))
    if spec.user_model is not None and spec.user_model.cold_start is not None:
        yield from _expert(domain, spec.user_model.cold_start, ("user_model", "cold_start"))


def _perturbed_calls(run: RunSpec) -> Iterator[Finding]:
    """Perturbations of tools and calls, which an environment leaves no room for."""
    given: dict[tuple[str, ...], PerturbSpec] = {("rollout", "perturb"): run.rollout.perturb}
    given |= {("eval", "perturb", name): spec for name, spec in run.eval.perturb.items()}
    for loc, spec in given.items():
        kinds = [kind for kind in spec.rates if kind not in OBSERVATION]
        if kinds:
            message = (
                "an environment answers all calls of a message at once, so its tools and calls cannot be "
                f"perturbed ({', '.join(kinds)}); only what is said to the policy can ({', '.join(OBSERVATION)})"
            )
            yield Finding(loc, message)


def _evaluated(run: Located[RunSpec], domain: AnyDomain, file: str) -> Iterator[Finding]:
    """Dialogues of a cold start's file on tasks that are evaluated (law L10).

    Raises:
        SpecError: The file cannot be read.
    """
    lines = read_chat(run.resolve(file))
    found = tasks_played(lines, evaluation_tasks(domain, run.spec), domain)
    if found and run.spec.overlap.accepted is None:
        message = (
            f"{len(found)} of its {len(lines)} dialogues are on tasks that are evaluated, such as "
            f"{found[0]!r}; make them of another split, or say under `overlap.accepted` why it is meant"
        )
        yield Finding(("cold_start", "file"), message)


def _expert(domain: AnyDomain, spec: ColdStartSpec, loc: tuple[str, ...]) -> Iterator[Finding]:
    for task in one_of_each(domain, domain.tasks(spec.split)):
        own = domain.of(task.id)
        own.expert(task, {}, generator(0))  # one that fails by itself is the domain's fault
        try:
            own.expert(task, spec.imperfections, generator(0))
        except SpecError as error:
            for problem in error.problems:
                yield Finding((*loc, "imperfections"), problem.message)
