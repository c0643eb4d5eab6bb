"""What a dialogue has to stand before it is learned from by imitation."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from muarl.spec.base import Fraction, Id, Spec
from muarl.spec.predicate import PredicateSpec
from muarl.spec.predicate_kinds import JudgeSpec


class OtherJudgeSpec(JudgeSpec):
    """A judge, and what it is a model of."""

    family: Id
    """Family of models that it belongs to, such as `llama`: another than the agent's, since models are
    kind to their like."""


class JudgedSpec(Spec):
    """LLMs read each dialogue; every criterion must hold, each with a passage that it is decided by."""

    agent_family: Id
    """Family of models that the agent belongs to, such as `qwen`; `none` where it is a rule."""
    judges: Annotated[list[OtherJudgeSpec], Field(min_length=1)]
    """What is asked, and whom. A ruling without a passage of the dialogue, word by word, is none, and the
    dialogue is left out where there is none to be had."""

    @model_validator(mode="after")
    def _of_another_family(self) -> JudgedSpec:
        for judge in self.judges:
            if judge.family.casefold() == self.agent_family.casefold():
                raise ValueError(
                    f"the judge {judge.model!r} is of the agent's own family ({judge.family!r}); models "
                    "are kind to their like, so choose a judge of another"
                )
        return self


class VerifySpec(Spec):
    """Checks of a dialogue by its record: the first that fails says why it is left out.

    Dialogues that ended in a fault always are.
    """

    ended: bool = True
    """The user ended it, or a terminal tool did: it was neither cut off at a cap nor given up."""
    replay: bool = True
    """Its tool calls, made again on a fresh world, answer as recorded and lead to the same world."""
    min_reward: Fraction | None = 1.0
    """The least that it earns by the domain's and the task's own predicates, judged anew on the
    world that it led to; null takes what earned nothing too."""
    identifiers: bool = True
    """Every identifier in an argument of the agent's calls was told before, by the rules, the tools'
    descriptions, the user or a tool."""
    rules: list[PredicateSpec] = []
    """The domain's rules, as predicates; each must hold wholly, or not apply."""
    user: bool = True
    """The user kept her contract: invented nothing, told nothing early, stayed in her role, and did
    not leave before all was settled."""
    judged: JudgedSpec | None = None
    """LLMs that read it, after all checks that need none; left out, none does."""
    near: Annotated[float, Field(gt=0, le=1)] | None = 0.65
    """Similarity to a dialogue that was kept before, from which this one is left out as a copy of it;
    null keeps all. Of two desk dialogues on different tasks none of 125,000 pairs was above 0.57, and a
    dialogue with a word or two of two messages changed is above 0.65 in 199 of 200."""

    @classmethod
    def only_true(cls) -> VerifySpec:
        """What demonstrations with bad habits stand: they happened as recorded, whatever they earned."""
        return cls(ended=False, min_reward=None, identifiers=False, user=False, near=None)
