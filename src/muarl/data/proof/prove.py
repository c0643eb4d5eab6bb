"""The whole proof of a domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from muarl.data.proof.again import again_findings, made_again_findings
from muarl.data.proof.benchmark import UNREACHED, is_the_benchmarks
from muarl.data.proof.coverage import coverage_findings
from muarl.data.proof.duplicates import duplicate_findings
from muarl.data.proof.environment import UNPROVED, environment_findings
from muarl.data.proof.finding import Check, ProofFinding, Subject, spread
from muarl.data.proof.fuzz import Fuzzed, fuzz_findings
from muarl.data.proof.gold import GoldRun, gold_findings
from muarl.data.proof.names import name_findings
from muarl.data.proof.play import Means, estimate, expert_findings, floor_findings, over_floor
from muarl.data.proof.predicates import path_findings
from muarl.data.proof.reach import public_words, reach_findings
from muarl.data.proof.reads import Reads, read_findings, reads_of
from muarl.data.proof.sides import deed_findings, sync_findings
from muarl.data.proof.splits import split_findings
from muarl.data.proof.watch import CallWatch, watching
from muarl.domain import Domain
from muarl.errors import RewardError, ToolServerError
from muarl.messages import ToolSpec
from muarl.reward import LenientJudges
from muarl.spec import DomainSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.spec.speech import language_findings, untold_findings

DIALOGUES = 100
"""Dialogues per policy and split; enough to tell a floor of 0.15 from one of 0.25."""


@dataclass
class Proof:
    """What was looked at, and what was found.

    Attributes:
        domain: The domain's id.
        tasks: Split to number of tasks looked at.
        tools: Tools the server offers.
        user_tools: Tools on the user's own device.
        idle: What doing nothing earns on each split.
        floor: Trivial policy to its mean reward on each split, in dialogues.
        passed: Trivial policy to the tasks it passed in them, by id.
        expert: The expert's mean reward on each split.
        fuzz: What became of mutated gold runs, if any were asked for.
        skipped: What could not be proved, and why.
        findings: Why the domain is not sound; empty if it is.
        benchmark: The public benchmark whose tasks these are, if they are one's.
        of_benchmark: What was found about its tasks, which speaks against them and not the domain.
    """

    domain: str
    tasks: dict[str, int]
    tools: list[str] = field(default_factory=list)
    user_tools: list[str] = field(default_factory=list)
    idle: Means = field(default_factory=dict)
    floor: dict[str, Means] = field(default_factory=dict)
    passed: dict[str, list[str]] = field(default_factory=dict)
    expert: Means = field(default_factory=dict)
    fuzz: Fuzzed | None = None
    skipped: list[str] = field(default_factory=list)
    findings: list[ProofFinding] = field(default_factory=list)
    benchmark: str | None = None
    of_benchmark: list[ProofFinding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Nothing speaks against the domain."""
        return not self.findings


async def prove(
    domain: Domain,
    *,
    limit: int | None = None,
    dialogues: int = DIALOGUES,
    fuzz: int = 0,
    on_step: Callable[[str], None] = lambda step: None,
    on_remark: Callable[[str], None] = lambda remark: None,
    on_stuck: Callable[[Proof], None] = lambda proof: None,
) -> Proof:
    """Prove a domain: names, splits, duplicates, gold calls, reads, facts; then dialogues.

    Each step is taken only where those before it hold: it would fail for their reasons. No model is
    asked: what a `judge` predicate wants is taken to hold.

    Args:
        domain: The domain.
        limit: Look at no more tasks of a split than this.
        dialogues: Dialogues per policy and split, and tasks per split that extra reads are tried on.
        fuzz: Mutated gold runs to try.
        on_step: Called with what is proved next, for a progress display.
        on_remark: Called from another thread where a tool holds up this one, with which it is.
        on_stuck: Called from another thread where a call never ends, with what was proved by then and
            that as a finding. Only the end of the process ends such a call; without it the proof waits.

    Raises:
        SpecError: The domain's Python cannot be imported or breaks its contract.
    """
    judges, domain.judges = domain.judges, LenientJudges()
    try:
        on_step("tasks")
        prover = _Prover(Subject(domain, limit), dialogues, fuzz, on_step)

        def give_up(why: str) -> None:
            prover.note_failure(why)
            prover.proof.skipped.append("what comes after it was not proved: mend this first")
            on_stuck(prover.proof)

        with watching(domain, on_remark, give_up) as prover.watch:
            async with domain.sharing():
                await prover.run()
    finally:
        domain.judges = judges
    return prover.proof


