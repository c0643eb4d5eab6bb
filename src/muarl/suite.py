"""Several domains at work as one: what a run trains on, or is evaluated on, at once.

Each dialogue is of one domain: its rules, tools, world, user and reward are that domain's, and so its
episode says. Only tasks are called otherwise, `member.task`, so that their ids stay unique; a task is of
the member whose name stands before the first dot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.spec import Located, SuiteSpec, TaskSpec, load_suite_spec
from muarl.spec.finding import unknown
from muarl.spec.kinds import kind_of
from muarl.spec.run import RunSpec
from muarl.spec.split_references import member_findings, split_findings
from muarl.spec.suite import MemberSpec
from muarl.spec.user import UserSpec


class Suite:
    """Loaded domains, and which of their tasks are in which split."""

    def __init__(self, located: Located[SuiteSpec], domains: dict[str, Domain]) -> None:
        """Put domains together.

        Args:
            located: The suite's file.
            domains: Name of each of its members to the domain.
        """
        self.located = located
        self.spec = located.spec
        self.folder = located.path.parent
        self._domains = domains
        self._named: dict[tuple[str, str], tuple[TaskSpec, ...]] = {}
        self._tasks: dict[str, tuple[TaskSpec, ...]] = {}

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.spec.id

    @property
    def members(self) -> tuple[Domain, ...]:
        """Its domains, in the file's order."""
        return tuple(self._domains.values())

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its splits."""
        return tuple(
            dict.fromkeys(s for member in self.spec.members.values() for s in member.splits)
        )

    def tasks(self, split: str) -> tuple[TaskSpec, ...]:
        """The tasks of one split, one of each domain in turn, so that the first few are of all.

        Raises:
            SpecError: There is no such split, or a domain's generator broke its contract.
        """
        if split not in self._tasks:
            parts = [
                self._named_tasks(name, member.splits[split])
                for name, member in self.spec.members.items()
                if split in member.splits
            ]
            if not parts:
                message = unknown("split", split, self.splits)
                raise SpecError([self.located.problem(("members",), message)])
            in_turn = chain.from_iterable(zip_longest(*parts))
            self._tasks[split] = tuple(task for task in in_turn if task is not None)
        return self._tasks[split]

    def own_tasks(self, split: str) -> Iterator[TaskSpec]:
        """Tasks of every domain whose own split, as their episodes say it, is called so."""
        for name, domain in self._domains.items():
            if split in domain.splits:
                yield from self._named_tasks(name, split)

    def _named_tasks(self, name: str, split: str) -> tuple[TaskSpec, ...]:
        if (name, split) not in self._named:
            self._named[name, split] = tuple(
                task.model_copy(update={"id": f"{name}.{task.id}"})
                for task in self._domains[name].tasks(split)
            )
        return self._named[name, split]

    def of(self, task_id: str) -> Domain:
        """The domain that a task is of.

        Raises:
            KeyError: It is of none.
        """
        return self._domains[_split(task_id)[0]]

    def weights(self, tasks: Sequence[TaskSpec]) -> list[float] | None:
        """How often training draws each of these tasks; None: all alike.

        Example:
            Two members of weight 1, one with two of the tasks, the other with one: 0.5, 0.5, 1.
        """
        sizes = Counter(_split(task.id)[0] for task in tasks)
        found = []
        for task in tasks:
            weight = self._member(task.id).weight
            if weight is None:
                return None
            found.append(weight / sizes[_split(task.id)[0]])
        return found

    def user_for(self, task_id: str, user: UserSpec) -> UserSpec:
        """Who plays the user in a task, if elsewhere `user` does."""
        return self._member(task_id).user or user

    def row(self, task_id: str) -> str:
        """Under which name a task's success is summed up."""
        return self._member(task_id).row or _split(task_id)[0]

    def origin(self, task_id: str) -> tuple[Path, str]:
        """A task beyond this suite: its domain's folder, and what it is called there."""
        name, own = _split(task_id)
        return self._domains[name].origin(own)

    def _member(self, task_id: str) -> MemberSpec:
        return self.spec.members[_split(task_id)[0]]

    async def content(self, splits: Iterable[str]) -> dict[str, Any]:
        """The table of what its domains are made of; see `Domain.content`."""
        splits = list(splits)
        said = self.spec.model_dump(mode="json", exclude_defaults=True)
        members = {
            name: {key: value for key, value in member.items() if key != "file"}
            for name, member in said["members"].items()
        }
        table: dict[str, Any] = {"members": members}
        for name, member in self.spec.members.items():
            own = sorted({member.splits[split] for split in splits if split in member.splits})
            table[f"domain {name}"] = await self._domains[name].content(own)
        return table

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        """As `Domain.sharing`, of all."""
        async with AsyncExitStack() as held:
            for domain in self.members:
                await held.enter_async_context(domain.sharing())
            yield


AnyDomain: TypeAlias = Domain | Suite
"""What a run is of: one domain, or several."""


def one_of_each(domain: AnyDomain, tasks: Iterable[TaskSpec]) -> list[TaskSpec]:
    """The first of the tasks of each domain that they are of."""
    first: dict[Path, TaskSpec] = {}
    for task in tasks:
        first.setdefault(domain.of(task.id).located.path, task)
    return list(first.values())


def _split(task_id: str) -> tuple[str, str]:
    name, _, own = task_id.partition(".")
    return name, own


def load_suite(path: Path) -> Suite:
    """Load a suite and its domains.

    Raises:
        SpecError: Everything wrong with the first of its files that has something wrong.
    """
    located = load_suite_spec(path)
    domains = {
        name: load_domain(located.resolve(member.file))
        for name, member in located.spec.members.items()
    }
    splits = {name: domain.splits for name, domain in domains.items()}
    located.refuse(member_findings(located.spec, splits))
    return Suite(located, domains)


def load_any_domain(path: Path) -> AnyDomain:
    """Load what a run names: a suite's file, or a domain's file or folder.

    Raises:
        SpecError: Everything wrong with it.
    """
    is_suite = path.is_file() and kind_of(path) == "suite"
    return load_suite(path) if is_suite else load_domain(path)


def load_domain_of(run: Located[RunSpec]) -> AnyDomain:
    """Load the domain or the suite that a run file names.

    Raises:
        SpecError: Everything wrong with it, or a split of the run that it does not have.
    """
    domain = load_any_domain(run.resolve(run.spec.domain))
    run.refuse(split_findings(run.spec, domain.splits))
    return domain
