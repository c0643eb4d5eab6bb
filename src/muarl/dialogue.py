"""One exchange: policy, tools and user take turns until an outcome.

Invariants (each a property test):
  1. a sample's ids are exactly the prompts sent, the ids sampled and the deltas between (L1);
  2. the mask is True exactly on sampled ids; a message cut at its cap is never closed or run (L1);
  3. only the user, a terminal tool, an environment or a cap ends a dialogue (L4);
  4. a failure of anything but the policy is a fault, never a reward (L2);
  5. tool calls of one message run in order, and each is answered; all of them, unless the domain's
     convention stops at one that failed;
  6. every wait has a name and a deadline, and a fault says in which of them it happened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile

from muarl.acting import Acting
from muarl.changed import Changed
from muarl.domain import Domain
from muarl.environments import whose_calls
from muarl.errors import EpisodeError, UserError
from muarl.gate import current_lane
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec, with_rules
from muarl.model_user import ModelSpeaker
from muarl.offer import Offer
from muarl.perturb import Perturbations
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.policy.flaws import sound_message
from muarl.record import NOT_MADE, Episode, EpisodeKey, Outcome, Sample, Turn, UserReply
from muarl.render import Renderer, in_convention
from muarl.seeds import derive_seed
from muarl.side import Side
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.spec.run import RolloutSpec
from muarl.tools import ToolServer, ToolSession
from muarl.user import User, hand_over
from muarl.waits import Gates, Waits
from muarl.world import Change, diff

_NAME_CHARS = 80


@dataclass
class _Transcript:
    """What a dialogue has produced so far; becomes the episode whatever happens."""

    opening: UserReply = field(default_factory=lambda: UserReply(""))
    tools: list[ToolSpec] = field(default_factory=list)
    user_tools: list[ToolSpec] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)


def episode_seed(key: EpisodeKey, purpose: str, attempt: int = 1) -> int:
    """The seed of one purpose in one attempt at an episode (law L5).

    Another attempt draws anew: what a fault depends on would otherwise just happen again.
    """
    parts = (key.run_seed, key.phase, key.iteration, key.task_id, key.sample, purpose)
    return derive_seed(*parts) if attempt == 1 else derive_seed(*parts, attempt)


class Dialogue:
    """Runs one dialogue of a task. Use once."""

    def __init__(
        self,
        *,
        key: EpisodeKey,
        domain: Domain,
        task: TaskSpec,
        persona: str,
        policy: Policy,
        user: User,
        renderer: Renderer,
        limits: RolloutSpec,
        temperature: float | None = None,
        attempt: int = 1,
        server: ToolServer | None = None,
        user_server: ToolServer | None = None,
        gates: Gates | None = None,
        user_name: str = "",
        perturbations: Perturbations | None = None,
        speaker: ModelSpeaker | None = None,
    ) -> None:
        """Prepare.

        Args:
            key: Whose episode it gives.
            domain: The domain.
            task: What the user wants.
            persona: As whom she speaks.
            policy: The agent.
            user: The user.
            renderer: Of the policy's model.
            limits: Caps and deadlines.
            temperature: None takes that of `limits`.
            attempt: 1 for the first try.
            server: Stands for the domain's own tool server, as what watches it does.
            user_server: Likewise for that of the user's device.
            gates: What all dialogues share; None limits nothing.
            user_name: Which of the run's users she is, where there are several.
            perturbations: What lies around `server` and `user`, for the record.
            speaker: Samples the user's messages, if she is a model, likewise.
        """
        self._key = key
        self._domain = domain
        self._server = server or domain.server
        self._user_server = user_server or domain.user_server
        self._acting: Acting | None = None
        self._task = task
        self._persona = persona
        self._policy = policy
        self._user = user
        self._user_name = user_name
        self._speaker = speaker
        self._perturbations = perturbations
        self._convention = domain.convention
        self._renderer = in_convention(renderer, self._convention)
        self._side = Side(self._renderer)
        self._limits = limits
        self._temperature = limits.temperature if temperature is None else temperature
        self._seed = episode_seed(key, "policy", attempt)
        self._log = _Transcript()
        self._gates = gates or Gates()
        self._waits = Waits(task.id)
        self._effect: str | None = None
        self._is_behind_endpoint = False  # the policy, whose tokens are unknown then
        self._world = domain.world_for(task)
        self._content_hash = domain.content_hash(task)
        self._initial = self._world.fork()
        self._set_up: list[Change] = []
        self._changed = Changed(self._world)

    async def run(self) -> Episode:
        """Talk until an outcome. Failures of the surroundings become fault outcomes.

        Raises:
            RewardError: A predicate could not be evaluated: the author's bug, not the policy's.
        """
        waits = self._waits
        current_lane.set(waits.lane)
        try:
            waits.now = "the start of the tool server"
            async with AsyncExitStack() as held:
                session = await held.enter_async_context(self._server.session(self._world))
                offer = Offer(session.tools, self._task, self._true_name)
                self._log.tools = list(offer.tools)
                if self._user_server is not None:
                    waits.now = "the start of the user's tool server"
                    device = self._user_server.session(self._world)
                    self._hand_over(await held.enter_async_context(device))
                if self._domain.spec.keeps_state:
                    self._set_up = diff(self._initial, self._world)
                    self._initial = self._world.fork()
                outcome = await self._talk(session, offer)
                waits.now = "the end of the tool session"
            waits.now = "the gold world"
            verdict = await self._domain.judge(
                self._task,
                self._world,
                self._log.turns,
                self._log.opening,
                initial=self._initial,
                training=self._key.trains,
            )
        except UserError as fault:
            return self._episode(Outcome.USER_FAULT, fault)
        except EpisodeError as fault:
            return self.broken_off(fault)
        episode = self._episode(outcome)
        episode.reward, episode.rewards = verdict.reward, verdict.rewards
        episode.metrics = verdict.metrics
        return episode

    def broken_off(self, why: EpisodeError) -> Episode:
        """The episode of a dialogue that could not go on, with all that was said until then."""
        return self._episode(Outcome.INFRA_FAULT, why)

    def _episode(self, outcome: Outcome, error: EpisodeError | None = None) -> Episode:
        log, hers = self._log, self._speaker
        if hers is not None:
            hers.thrown_away()  # what nobody waited for any more
        return Episode(
            key=self._key,
            domain=self._domain.spec.id,
            persona=self._persona,
            user=self._user_name,
            split=self._task.split,
            task_hash=self._task.situation_hash,
            axes=self._task.axes,
            content_hash=self._content_hash,
            system=self._domain.spec.rules,
            opening=log.opening,
            outcome=outcome,
            tools=log.tools,
            user_tools=log.user_tools,
            perturbed=list(self._perturbations.offered) if self._perturbations else [],
            turns=log.turns,
            samples=self._samples(),
            fault=type(error).__name__ if error else None,
            breach=error.breach if isinstance(error, UserError) else None,
            error=f"{error} (in {self._key}: {self._waits.now})" if error else None,
            effect=self._effect,
            start=self._set_up,
            changes=diff(self._initial, self._world),
            forks=0 if self._is_behind_endpoint else self._side.forks,
            user_samples=[s for s in hers.side.samples if s.spans] if hers else [],
            user_rejected=hers.rejected if hers else [],
            user_forks=hers.side.forks if hers else 0,
        )

    def _samples(self) -> list[Sample]:
        """What was sampled; of a model behind an endpoint, whose tokens are unknown, nothing."""
        return [Sample([])] if self._is_behind_endpoint else self._side.samples

    async def _talk(self, session: ToolSession, offer: Offer) -> Outcome:
        await self._open(offer)
        return await self._take_turns(session, offer)

    async def _open(self, offer: Offer) -> None:
        """Let the user say what she came for."""
        log = self._log
        log.opening = await self._user_says(self._user.open)
        offer.show(log.opening.shows)
        log.tools = list(offer.tools)
        log.history = [
            *with_rules(self._domain.spec.rules),
            Message(role="user", content=log.opening.text),
        ]

    async def _take_turns(self, session: ToolSession, offer: Offer) -> Outcome:
        log, limits, side = self._log, self._limits, self._side
        side.begin(log.history, offer.tools)
        if log.opening.stop:
            return Outcome.ABANDONED
        while True:
            if len(log.turns) == limits.max_turns:
                return Outcome.TRUNCATED_TURNS
            room = limits.context_tokens - len(side.prompt)
            if room <= 0:
                return Outcome.TRUNCATED_CONTEXT
            generation = await self._generate(side.prompt, min(room, limits.max_tokens))
            turn = self._record(generation)
            if generation.finish_reason == "length":
                self._domain.cut_short(self._world, turn.message)
                cut_by_context = room <= limits.max_tokens
                return Outcome.TRUNCATED_CONTEXT if cut_by_context else Outcome.TRUNCATED_LENGTH
            log.history.append(turn.message)
            if turn.message.tool_calls:
                answers = await self._run_calls(session, turn)
                if self._called_terminal(turn) or self._domain.is_over(self._world):
                    return Outcome.COMPLETED
                if self._steps_are_over():
                    return Outcome.TRUNCATED_TURNS
            else:
                turn.reply = await self._user_says(partial(self._user.reply, turn.message.content))
                if turn.reply.stop:
                    abandoned = turn.reply.act == "abandon"
                    return Outcome.ABANDONED if abandoned else Outcome.COMPLETED
                answers = [Message(role="user", content=turn.reply.text)]
            log.history.extend(answers)
            if turn.reply is not None and offer.show(turn.reply.shows):
                # The list of tools stands before all that was said, so the prefix breaks here.
                log.tools = list(offer.tools)
                side.begin(log.history, offer.tools)
            else:
                side.answer(answers, log.history, offer.tools)

    async def _generate(self, prompt: list[int], max_tokens: int) -> Generation:
        log = self._log
        return await self._sample(prompt, max_tokens, log.history, log.tools, len(log.turns))

    async def _sample(
        self,
        prompt: list[int],
        max_tokens: int,
        history: Sequence[Message],
        tools: Sequence[ToolSpec],
        turn: int,
    ) -> Generation:
        request = GenerateRequest(
            prompt_ids=prompt,
            dialogue=str(self._key),
            seed=derive_seed(self._seed, turn),
            max_tokens=max_tokens,
            temperature=self._temperature,
            stop_token_ids=self._renderer.stop_token_ids,
            history=tuple(history),
            tools=tuple(tools),
        )
        gate, seconds = self._gates.messages, self._limits.message_s
        async with self._waits.on("policy message", str(turn), gate, seconds):
            return await sound_message(self._policy, request, self._renderer.tokenizer.vocab_size)

    def _record(self, generation: Generation) -> Turn:
        message = self._side.read(generation, turn=len(self._log.turns))
        return self._begin_turn(message, self._side.keep(generation), generation)

    def _begin_turn(
        self, message: Message, where: tuple[int, int, int], generation: Generation
    ) -> Turn:
        """The turn of a message whose tokens are at `where`: sample, first and one past the last."""
        if generation.usage is not None:
            self._is_behind_endpoint, where = True, (0, 0, 0)
        sample, start, end = where
        turn = Turn(
            message=message,
            sample=sample,
            start=start,
            end=end,
            finish_reason=generation.finish_reason,
            policy_version=generation.policy_version,
            usage=generation.usage,
        )
        self._log.turns.append(turn)
        return turn

    def _hand_over(self, device: ToolSession) -> None:
        """Give the user her device, and keep a record of what she does with it."""
        self._log.user_tools = list(device.tools)
        self._acting = Acting(
            device, self._changed, self._waits, self._gates.calls, self._note_effect
        )
        hand_over(self._user, self._acting)

    async def _user_says(self, speak: Callable[[], Awaitable[UserReply]]) -> UserReply:
        """What she says, with what she did before she said it."""
        turn = str(len(self._log.turns))
        gate, seconds = self._gates.replies, self._limits.reply_s
        async with self._waits.on("user message", turn, gate, seconds):
            reply = await speak()
        return reply if self._acting is None else self._acting.noted(reply)

    def _note_effect(self, who: Who, tool: str) -> None:
        """Before a call: one that times out may have been carried out all the same."""
        if self._effect is None and self._domain.spec.writes_outside_by(who, tool):
            self._effect = tool

    async def _run_calls(self, session: ToolSession, turn: Turn) -> list[Message]:
        answers = []
        stops = self._convention is not None and self._convention.stops_at_error
        for call in turn.message.tool_calls:
            if stops and turn.results and turn.results[-1].is_error:
                text = "not made: the call before it failed"
                result = ToolResult(call.id, call.name, text, is_error=True, instead=NOT_MADE)
                turn.answered(result, [])
            else:
                result = await self._call(session, call, turn)
            answers.append(result.as_message(call.name))
        return answers

    async def _call(self, session: ToolSession, call: ToolCall, turn: Turn) -> ToolResult:
        self._note_effect("agent", self._true_name(call.name))
        which = f"{len(self._log.turns) - 1}.{len(turn.results)}, {call.name[:_NAME_CHARS]!r}"
        whose_calls.set(turn.message)
        with self._changed.by_call() as changes:
            async with self._waits.on("tool call", which, self._gates.calls):
                result = await session.call(call)
        turn.answered(result, changes)
        return result

    def _true_name(self, called: str) -> str:
        """The domain's name of a tool that perturbations may have shown under another one."""
        return called if self._perturbations is None else self._perturbations.true_name(called)

    def _steps_are_over(self) -> bool:
        """Whether more messages in a row hold calls than the domain's `max_steps` lets one turn have."""
        most = self._domain.spec.max_steps
        if most is None:
            return False
        in_a_row = takewhile(lambda turn: turn.message.tool_calls, reversed(self._log.turns))
        return sum(1 for _ in in_a_row) > most

    def _called_terminal(self, turn: Turn) -> bool:
        terminal = self._domain.spec.terminal
        return any(result.name in terminal and not result.is_error for result in turn.results)
