"""The domain of a run, and whether the two go together; needs neither a model nor torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muarl.data.progress import unfit_items
from muarl.domain import Domain, load_domain_of
from muarl.errors import SpecError
from muarl.evaluate.held_out import evaluation_tasks, refuse_near_duplicates, training_splits
from muarl.seeds import generator
from muarl.spec import Located, RunSpec
from muarl.spec.finding import Finding
from muarl.spec.model import ColdStartSpec


async def ready_domain(run: Located[RunSpec]) -> Domain:
    """Load a run's domain, and try once whatever all of the run's dialogues need.

    Tasks are generated, the tool server is started and ended, a user and the expert are made; none
    of them speaks.

    Raises:
        SpecError: Run file, domain or tasks have to be mended.
        ToolServerError: The tool server does not start.
        SetupError: The key of the user's endpoint is not set.
    """
    domain = load_domain_of(run)
    refuse_unfit(run, domain)
    await domain.tools()
    run.refuse(await _unfit_items(run.spec, domain))
    return domain


def refuse_unfit(run: Located[RunSpec], domain: Domain) -> None:
    """Refuse a domain that is sound by itself, but not for this run; no tool server is started.

    Raises:
        SpecError: Run file, domain or tasks have to be mended.
        SetupError: The key of the user's endpoint is not set.
    """
    first = evaluation_tasks(domain, run.spec)[0]  # refuses if they are trained on
    refuse_near_duplicates(domain, run.spec)
    run.refuse(_findings(run, domain))
    for user in run.spec.users():
        domain.user(user, first, first.personas[0], 0)


async def content_of_run(domain: Domain, run: RunSpec) -> dict[str, Any]:
    """What the domain is made of, as far as the run uses it.

    Raises:
        SpecError: World or tasks cannot be had.
        ToolServerError: The tool server does not start.
    """
    return await domain.content(sorted({run.eval.split, *training_splits(run)}))


async def _unfit_items(run: RunSpec, domain: Domain) -> list[Finding]:
    """What is wrong with the checklist that turns are credited by."""
    checklist = None if run.grpo is None else run.grpo.credit.checklist
    if checklist is None or checklist.items is None:
        return []
    found = await unfit_items(domain, checklist.items)
    return [finding.below("grpo", "credit", "checklist", "items") for finding in found]


def _findings(run: Located[RunSpec], domain: Domain) -> Iterator[Finding]:
    spec = run.spec
    if spec.grpo is not None:
        tasks, wanted = len(domain.tasks(spec.grpo.split)), spec.grpo.tasks_per_iteration
        if tasks < wanted:
            message = (
                f"grpo.tasks_per_iteration is {wanted}, and split {spec.grpo.split!r} has "
                f"{tasks} {'task' if tasks == 1 else 'tasks'}; write at most {tasks}"
            )
            yield Finding(("grpo", "tasks_per_iteration"), message)
    if spec.cold_start is not None:
        yield from _expert(domain, spec.cold_start, ("cold_start",))
    if spec.user_model is not None and spec.user_model.cold_start is not None:
        yield from _expert(domain, spec.user_model.cold_start, ("user_model", "cold_start"))


def _expert(domain: Domain, spec: ColdStartSpec, loc: tuple[str, ...]) -> Iterator[Finding]:
    task = domain.tasks(spec.split)[0]
    domain.expert(task, {}, generator(0))  # one that fails by itself is the domain's fault
    try:
        domain.expert(task, spec.imperfections, generator(0))
    except SpecError as error:
        for problem in error.problems:
            yield Finding((*loc, "imperfections"), problem.message)
