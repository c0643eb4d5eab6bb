"""The whole proof of a domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import gold_findings
from muarl.data.proof.names import name_findings
from muarl.data.proof.play import Means, estimate, expert_findings, floor_findings, over_floor
from muarl.data.proof.splits import split_findings
from muarl.domain import Domain
from muarl.errors import ToolServerError

DIALOGUES = 100
"""Dialogues per policy and split; enough to tell a floor of 0.15 from one of 0.25."""


@dataclass
class Proof:
    """What was looked at, and what was found.

    Attributes:
        domain: The domain's id.
        tasks: Split to number of tasks looked at.
        tools: Tools the server offers.
        idle: What doing nothing earns on each split.
        floor: Trivial policy to its mean reward on each split, in dialogues.
        expert: The expert's mean reward on each split.
        skipped: What could not be proved, and why.
        findings: Why the domain is not sound; empty if it is.
    """

    domain: str
    tasks: dict[str, int]
    tools: list[str] = field(default_factory=list)
    idle: Means = field(default_factory=dict)
    floor: dict[str, Means] = field(default_factory=dict)
    expert: Means = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    findings: list[ProofFinding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Nothing speaks against the domain."""
        return not self.findings

    @property
    def server_failed(self) -> bool:
        """The tool server did not start or died: a failure of the run, not of a spec."""
        return any(finding.check is Check.SERVER for finding in self.findings)


async def prove(
    domain: Domain,
    *,
    limit: int | None = None,
    dialogues: int = DIALOGUES,
    on_step: Callable[[str], None] = lambda step: None,
) -> Proof:
    """Prove a domain: names, gold calls, splits, then trivial policies and the expert in dialogues.

    Dialogues are played only where everything before them holds: they would fail for its reasons.

    Args:
        domain: The domain.
        limit: Look at no more tasks of a split than this.
        dialogues: Dialogues per policy and split.
        on_step: Called with what is proved next, for a progress display.

    Raises:
        SpecError: The domain's Python cannot be imported or breaks its contract.
    """
    on_step("tasks")
    subject = Subject(domain, limit)
    proof = Proof(domain.spec.id, {split: len(tasks) for split, tasks in subject.tasks.items()})
    try:
        on_step("tool server")
        tools = await domain.tools()
        proof.tools = [tool.name for tool in tools]
        on_step("names")
        proof.findings += name_findings(subject, proof.tools)
        on_step("splits")
        proof.findings += split_findings(subject)
        on_step("gold calls")
        if not _dangling(proof):
            await _prove_gold(subject, proof)
    except ToolServerError as error:
        proof.findings.append(subject.about(Check.SERVER, ("tools",), str(error), at_key=True))
    if proof.findings:
        proof.skipped.append("trivial policies and the expert were not played: mend this first")
    elif _unplayable(subject):
        proof.skipped.append(_unplayable(subject))
    else:
        on_step("trivial policies")
        proof.floor, found = await floor_findings(subject, tools, dialogues)
        proof.findings += found
        if domain.spec.expert is None:
            proof.skipped.append("the domain names no expert")
        else:
            on_step("expert")
            proof.expert, found = await expert_findings(subject, dialogues)
            proof.findings += found
    return proof


async def _prove_gold(subject: Subject, proof: Proof) -> None:
    for split, tasks in subject.tasks.items():
        idle: list[float] = []
        for task in tasks:
            found, _, reward = await gold_findings(subject, task)
            proof.findings += found
            if reward is not None:
                idle.append(reward)
        proof.idle[split] = earned = estimate(idle)
        whole = len(idle) == len(subject.domain.tasks(split))
        proof.findings += over_floor(subject, split, earned, "doing nothing", exact=whole)


def _dangling(proof: Proof) -> bool:
    return any(finding.check is Check.NAMES for finding in proof.findings)


def _unplayable(subject: Subject) -> str:
    """Why no dialogue can be played without a model, or ""."""
    if subject.domain.spec.user is None:
        return "no dialogue was played: the domain has no scripted user"
    if any(task.user is None for task in subject.all_tasks()):
        return "no dialogue was played: not every task has a `user` goal for the scripted user"
    return ""
