"""Who plays the user of a dialogue, made of what run, domain and task say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from muarl.errors import PluginError, RecordError, SpecError
from muarl.seeds import generator
from muarl.spec import (
    DomainSpec,
    KnobsSpec,
    Located,
    PersonaSpec,
    TaskSpec,
    UserScriptSpec,
)
from muarl.spec.plugged import PluggedUser
from muarl.spec.user import (
    LlmUserSpec,
    ReplayUserSpec,
    SimulatorUserSpec,
    SpokenUserSpec,
    UserKindSpec,
    WordedUserSpec,
)
from muarl.user.fixed import FixedUser, teller
from muarl.user.plugin import Scene, plugged_user
from muarl.user.protocol import User
from muarl.user.scripted import ScriptedUser
from muarl.user.speaker import Mute, Speaker

if TYPE_CHECKING:
    from muarl.http.chat_client import ChatClient
    from muarl.user.replay import Recorded


class UnfitUser(SpecError):
    """A domain or a task lacks what a kind of user needs; whoever names that kind can say where."""


class Users:
    """Makes the users of a domain; what they share is made once."""

    def __init__(self, located: Located[DomainSpec]) -> None:
        self._located = located
        self._spec = located.spec
        self._clients: dict[tuple[object, ...], ChatClient] = {}
        self._recorded: dict[str, Recorded] = {}

    def user(
        self,
        who: UserKindSpec,
        task: TaskSpec,
        persona: str,
        seed: int,
        speaker: Speaker | None = None,
    ) -> User:
        """A user for one dialogue.

        Args:
            who: Her kind.
            task: What she wants.
            persona: How she is.
            seed: Of her draws.
            speaker: Samples the messages of one who is a model; without it she is mute.

        Raises:
            UnfitUser: Domain or task lack what this kind of user needs.
            SpecError: Knobs of persona and run say too much together.
            SetupError: The key of her endpoint is not set.
        """
        if who.llm is not None:
            return self._spoken(who.llm, task, persona, seed, self._client(who.llm))
        if who.model is not None:
            return self._spoken(who.model, task, persona, seed, speaker or Mute())
        if who.worded is not None:
            return self._worded(who.worded, task, persona, seed)
        if who.simulator is not None:
            return self._simulator(who.simulator, task, seed)
        if who.replay is not None:
            return self._replay(who.replay, task, seed)
        if who.fixed is not None:
            return self._fixed(task)
        if who.teller is not None:
            return teller(task.goal, who.teller.answers)
        if who.plugin is not None:
            return self._plugged(who.plugin, task, persona, seed)
        assert who.scripted is not None  # a user is of exactly one kind
        return self._scripted(who.scripted.knobs, task, persona, seed)

    def _scripted(self, knobs: KnobsSpec, task: TaskSpec, persona: str, seed: int) -> ScriptedUser:
        if self._spec.user is None or task.user is None:
            lacking = (
                "the domain has no `user` script"
                if self._spec.user is None
                else (f"task {task.id!r} has no `user` goal")
            )
            raise self._problem(f"{lacking}; add one, or let the run's user be an llm")
        return ScriptedUser(
            *(self._spec.user, self._spec.personas[persona], task.user, task.split),
            generator(seed, "scripted user"),
            knobs=self._knobs(persona, knobs),
            seed=seed,
        )

    def _spoken(
        self,
        spec: SpokenUserSpec,
        task: TaskSpec,
        persona: str,
        seed: int,
        speaker: Speaker,
    ) -> User:
        from muarl.user.contract import Contract
        from muarl.user.llm import LlmUser
        from muarl.user.steering import NEED_SCRIPT

        manner = self._spec.personas[persona]
        script = self._script(manner) if task.user is not None else None
        knobs = self._knobs(persona, spec.knobs)
        lacking = sorted(NEED_SCRIPT & knobs.rates.keys()) if script is None else []
        if lacking:
            raise self._problem(
                f"the knobs {', '.join(lacking)} of an LLM user need the domain's `user` script, by "
                f"which is known what the agent does, and the `user` goal of task {task.id!r}"
            )
        return LlmUser(
            spec,
            persona=manner,
            goal=task.goal,
            seed=seed,
            client=speaker,
            contract=Contract.of(task, manner, script),
            script=script,
            knobs=knobs,
        )

    def _worded(self, who: WordedUserSpec, task: TaskSpec, persona: str, seed: int) -> User:
        from muarl.user.contract import Contract
        from muarl.user.worded import WordedUser

        manner = self._spec.personas[persona]
        return WordedUser(
            self._scripted(who.knobs, task, persona, seed),
            who.llm,
            persona=manner,
            contract=Contract.of(task, manner, self._script(manner)),
            seed=seed,
            client=self._client(who.llm),
        )

    def _simulator(self, who: SimulatorUserSpec, task: TaskSpec, seed: int) -> User:
        from muarl.user.simulator import Simulator, lacking

        prompts = self._spec.simulator
        if prompts is None:
            raise self._problem(
                "the domain has no `simulator`; add one, or let the run's user be an llm"
            )
        if missing := lacking(prompts, who.strategy):
            texts = " and ".join(f"simulator.{name}" for name in missing)
            raise self._problem(f"the strategy {who.strategy!r} of the run's user needs {texts}")
        return Simulator(prompts, who, goal=task.goal, seed=seed, client=self._client(who.llm))

    def _replay(self, who: ReplayUserSpec, task: TaskSpec, seed: int) -> User:
        from muarl.user.replay import ReplayUser, read_replies

        if who.file not in self._recorded:
            try:
                self._recorded[who.file] = read_replies(self._located.resolve(who.file))
            except RecordError as error:
                raise self._problem(str(error)) from error
        of_task = self._recorded[who.file].get(task.id)
        if of_task is None:
            raise self._problem(f"{who.file} has no dialogue of task {task.id!r}; record one")
        return ReplayUser(of_task, generator(seed, "recorded user"))

    def _fixed(self, task: TaskSpec) -> User:
        if not task.turns:
            raise self._problem(f"task {task.id!r} has no `turns`, which a fixed user says")
        return FixedUser(task.turns)

    def _plugged(self, who: PluggedUser, task: TaskSpec, persona: str, seed: int) -> User:
        spec = self._spec.model_copy(deep=True)  # what she changes of it is hers alone
        scene = Scene(task.model_copy(deep=True), spec.personas[persona], persona, seed, spec)
        try:
            return plugged_user(who, scene)
        except PluginError as error:
            raise self._problem(str(error)) from error

    def _script(self, manner: PersonaSpec) -> UserScriptSpec | None:
        """The domain's language, as a persona hears it."""
        return None if self._spec.user is None else self._spec.user.heard_by(manner)

    def _knobs(self, persona: str, given: KnobsSpec) -> KnobsSpec:
        """The persona's and the run's together, which may say too much where neither does alone."""
        try:
            return self._spec.personas[persona].knobs.under(given)
        except ValidationError as error:
            why = "; ".join(str(each["ctx"]["error"]) for each in error.errors())
            message = (
                f"with the knobs of the run's user, which stand before these: {why}. Lower them"
            )
            place = ("personas", persona, "knobs")
            raise SpecError([self._located.problem(place, message)]) from None

    def _client(self, spec: LlmUserSpec) -> ChatClient:
        """One for all dialogues: what it learns of the endpoint's health concerns them all."""
        from muarl.user.llm import chat_client

        whom = (spec.base_url, spec.model, spec.api_key_env, spec.timeout_s)
        if whom not in self._clients:
            self._clients[whom] = chat_client(spec)
        return self._clients[whom]

    def _problem(self, message: str) -> UnfitUser:
        return UnfitUser([self._located.problem(("user",), message)])
