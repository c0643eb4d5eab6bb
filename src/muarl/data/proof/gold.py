"""Gold calls earn 1, and doing nothing earns less; reading more changes neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.errors import EpisodeError
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import PredicateResult, Turn, UserReply
from muarl.reward import evaluate, reward_of
from muarl.reward.plugin import wants_said
from muarl.spec import GoldCallSpec, PredicateSpec, TaskSpec, TurnSpec
from muarl.spec.calls import Who
from muarl.tools import ToolSession
from muarl.world import World

Sides = Mapping[Who, ToolSession]
"""Whose calls go where."""


@dataclass
class GoldRun:
    """Calls made one after another on a fresh world, each confirmed by the user first.

    Where she has fixed messages they are what she says, and nothing is confirmed.

    Attributes:
        world: At first what the server's start left of it, then what the calls made of it.
        fixed: Her fixed messages, if she has any.
        confirmed: Whether the user does: no benchmark asks for it, and some limit messages.
        initial: The world before the calls.
        turns: The dialogue.
        refused: Position and answer of the first call that was answered with an error.
        tools: Tools that were called successfully, and by whom.
        made: Every call that was made, in order, and its answer.
    """

    world: World
    fixed: Sequence[TurnSpec] = ()
    confirmed: bool = True
    initial: World = field(init=False)
    turns: list[Turn] = field(default_factory=list)
    refused: tuple[int, str] | None = None
    tools: set[tuple[Who, str]] = field(default_factory=set)
    made: list[tuple[GoldCallSpec, ToolResult]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.initial = self.world.fork()
        self._to_say = list(enumerate(self.fixed))[1:]

    def go_on(self, turn: int) -> None:
        """Let her say her fixed messages up to one of them."""
        while self._to_say and self._to_say[0][0] <= turn:
            _, said = self._to_say.pop(0)
            reply = UserReply(said.says, act="next", shows=tuple(said.shows))
            self.turns.append(_turn("Done.", reply))

    async def call(self, sides: Sides, call: GoldCallSpec) -> str | None:
        """Make one call, the agent's confirmed; the answer if it was an error."""
        if self.fixed:
            self.go_on(call.turn)
        elif call.by == "agent" and self.confirmed:
            self.turns.append(_turn("", UserReply("yes", act="confirm")))
        return await self._make(sides, call, keep_errors=True)

    async def look(self, sides: Sides, call: GoldCallSpec) -> str | None:
        """Make one call that needs no yes; where it is answered with an error, it was not made."""
        return await self._make(sides, call, keep_errors=False)

    async def _make(self, sides: Sides, gold: GoldCallSpec, *, keep_errors: bool) -> str | None:
        call = ToolCall(id=f"call_{len(self.turns)}", name=gold.tool, arguments=gold.arguments)
        result = await sides[gold.by].call(call)
        self.made.append((gold, result))
        if keep_errors or not result.is_error:
            turn = _turn("", UserReply("", calls=[call], results=[result]))
            if gold.by == "agent":
                turn = _turn("", None, [call])
                turn.results = [result]
            self.turns.append(turn)
        if result.is_error:
            return result.content
        self.tools.add((gold.by, gold.tool))
        return None


async def run_calls(
    subject: Subject, task: TaskSpec, calls: Sequence[GoldCallSpec], *, strict: bool = True
) -> GoldRun:
    """Make calls on a fresh world of a task.

    Args:
        subject: The domain.
        task: The task.
        calls: In order.
        strict: Stop at the first that is answered with an error.

    Raises:
        ToolServerError: The server did not start, or died.
    """
    domain = subject.domain
    world = subject.world_for(task)
    async with domain.sides(world) as sides:
        run = GoldRun(world, task.turns, confirmed=domain.spec.benchmark is None)
        for index, gold in enumerate(calls):
            refusal = await run.call(sides, gold)
            if refusal is not None and run.refused is None:
                run.refused = (index, refusal)
                if strict:
                    break
        run.go_on(len(task.turns))
    return run


async def scored(
    subject: Subject,
    task: TaskSpec,
    gold: World,
    run: GoldRun,
    wanted: Sequence[PredicateSpec],
    *,
    silent: bool = False,
) -> list[PredicateResult]:
    """What a run is worth, by the predicates that are wanted, once the user has ended the dialogue.

    Args:
        subject: The domain.
        task: The task.
        gold: The world after its gold calls.
        run: What was done.
        wanted: The predicates. Two rewards may want other things said, so each is asked about the
            best dialogue by itself: what they want said is said before the calls.
        silent: Nothing is said.

    Raises:
        RewardError: A predicate could not be evaluated.
    """
    opening = UserReply(task.goal)
    turns = run.turns if silent else [*_said(wanted), *run.turns]
    if not _over(turns, subject.domain.spec.terminal):
        turns = [*turns, _turn("", UserReply("", stop=True, act="stop"))]
    evidence = subject.domain.evidence(run.world, gold, turns, opening, run.initial)
    return [await evaluate(predicate, evidence) for predicate in wanted]


def _over(turns: Sequence[Turn], terminal: Sequence[str]) -> bool:
    """Whether the last call ended the dialogue."""
    last = turns[-1].results if turns else ()
    return any(result.name in terminal and not result.is_error for result in last)


