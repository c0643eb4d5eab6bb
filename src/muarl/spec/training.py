"""How a run learns from first to last: how far sampling runs ahead, what is kept, when it ends."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.spec.base import Id, OneOrName, Planned, Spec

Positive = Annotated[int, Field(gt=0)]


class OnPolicySpec(Spec):
    """Sample, then learn: all is sampled by the weights that learn from it."""


class OneStepOffSpec(Spec):
    """Sample the next iteration's dialogues while this one's are learned from.

    Weights change while nothing is sampled, so all is sampled by the weights one iteration before, and
    what comes of a run does not depend on how long anything takes.
    """


class AsynchronousSpec(Spec):
    """Sample and learn without waiting for each other, within a bound.

    Groups are learned from as they become whole, and new weights go to the engine at once, in the middle
    of dialogues.
    """

    max_lag: Positive = 2
    """Versions between the weights that sampled a token and those that learn from it, at most."""
    stale: Literal["wait", "drop", "correct"] = "wait"
    """What becomes of groups that would lag further behind: `wait` lets learning wait for them before
    that, so that there are none; `drop` samples them anew; `correct` learns from them all the same, which
    needs `grpo.correction`."""


class ModeSpec(OneOrName):
    """Whether sampling waits for learning: one of these, or the name of one."""

    on_policy: OnPolicySpec | None = None
    """They take turns."""
    one_step_off: OneStepOffSpec | None = None
    """Sampling is one iteration ahead."""
    asynchronous: AsynchronousSpec | None = None
    """Sampling is ahead as far as `max_lag` lets it."""


class ValidationSpec(Spec):
    """Evaluation during training, by which weights are chosen; never on the tasks of `eval`."""

    split: Id = "dev"
    """Tasks, disjoint from those that are trained on and those of `eval`."""
    every: Positive = 5
    """Iterations between two evaluations; the first is before the first iteration, one is at the end."""
    episodes: Planned = 100
    """Dialogues per evaluation: one of each task, and then a further one."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of the policy; 0 is greedy."""
    patience: Positive | None = None
    """So many evaluations in a row without a better success, and training ends; null: it does not."""


class CheckpointSpec(Spec):
    """What is saved to resume from."""

    every: Positive = 1
    """Iterations between two checkpoints; what was learned since the last is learned again."""
    keep: Positive = 2
    """Checkpoints that stay."""