class _Prover:
    """Takes the steps of one proof.

    Attributes:
        watch: Knows which call failed.
    """

    watch: CallWatch

    def __init__(
        self, subject: Subject, dialogues: int, fuzz: int, on_step: Callable[[str], None]
    ) -> None:
        self.subject = subject
        self.proof = Proof(
            subject.domain.spec.id,
            {split: len(tasks) for split, tasks in subject.tasks.items()},
            benchmark=benchmark.name if (benchmark := subject.domain.spec.benchmark) else None,
        )
        self._dialogues = dialogues
        self._fuzz = fuzz
        self._on_step = on_step
        self._tools: Sequence[ToolSpec] = ()
        self._user_tools: Sequence[ToolSpec] = ()
        self._gold: dict[str, GoldRun] = {}
        self._used: set[tuple[Who, str]] = set()

    async def run(self) -> None:
        proof, subject = self.proof, self.subject
        try:
            await self._prove_tasks()
        except ToolServerError as error:
            self.note_failure(str(error))
        if proof.benchmark is not None:
            proof.skipped.append(UNREACHED)
        if any(_asks_a_judge(subject)):
            proof.skipped.append("no judge was asked: what `judge` predicates want counts as held")
        if proof.findings:
            proof.skipped.append("trivial policies and the expert were not played: mend this first")
            return
        if reason := _unplayable(subject):
            proof.skipped.append(reason)
        else:
            await self._prove_dialogues()
        if proof.sound and subject.domain.spec.environment is None:
            offered: Reads = {"agent": self._tools, "user": self._user_tools}
            try:
                self._note(await coverage_findings(subject, offered, self._used))
            except ToolServerError as error:
                self.note_failure(str(error))

    def _note(self, found: Iterable[ProofFinding]) -> None:
        for finding in found:
            theirs = is_the_benchmarks(finding, self.subject)
            (self.proof.of_benchmark if theirs else self.proof.findings).append(finding)

    def note_failure(self, why: str) -> None:
        """A server failed: a finding, with the call in which it did."""
        task_id = None
        if (made := self.watch.failed) is not None:
            task_id = made.task_id
            why = f"{f'task {task_id!r}: ' if task_id else ''}{made}: {why}"
        problem = self.subject.domain.located.problem(("tools",), why, at_key=True)
        self._note([ProofFinding(Check.SERVER, problem, task_id)])

    async def _prove_tasks(self) -> None:
        proof, subject = self.proof, self.subject
        if not any(subject.tasks.values()):
            message = (
                "there are no tasks, so that nothing can be proved, played or learned; write one"
            )
            self._note([subject.about(Check.NAMES, ("tasks",), message, at_key=True)])
            return
        self._on_step("tool server")
        self._tools = await subject.domain.tools()
        self._user_tools = await subject.domain.user_tools()
        proof.tools = [tool.name for tool in self._tools]
        proof.user_tools = [tool.name for tool in self._user_tools]
        self._on_step("names")
        self._note(made_again_findings(subject))
        self._note(name_findings(subject, self._tools, self._user_tools))
        self._note(_speech_findings(subject))
        if subject.domain.spec.environment is not None:
            proof.skipped.append(UNPROVED)
            self._on_step("environment")
            self._note(await environment_findings(subject))
            return
        self._on_step("splits")
        self._note(split_findings(subject))
        self._note(duplicate_findings(subject))
        if any(finding.check is Check.NAMES for finding in proof.findings):
            return
        self._on_step("gold calls")
        await self._prove_gold()
        await self._prove_sync()
        self._on_step("gold calls, once more")
        of_tasks = ((task, self._gold.get(task.id)) for task in subject.all_tasks())
        runs = [(task, run) for task, run in of_tasks if run is not None]
        if not any(finding.check is Check.SYNC for finding in proof.findings):
            self._note(await again_findings(subject, runs))
        if any(
            finding.check in (Check.GOLD, Check.AGAIN, Check.SYNC) for finding in proof.findings
        ):
            return
        self._on_step("reads")
        await self._prove_reads()
        if self._fuzz:
            self._on_step("mutated gold runs")
            proof.fuzz, found = await fuzz_findings(subject, self._fuzz)
            self._note(found)
            if not proof.fuzz.counted:
                proof.skipped.append("no mutated gold run left the world otherwise than it should")

    async def _prove_gold(self) -> None:
        proof, subject = self.proof, self.subject
        for split, tasks in subject.tasks.items():
            idle: list[float] = []
            for task in tasks:
                found, run, reward = await gold_findings(subject, task)
                self._note(found)
                if reward is not None:
                    idle.append(reward)
                if run is not None:
                    self._gold[task.id] = run
                    self._used |= run.tools
            proof.idle[split] = earned = estimate(idle)
            whole = len(idle) == len(subject.domain.tasks(split))
            self._note(over_floor(subject, split, earned, "doing nothing", exact=whole))
        self._note(path_findings(subject, self._gold))

    async def _prove_sync(self) -> None:
        """One finding says it of all tasks."""
        if any(finding.check is Check.GOLD for finding in self.proof.findings):
            return
        for tasks in self.subject.tasks.values():
            for task in spread(tasks, self._dialogues):
                if found := await sync_findings(self.subject, task):
                    self._note(found)
                    return

    async def _prove_reads(self) -> None:
        """Extra reads change nothing; one finding for a tool that writes, one for each task."""
        subject = self.subject
        reads = reads_of(subject, self._tools, self._user_tools)
        public = public_words(subject, self._tools)
        benchmark = subject.domain.spec.benchmark
        unsolved = benchmark.unsolved if benchmark is not None else ()
        before = len(self.proof.findings)
        runs: list[tuple[TaskSpec, GoldRun]] = []
        for tasks in subject.tasks.values():
            made = [task for task in tasks if task.id in self._gold and task.id not in unsolved]
            for task in spread(tuple(made), self._dialogues):
                try:
                    more, run = await read_findings(subject, task, self._gold[task.id], reads)
                except RewardError as error:
                    self._note([subject.about_task(Check.READS, task, ("reward",), str(error))])
                    continue
                self._note(more)
                runs.append((task, run))
                self._used |= run.tools
            for task in tasks if benchmark is None else ():
                gold = self._gold[task.id]
                self._note(await reach_findings(subject, task, public, reads, gold))
                self._note(deed_findings(subject, task))
        if len(self.proof.findings) == before:
            self._note(await again_findings(subject, runs))

    async def _prove_dialogues(self) -> None:
        proof, subject = self.proof, self.subject
        self._on_step("trivial policies")
        floor, found = await floor_findings(subject, self._tools, self._dialogues)
        proof.floor, proof.passed = floor
        self._note(found)
        if subject.domain.spec.expert is None:
            proof.skipped.append("the domain names no expert")
            return
        self._on_step("expert")
        proof.expert, used, found = await expert_findings(subject, self._tools, self._dialogues)
        self._note(found)
        self._used |= used