async def gold_findings(
    subject: Subject, task: TaskSpec
) -> tuple[list[ProofFinding], GoldRun | None, float | None]:
    """Make a task's gold calls on a fresh world and score them; score doing nothing beside it.

    Returns:
        What was found, the run of the gold calls, and what doing nothing earns (None if it could
        not be scored).

    Raises:
        ToolServerError: The server did not start, or died.
    """
    domain = subject.domain
    gold = await run_calls(subject, task, task.gold)
    if gold.refused is not None:
        index, answer = gold.refused
        message = f"gold call {task.gold[index].tool!r} was answered with an error: {answer}"
        return [subject.about_task(Check.GOLD, task, ("gold", index), message)], None, None
    nothing = GoldRun(gold.initial.fork())
    wanted = domain.reward_for(task, training=False)
    in_training = domain.reward_for(task, training=True)
    found = []
    try:
        best = await scored(subject, task, gold.world, gold, wanted)
        idle = await scored(subject, task, gold.world, nothing, wanted, silent=True)
        trained, idle_trained = best, idle
        if in_training is not wanted:
            trained = await scored(subject, task, gold.world, gold, in_training)
            idle_trained = await scored(
                subject, task, gold.world, nothing, in_training, silent=True
            )
    except EpisodeError as error:
        return [subject.about_task(Check.GOLD, task, ("reward",), str(error))], None, None
    for results, what in ((best, ""), (trained, " of the training reward")):
        if reward_of(results) < 1:
            earned = reward_of(results)
            rewarded = domain.reward_for(task, training=bool(what))
            low = {
                result.name for result in results if result.score is not None and result.score < 1
            }
            lacking = _lacking(task, rewarded) or _unsaid([p for p in rewarded if p.name in low])
            message = f"the gold calls earn {earned:g}{what}, not 1: {why(results)}{lacking}"
            found.append(subject.about_task(Check.GOLD, task, ("gold",), message))
            break
    for results, what in ((idle, ""), (idle_trained, " of the training reward")):
        if task.gold and reward_of(results) >= 1:
            message = (
                f"doing nothing already earns 1{what}; let the gold calls change something that the "
                "reward sees, or leave them out"
            )
            found.append(subject.about_task(Check.IDLE, task, ("gold",), message))
            break
    return found, gold, reward_of(idle)


def why(results: Sequence[PredicateResult]) -> str:
    """What a run lacks."""
    low = [f"{r.name}: {r.reason}" for r in results if r.score is not None and r.score < 1]
    return "; ".join(low) or "no predicate applies"


def _lacking(task: TaskSpec, wanted: Sequence[PredicateSpec]) -> str:
    """What to do about calls that predicates want, and that no gold call is; "" for none."""
    made = {(call.by, call.tool) for call in task.gold}
    lacking = list(dict.fromkeys(tool for by, tool in _called(wanted) if (by, tool) not in made))
    if not lacking:
        return ""
    return (
        f"; `called` wants {' and '.join(lacking)}, and no gold call is one: `gold` lists all that "
        "must be called, reads too; add it there, or leave the predicate out"
    )


def _unsaid(unmet: Sequence[PredicateSpec]) -> str:
    """What to do where code that looks at a dialogue may want something said to the user; "" for none.

    Gold calls say nothing by themselves: what code wants said is known only if it is listed.
    """
    for predicate in unmet:
        for _, part in predicate.walk():
            if part.python is not None and not part.python.says:
                return (
                    f"; if {part.python.function} wants something said to the user, list the texts "
                    "beside `function`, under `says`: check says them after the gold calls"
                )
            if part.plugin is not None and not wants_said(part.plugin):
                return (
                    f"; if {part.plugin.provided} wants something said to the user, its "
                    "PredicatePlugin needs `says=`: check says those texts after the gold calls"
                )
    return ""


def _called(wanted: Sequence[PredicateSpec]) -> Iterator[tuple[Who, str]]:
    """Tools that predicates want called, and by whom; `not` wants none."""
    for predicate in wanted:
        if predicate.called is not None:
            yield predicate.called.by, predicate.called.tool
        elif predicate.not_ is None:
            yield from _called([part for _, part in predicate.parts()])


def _said(wanted: Sequence[PredicateSpec]) -> Iterator[Turn]:
    """Messages that say all that predicates want said; `not` wants nothing said."""
    for predicate in wanted:
        if predicate.said is not None:
            yield _turn(predicate.said.text, UserReply(""))
        elif predicate.python is not None and predicate.python.says:
            yield _turn("\n".join(predicate.python.says), UserReply(""))
        elif predicate.plugin is not None:
            if texts := wants_said(predicate.plugin):
                yield _turn("\n".join(texts), UserReply(""))
        elif predicate.not_ is None:
            yield from _said([part for _, part in predicate.parts()])


def _turn(said: str, reply: UserReply | None = None, calls: Sequence[ToolCall] = ()) -> Turn:
    """A turn that no policy sampled."""
    return Turn(
        message=Message(role="assistant", content=said, tool_calls=tuple(calls)),
        sample=0,
        start=0,
        end=0,
        finish_reason="stop",
        policy_version=0,
        reply=reply,
    )
