"""Evaluation during training: which weights did best, and whether it is time to end.

Chosen weights look better on the tasks that they were chosen on than they are. So these are neither the
tasks that are trained on nor those of the final evaluation, which measures what was chosen.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import anyio.to_thread
import msgspec

from muarl.errors import RecordError
from muarl.evaluate.held_out import HeldOut, validated
from muarl.evaluate.summary import summarise
from muarl.kernel.checkpoint import read_weights, set_weights
from muarl.scheduler.dialogues import load_of
from muarl.spec import GrpoSpec
from muarl.train.at_work import RunAtWork
from muarl.train.models import ADAPTERS, save_with_tokenizer
from muarl.train.weights import Engine

_log = logging.getLogger(__name__)


class Validation:
    """The validation of one run; does nothing where the run file asks for none.

    Args:
        at: The run.
        engine: Has the weights that are validated.
    """

    def __init__(self, at: RunAtWork, engine: Engine) -> None:
        assert at.run.grpo is not None
        self._at = at
        self._engine = engine
        self._spec: GrpoSpec = at.run.grpo
        self._found: dict[int, float] = {
            line["iteration"]: _comparable(line["success"]["value"])
            for line in at.folder.lines()
            if line["kind"] == "validation"
        }

    def is_due(self, done: int) -> bool:
        """Whether weights are validated after so many iterations."""
        spec = self._spec.validation
        return spec is not None and (done % spec.every == 0 or done == self._spec.iterations)

    @property
    def best(self) -> int | None:
        """The iteration that did best, the first of equals; None before any was looked at."""
        return max(sorted(self._found), key=lambda done: self._found[done], default=None)

    async def goes_on(self, done: int) -> bool:
        """Validate if it is due and was not done yet; whether training goes on.

        Raises:
            Interrupted: A stop was requested.
        """
        spec = self._spec.validation
        if spec is None:
            return True
        if self.is_due(done) and done not in self._found:
            await self._validate(done)
        best = self.best
        since = sum(at > best for at in self._found) if best is not None else 0
        if spec.patience is None or since < spec.patience or done >= self._spec.iterations:
            return True
        self._at.progress.note(
            f"validation: none of the last {since} did better than iteration {best}; training ends"
        )
        return False

    async def _validate(self, done: int) -> None:
        at, spec, run = self._at, self._spec.validation, validated(self._at.run)
        assert spec is not None
        assert run is not None
        at.progress.phase(f"validation after {done} iterations", spec.episodes)
        policy = self._engine.policy
        episodes = await HeldOut(
            domain=at.domain,
            run=run,
            renderer=at.renderer,
            journal=at.journal,
            done=at.done,
            stop=at.stop,
            observer=at.observation,
            user_model=at.user_model,
            crew=at.crew,
            loop=at.loop,
        ).by(
            lambda _task, _key: policy,
            phase=f"validation:{done}",
            temperature=spec.temperature,
            load=load_of(policy),
        )
        summary = summarise(episodes, seed=at.run.seed, row_of=at.domain.row)
        value = _comparable(summary.success.value)
        is_best = all(value > other for other in self._found.values())
        if is_best:
            await anyio.to_thread.run_sync(self._keep, done)
        self._found[done] = value
        at.folder.log("validation", iteration=done, is_best=is_best, **msgspec.to_builtins(summary))
        at.progress.note(f"validation success after {done} iterations: {summary.success}")
        at.progress.phase("GRPO", self._spec.iterations)
        at.progress.advance(done)

    def _keep(self, done: int) -> None:
        """Save the present weights, and only then remove those that were best before."""
        at = self._at
        best = at.folder.best / f"{done:06d}"
        save_with_tokenizer(at.model, at.renderer.tokenizer, best, at.ranks)
        if at.ranks.is_first:
            for path in at.folder.best.iterdir():
                if path != best:
                    shutil.rmtree(path)

    async def take_best(self) -> None:
        """Give the model and the engine the weights that did best, if any were chosen.

        Raises:
            RecordError: They are gone.
        """
        if self.best is None or self._spec.validation is None:
            return
        folder = self._at.folder.best / f"{self.best:06d}"
        if not folder.is_dir():
            raise RecordError(
                f"{folder} is gone, which held the weights that did best in validation. Restore it "
                "from a copy, or use --overwrite to start anew"
            )
        await anyio.to_thread.run_sync(self._load, folder)
        await self._engine.sync(self.best)
        self._at.progress.note(f"the weights after {self.best} iterations did best, and are kept")

    def _load(self, folder: Path) -> None:
        model = self._at.model
        set_weights(model, read_weights(model, folder, folder / ADAPTERS))


def _comparable(success: float | None) -> float:
    """Less than any, where all dialogues were faults."""
    return -1.0 if success is None else success
