"""The user's part in GRPO: beside the policy, from the same rounds of dialogues."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread

from muarl.kernel.checkpoint import Counters, drop_checkpoints, load_checkpoint, save_checkpoint
from muarl.kernel.lora import has_adapters
from muarl.kernel.model import copy_weights
from muarl.kernel.step import Trainer
from muarl.scheduler import Group
from muarl.seeds import generator
from muarl.spec.user_model import UserGrpoSpec
from muarl.train.at_work import RunAtWork, UserAtWork
from muarl.train.began_with import COUNTER, began_with, refuse_another_beginning
from muarl.train.learning import Learned, Learner, figures_of, skipped_last
from muarl.train.past_users import PastUsers, open_past_users
from muarl.train.reference import reference_of
from muarl.train.user_grpo import user_metrics, user_training_set
from muarl.train.weights import Engine


class UserLearning:
    """One user who learns.

    Her checkpoint is saved before the policy's, whose says how far the run is: what is ahead of that
    when a run is taken up is dropped.
    """

    def __init__(
        self,
        at: RunAtWork,
        hers: UserAtWork,
        spec: UserGrpoSpec,
        engine: Engine,
        cold_model: Path,
        past: PastUsers | None,
    ) -> None:
        """Prepare.

        Args:
            at: The run.
            hers: Her model.
            spec: How she learns.
            engine: Samples her messages, and takes new weights.
            cold_model: Folder of the weights that she began with.
            past: Past users, if dialogues meet them.
        """
        (temperature,) = {model.temperature for model in at.run.user.models()}
        self._at, self._hers, self._spec = at, hers, spec
        self._engine, self._past = engine, past
        self._sync_gap: float | None = None
        self._cold_model, self._beginning = cold_model, began_with(cold_model)
        self._reference = reference_of(hers.model, cold_model)
        self._trainer = Trainer.for_grpo(hers.model, spec, at.run.kernel)
        before = (line.get("user_model") or {} for line in at.folder.lines())
        self._learner = Learner(
            *(self._trainer, self._reference, spec),
            temperature=temperature,
            skipped_in_a_row=skipped_last(before),
        )

    async def begin(self, first: int) -> None:
        """Take her up where iteration `first` finds her.

        Raises:
            RecordError: Her checkpoint is damaged, or gone though the policy's is there.
        """
        folder = self._at.folder.user_checkpoint
        drop_checkpoints(folder, lambda place: int(place.get("iteration", 0)) > first)
        if first:
            counters = load_checkpoint(folder, self._trainer)
            refuse_another_beginning(self._cold_model, self._beginning, counters)
        elif not has_adapters(self._hers.model):  # those have learned nothing yet
            with self._reference() as cold:
                copy_weights(cold, self._hers.model)
        await self.advance(first)

    async def advance(self, iteration: int) -> None:
        """Let dialogues meet whom they are to meet in an iteration: her, and past users."""
        self._sync_gap = await self._engine.sync(iteration)
        past = await self._past.at(iteration, self._hers.model) if self._past is not None else []
        self._hers.plays.policies[:] = [self._engine.policy, *past]

    def policy_learns(self, iteration: int) -> bool:
        """Whether the policy learns from a round."""
        return self._spec.turns == "together" or iteration % 2 == 0

    def user_learns(self, iteration: int) -> bool:
        """Whether the user does."""
        return self._spec.turns == "together" or iteration % 2 == 1

    async def learn(self, iteration: int, groups: Sequence[Group]) -> dict[str, Any]:
        """Learn from a round, if it is hers; what goes into the metrics.

        Raises:
            NonFiniteLoss: Too many updates in a row had to be skipped.
        """

        def learn() -> Learned:
            if not self.user_learns(iteration):
                return Learned()
            found = user_training_set(groups, self._spec, version=iteration)
            rng = generator(self._at.run.seed, "iteration", iteration, "user")
            return self._learner.learn_from(found, iteration, lr=self._spec.lr, rng=rng)

        learned = await anyio.to_thread.run_sync(learn)
        return {
            **user_metrics(groups, version=iteration),
            **figures_of(learned, self._spec, key="user_model.grpo"),
            "skipped_in_a_row": self._learner.skipped_in_a_row,
            "sync_gap": self._sync_gap,
            "met": len(self._hers.plays.policies),
        }

    def save(self, done: int) -> None:
        """Save her, before the policy is: one more than of the policy, since that may fail."""
        keep = self._at.run.checkpoint.keep + 1
        counters: Counters = {"stage": "grpo", "iteration": done, COUNTER: self._beginning}
        save_checkpoint(self._at.folder.user_checkpoint, self._trainer, counters, keep=keep)

    def saved(self, done: int) -> None:
        """The policy is saved, too: no run goes on from before."""
        if self._past is not None:
            self._past.forget(done)


@asynccontextmanager
async def open_user_learning(
    at: RunAtWork, engine: Engine | None, cold_model: Path
) -> AsyncIterator[UserLearning | None]:
    """The user's part in a run's GRPO, for the length of the block; None if she does not learn."""
    hers = at.user
    if hers is None or engine is None or hers.spec.grpo is None:
        yield None
        return
    async with AsyncExitStack() as held:
        past = None
        if hers.spec.past is not None:
            opened = open_past_users(
                hers.spec.past,
                at.folder.user_past,
                cold_model,
                device=hers.model.device,
                context_tokens=hers.spec.context_tokens,
                slots=at.run.rollout.concurrency,
            )
            past = await held.enter_async_context(opened)
        yield UserLearning(at, hers, hers.spec.grpo, engine, cold_model, past)
