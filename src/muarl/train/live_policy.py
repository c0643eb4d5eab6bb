"""A model in a program of your own: it samples, learns from groups of episodes, and is saved."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import torch
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.kernel.device import device_for, moved
from muarl.kernel.model import load_model, save_model
from muarl.kernel.step import Trainer
from muarl.own_forms import check_each
from muarl.policy import Policy
from muarl.render import Renderer, TextTokenizer
from muarl.scheduler import Group
from muarl.seeds import generator
from muarl.spec import GrpoSpec, RunSpec
from muarl.spec.engine import EmbeddedSpec, EngineSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.model import PolicyModelSpec
from muarl.spec.run import RolloutSpec
from muarl.train.engines import open_engine
from muarl.train.grpo import round_metrics, token_drift
from muarl.train.learning import Learner, figures_of
from muarl.train.playing import model_folder
from muarl.train.reference import reference_of
from muarl.train.weights import Engine

_OF_RUNS = ("split", "mode", "tasks_per_iteration", "curriculum", "dynamic_sampling", "validation")
"""What a `GrpoSpec` says of the rounds of a run, which a program lays out itself."""


class LivePolicy:
    """A model that samples, and learns if it was opened to; see `open_policy`.

    Attributes:
        policy: What `Rollouts` sample from.
        renderer: Between messages and the model's tokens.
        version: Of the weights: how often it has learned.
        has_ended: Its block was left.
    """

    def __init__(
        self,
        engine: Engine,
        renderer: Renderer,
        model: PreTrainedModel,
        learner: Learner | None,
        spec: GrpoSpec | None,
        seed: int,
    ) -> None:
        self._engine = engine
        self._model = model
        self._learner = learner
        self._spec = spec
        self._seed = seed
        self._learning = anyio.Lock()
        self.renderer = renderer
        self.version = 0
        self.has_ended = False

    @property
    def policy(self) -> Policy:
        """What dialogues sample from."""
        return self._engine.policy

    async def learn(self, groups: Sequence[Group]) -> dict[str, Any]:
        """One round of GRPO: update the weights from groups, and let the engine sample with the new ones.

        Groups that were sampled with older weights are learned from like others, and counted in
        `lag_max`; a `correction` in the spec weighs their tokens. Learn between rounds: the embedded
        engine samples with the very weights that are being changed.

        Args:
            groups: Whole groups, as `Rollouts` gives them.

        Returns:
            The figures that `muarl train` logs of an iteration: `reward_mean`, `kl`, `clip_fraction`, ...

        Raises:
            SetupError: It was opened without `learns`, or its block was left.
            TypeError: Something given is no group.
            ValueError: There is no group.
            NonFiniteLoss: Too many updates in a row had to be skipped.
            WeightSyncError: The engine does not answer with the new weights.
        """
        learner, spec = self._learner, self._spec
        if learner is None or spec is None:
            raise SetupError(
                "the policy was opened to sample only; give `open_policy` a GrpoSpec, learns=..."
            )
        check_each("groups", groups, Group)
        if not groups:
            raise ValueError("groups is empty: there is nothing to learn from")
        async with self._learning:
            if self.has_ended:
                raise SetupError(
                    "the block of `open_policy` was left: learn within it, or open the policy again"
                )
            rng = generator(self._seed, "iteration", self.version)
            learned = await anyio.to_thread.run_sync(
                lambda: learner.learn(groups, self.version, rng, {}, spec)
            )
            sync_gap = await self._engine.sync(self.version + 1)
            self.version += 1
        return {
            **round_metrics(groups),
            "token_drift": token_drift([e for group in groups for e in group.episodes]),
            **figures_of(learned, spec),
            "sync_gap": sync_gap,
            "policy_version": self.version,
        }

    def save(self, folder: str | Path) -> None:
        """Write weights and tokenizer; muarl, transformers and vLLM load the folder.

        Raises:
            RecordError: The disk refused.
        """
        save_model(self._model, Path(folder))
        self.renderer.tokenizer.save(Path(folder))


@asynccontextmanager
async def open_policy(
    model: str | Path,
    *,
    limits: RolloutSpec | None = None,
    learns: GrpoSpec | None = None,
    engine: EngineSpec | None = None,
    kernel: KernelSpec | None = None,
    device: str = "auto",
    threads: int = 0,
    seed: int = 0,
) -> AsyncIterator[LivePolicy]:
    """Open a model for the length of the block.

    Args:
        model: A run's folder, or one that transformers loads.
        limits: As of the rollouts: room in tokens, dialogues at once, temperature.
        learns: How it learns; None: it only samples.
        engine: What samples; None: the model itself, in this process.
        kernel: How updates are computed.
        device: `auto`, `cpu` or `cuda`, of the model.
        threads: Torch threads; 0 takes all cores.
        seed: Deals samples into updates.

    Raises:
        SetupError: There is no model, or the engine does not start; or `learns` says what a program lays out
            itself, or needs more than episodes.

    Example:
        limits = RolloutSpec(context_tokens=1024, max_tokens=64)
        async with open_policy("runs/quickstart", limits=limits, learns=GrpoSpec(lr=1e-4)) as model:
            async with Rollouts(desk, model.policy, model.renderer, limits=limits) as rollouts:
                groups = [group async for group in rollouts]
            figures = await model.learn(groups)
    """
    limits = limits or RolloutSpec()
    _refuse(learns)
    source = model_folder(Path(model))
    run = RunSpec(
        version=1,
        domain="",
        engine=engine or EngineSpec(embedded=EmbeddedSpec()),
        model=PolicyModelSpec.model_validate({"path": str(source), "device": device}),
        rollout=limits,
        threads=threads,
    )
    if threads:
        torch.set_num_threads(threads)
    weights = moved(load_model(source), device_for(run.model.device))
    renderer = Renderer(TextTokenizer.load(source))
    learner = None
    if learns is not None:
        trainer = Trainer.for_grpo(weights, learns, kernel)
        reference = reference_of(weights, source)
        learner = Learner(trainer, reference, learns, temperature=limits.temperature)
    async with open_engine(run, weights, source, []) as opened:
        await opened.sync(0)
        policy = LivePolicy(opened, renderer, weights, learner, learns, seed)
        try:
            yield policy
        finally:
            policy.has_ended = True


def _refuse(learns: GrpoSpec | None) -> None:
    if learns is None:
        return
    if said := [name for name in _OF_RUNS if name in learns.model_fields_set]:
        raise SetupError(
            f"learns: {', '.join(said)} is for runs of `muarl train`; a program says by its rollouts what is "
            "sampled, and when it learns. Leave it out"
        )
    credit = learns.credit
    if credit.checklist is not None or credit.information is not None:
        raise SetupError(
            "learns: this credit looks at more than episodes (checklist, information); train it with "
            "`muarl train`"
        )
