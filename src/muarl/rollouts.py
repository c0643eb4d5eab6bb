"""Dialogues in a program of your own: groups of episodes, as they become whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muarl.errors import SetupError, did_you_mean
from muarl.own_forms import check_each, kind_of
from muarl.own_loop import AgentLoop
from muarl.policy import Policy
from muarl.record import TRAIN, JournalWriter
from muarl.render import Renderer
from muarl.scheduler import Group, Observer
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, load_of
from muarl.scheduler.journal import Journal, Unjournaled
from muarl.scheduler.rounds import bounds, open_groups
from muarl.scheduler.scheduler import HAVE_ENDED, Groups
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import UserSpec, modelless_user
from muarl.suite import AnyDomain, load_any_domain


class Rollouts:
    """Holds dialogues of a domain's users with a policy, many at once, while its block is open.

    Runs in any anyio, asyncio or trio program. What goes wrong in a dialogue is a fault of its episode and
    tried again; what goes wrong in the block ends all dialogues, and leaving the block, by whatever way,
    leaves none alive. With a journal, an episode is on disk before its group comes.

    Example:
        async with Rollouts("domains/desk", policy, renderer, tasks="train", group_size=8) as rollouts:
            async for group in rollouts:
                learn(group.episodes)
    """

    def __init__(
        self,
        domain: str | Path | AnyDomain,
        policy: Policy,
        renderer: Renderer,
        *,
        tasks: str | Sequence[TaskSpec] = TRAIN,
        group_size: int = 1,
        loop: AgentLoop | None = None,
        user: UserSpec | None = None,
        limits: RolloutSpec | None = None,
        seed: int = 0,
        phase: str = TRAIN,
        iteration: int = 0,
        journal: Path | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Prepare; nothing begins before the block is entered.

        Args:
            domain: A domain's folder or file, a suite's file, or one that is loaded.
            policy: Samples the agent's messages.
            renderer: Of the policy's model.
            tasks: A split of the domain, or some of its tasks.
            group_size: Dialogues of each task; they share a baseline.
            loop: An agent's own loop, which leads every dialogue; None: muarl's.
            user: Who plays the user; None: whoever needs no model.
            limits: Caps, deadlines, how many at once, how faults are met.
            seed: Of everything drawn; the same seed gives the same dialogues.
            phase: What they are for; the training reward counts in `train`.
            iteration: Which round of that; another one draws anew.
            journal: A file that every episode is appended to before its group comes.
            observer: Told what happens.

        Raises:
            SpecError: The domain's files are wrong.
            SetupError: It has no such split or task, or no group was asked for.
            TypeError: Something given has another form.
        """
        limits = RolloutSpec() if limits is None else limits
        _check_forms(domain, policy, renderer, group_size, loop, limits)
        self._domain = load_any_domain(Path(domain)) if isinstance(domain, str | Path) else domain
        chosen = _chosen_tasks(self._domain, tasks)
        if group_size < 1:
            raise SetupError(f"group_size must be at least 1, got {group_size}")
        self._limits = limits
        self._observer = observer
        self._journal = journal
        self._keys = episode_keys(
            chosen, run_seed=seed, phase=phase, iteration=iteration, group_size=group_size
        )
        self._runner = DialogueRunner(
            domain=self._domain,
            tasks=chosen,
            renderer=renderer,
            limits=self._limits,
            user=user or modelless_user(chosen),
            policy_for=lambda _task, _key: policy,
            observer=observer,
            load=load_of(policy),
            perturb=self._limits.perturb,
            loop=loop,
        )
        self._open: AsyncExitStack | None = None
        self._groups: Groups | None = None
        self._has_ended = False

    async def __aenter__(self) -> Self:
        """Begin.

        Raises:
            RecordError: The journal cannot be written.
            SetupError: They were begun before; dialogues that ended do not begin again.
        """
        if self._open is not None:
            raise SetupError("these rollouts were begun already; make new ones")
        async with AsyncExitStack() as opening:
            journal: Journal = Unjournaled()
            if self._journal is not None:
                journal = opening.enter_context(JournalWriter(self._journal))
            self._groups = await opening.enter_async_context(
                open_groups(
                    self._keys,
                    self._runner,
                    limits=bounds(self._limits),
                    journal=journal,
                    observer=self._observer,
                )
            )
            self._open = opening.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._open is not None
        self._has_ended = True
        return await self._open.__aexit__(kind, error, traceback)

    def __aiter__(self) -> AsyncIterator[Group]:
        """Groups, each as soon as its last episode is final.

        An iteration may be broken off and gone on with; several at once share the groups.

        Raises:
            FaultRateError: So many dialogues end in faults that going on is of no use.
            SetupError: The block was not entered yet, or has been left.
        """
        if self._groups is None:
            raise SetupError("open rollouts with `async with` before you iterate over them")
        if self._has_ended:
            raise SetupError(HAVE_ENDED)
        return aiter(self._groups)

    @property
    def num_live(self) -> int:
        """Dialogues live now."""
        return 0 if self._groups is None else self._groups.num_live

    def stop(self) -> None:
        """Begin no more dialogues; those that are live end, and groups that become whole still come."""
        if self._groups is not None:
            self._groups.stop_admitting()


def _check_forms(
    domain: object,
    policy: object,
    renderer: object,
    group_size: object,
    loop: object,
    limits: object,
) -> None:
    """Look at what no domain's file says.

    Raises:
        TypeError: Something has another form.
    """
    if not isinstance(domain, str | Path | AnyDomain):
        raise TypeError(f"domain must be a path or a loaded domain, got {kind_of(domain)}")
    if not callable(getattr(policy, "generate", None)):
        raise TypeError(f"policy has no `generate`: it is {kind_of(policy)} (muarl.policy.Policy)")
    if not isinstance(renderer, Renderer):
        raise TypeError(f"renderer must be a muarl Renderer, got {kind_of(renderer)}")
    if type(group_size) is not int:
        raise TypeError(f"group_size must be a whole number, got {kind_of(group_size)}")
    if loop is not None and not callable(loop):
        raise TypeError(f"loop must be an async function of one context, got {kind_of(loop)}")
    if not isinstance(limits, RolloutSpec):
        raise TypeError(f"limits must be a RolloutSpec, got {kind_of(limits)}")


def _chosen_tasks(domain: AnyDomain, wanted: Any) -> Sequence[TaskSpec]:
    """The tasks of a split that is named, or those that are given.

    Raises:
        SetupError: There is no such split, or there are no tasks.
        TypeError: It is neither a name nor a list of tasks.
    """
    if not isinstance(wanted, str):
        if not isinstance(wanted, Sequence):
            raise TypeError(
                f"tasks must be the name of a split or a list of tasks, got {kind_of(wanted)}"
            )
        if not wanted:
            raise SetupError("no tasks were given; name a split, such as tasks='train'")
        check_each("tasks", wanted, TaskSpec)
        return tuple(wanted)
    if wanted not in domain.splits:
        raise SetupError(
            f"the domain has no split {wanted!r}{did_you_mean(wanted, domain.splits)}; it has "
            f"{', '.join(domain.splits)}"
        )
    return domain.tasks(wanted)
