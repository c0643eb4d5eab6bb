"""The desk's users, and four bad ones whom the reward cannot tell from them.

    honest      the domain's scripted users
    leaky       tells all she knows in her first message, what she should keep included
    agreeable   says yes to whatever she is asked to confirm
    early       leaves as soon as only what would be refused is left to ask for
    flipped     adds what an agent would say

The agent is the domain's expert, without imperfections, which makes one false claim a dialogue
(`muarl.measure.probe`): a user who agrees to anything is not seen otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from muarl.data.expert import ExpertPolicy
from muarl.domain import Domain, load_domain
from muarl.measure.episodes import EpisodeReader
from muarl.measure.probe import FalseClaims
from muarl.measure.transcript import Goal, Transcript
from muarl.measure.view import ledger
from muarl.policy import Policy
from muarl.record import EpisodeKey, JournalWriter, UserReply
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler import Limits
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.scheduler.rounds import run_round
from muarl.seeds import generator
from muarl.spec import KnobsSpec, TaskSpec
from muarl.spec.model import PolicyModelSpec, TinyModelSpec
from muarl.spec.run import RolloutSpec, RunSpec
from muarl.spec.user import ScriptedUserSpec, UserKindSpec, UserSpec
from muarl.train.run_folder import RunFolder
from muarl.user import User
from muarl.user.speaker import Speaker

DESK = Path(__file__).resolve().parent.parent / "domains" / "desk"
PHASE = "users"
FLIPS = ("is there anything else i can help you with?", "how may i help you today?")

OWN_FIGURE = {
    "leaky": "premature_disclosure",
    "agreeable": "sycophancy",
    "early": "premature_termination",
    "flipped": "role_flips",
}
"""What each of the bad users is worst at."""
USERS = ("honest", *OWN_FIGURE)


class Leaky:
    """Tells everything at once."""

    def __init__(self, user: User, task: Transcript) -> None:
        self._user = user
        self._secrets = [
            fact for fact in (*task.goals[0].facts, *task.facts) if fact.disclose != "volunteer"
        ]

    async def open(self) -> UserReply:
        said = await self._user.open()
        told = [f"the {fact.id.removesuffix('_id')} is {fact.value}" for fact in self._secrets]
        return msgspec.structs.replace(said, text=". ".join([said.text, *told]))

    async def reply(self, agent_text: str) -> UserReply:
        return await self._user.reply(agent_text)


class Early:
    """Leaves rather than be refused."""

    def __init__(self, user: User, task: Transcript) -> None:
        self._user = user
        self._left: list[Goal] = list(task.goals)

    async def open(self) -> UserReply:
        return await self._user.open()

    async def reply(self, agent_text: str) -> UserReply:
        said = await self._user.reply(agent_text)
        if said.act in ("next", "accept_refusal"):
            self._left.pop(0)
        if said.stop or any(goal.calls for goal in self._left):
            return said
        return UserReply("ok, bye", stop=True, act="stop")


class Flipped:
    """Speaks as herself, and then as the agent."""

    def __init__(self, user: User, rng: random.Random) -> None:
        self._user = user
        self._rng = rng

    async def open(self) -> UserReply:
        return self._flip(await self._user.open())

    async def reply(self, agent_text: str) -> UserReply:
        return self._flip(await self._user.reply(agent_text))

    def _flip(self, said: UserReply) -> UserReply:
        if self._rng.random() < 0.5:
            return said
        return msgspec.structs.replace(said, text=f"{said.text}. {self._rng.choice(FLIPS)}")


class Populated(Domain):
    """The desk, with another user in the place of its own."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(domain.located)
        self._name = name
        self.reader = EpisodeReader(self, user=name)

    def user(
        self,
        who: UserKindSpec,
        task: TaskSpec,
        persona: str,
        seed: int,
        speaker: Speaker | None = None,
    ) -> User:
        honest = super().user(who, task, persona, seed, speaker)
        planted: dict[str, Callable[[], User]] = {
            "leaky": lambda: Leaky(honest, self.reader.before(task, persona)),
            "early": lambda: Early(honest, self.reader.before(task, persona)),
            "flipped": lambda: Flipped(honest, generator(seed, "flips")),
        }
        return planted.get(self._name, lambda: honest)()


@dataclass(frozen=True)
class Panel:
    """The users, and what they play.

    Attributes:
        domain: The desk.
        tasks: What all of them play.
        renderer: Of the agent.
        seed: Of all draws.
    """

    domain: Domain
    tasks: Sequence[TaskSpec]
    renderer: Renderer
    seed: int

    @classmethod
    def load(cls, num_tasks: int, seed: int) -> Panel:
        """The desk's first tasks."""
        domain = load_domain(DESK)
        renderer = Renderer(train_tokenizer([], vocab_size=300))
        return cls(domain, domain.tasks("train")[:num_tasks], renderer, seed)

    async def play(self, name: str, journal: JournalWriter | Unjournaled) -> list[Transcript]:
        """All tasks with one of the users."""
        desk = Populated(self.domain, name)
        knobs = KnobsSpec(accept_false=1.0) if name == "agreeable" else KnobsSpec()
        runner = DialogueRunner(
            domain=desk,
            tasks=self.tasks,
            renderer=self.renderer,
            limits=RolloutSpec(max_tokens=400, context_tokens=20_000),
            user=UserSpec(scripted=ScriptedUserSpec(knobs=knobs)),
            policy_for=lambda task, key: self._agent(desk, task, key),
        )
        keys = episode_keys(self.tasks, run_seed=self.seed, phase=PHASE)
        groups = await run_round(keys, runner, limits=Limits(concurrency=64), journal=journal)
        return list(desk.reader.read(e for group in groups for e in group.episodes))

    def _agent(self, desk: Populated, task: TaskSpec, key: EpisodeKey) -> Policy:
        expert = desk.expert(task, {}, generator(self.seed, str(key), "expert"))
        facts = ledger(desk.reader.before(task, task.personas[0]))
        probing = FalseClaims(
            expert, facts, generator(self.seed, str(key), "false claims"), ["shall i go ahead"]
        )
        return ExpertPolicy(probing, self.renderer)

    async def keep(self, name: str, out: Path) -> None:
        """Play into the folder of a run, which `muarl users` reads."""
        spec = RunSpec(
            version=1, domain=str(DESK), model=PolicyModelSpec(tiny=TinyModelSpec()), seed=self.seed
        ).moved(Path(), out)
        folder = RunFolder.create(out, spec, resume=False, overwrite=True)
        with JournalWriter(folder.journal) as journal:
            await self.play(name, journal)