def _speech_findings(subject: Subject) -> Iterator[ProofFinding]:
    domain = subject.domain
    tasks = [task for split in domain.splits for task in domain.tasks(split)]
    for found in language_findings(domain.spec, tasks):
        yield subject.about(Check.SPEECH, found.loc, found.message, at_key=found.at_key)
    for task in subject.all_tasks():
        for found in untold_findings(task, domain.spec):
            yield subject.about_task(Check.SPEECH, task, found.loc, found.message)


def _asks_a_judge(subject: Subject) -> Iterator[bool]:
    spec = subject.domain.spec
    holders: list[DomainSpec | TaskSpec] = [spec, *subject.all_tasks()]
    for holder in holders:
        for predicates in (holder.reward, holder.training_reward, holder.metrics):
            for predicate in predicates or ():
                yield from (part.judge is not None for _, part in predicate.walk())


def _unplayable(subject: Subject) -> str:
    """Why no dialogue can be played without a model, or ""."""
    if subject.domain.spec.environment is not None:
        return ""
    scripted = [task for task in subject.all_tasks() if not task.turns]
    if scripted and subject.domain.spec.user is None:
        return "no dialogue was played: the domain has no scripted user"
    if any(task.user is None for task in scripted):
        return "no dialogue was played: not every task has `turns`, or a `user` goal for the scripted user"
    return ""
