"""What all stages of a run work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from muarl.evaluate.held_out import HeldOut
from muarl.kernel.ranks import ALONE, Ranks
from muarl.model_user import UserModel
from muarl.observe import Observation, Snapshot
from muarl.own_loop import AgentLoop
from muarl.record import Episode, EpisodeKey, JournalWriter
from muarl.render import Renderer
from muarl.scheduler import Fuse, Group
from muarl.scheduler.crew import Crew
from muarl.scheduler.rounds import StopSignal
from muarl.spec import RunSpec
from muarl.spec.user_model import UserModelSpec
from muarl.suite import AnyDomain
from muarl.train.progress import Progress
from muarl.train.run_folder import RunFolder


@dataclass(frozen=True)
class UserAtWork:
    """The model of a run's users.

    Attributes:
        spec: What it is, and how it is trained.
        model: Stages change its weights.
        renderer: Between messages and its tokens.
        plays: Holds its sides of dialogues.
    """

    spec: UserModelSpec
    model: PreTrainedModel
    renderer: Renderer
    plays: UserModel


@dataclass(frozen=True)
class RunAtWork:
    """One run, its folder open.

    Attributes:
        run: The run file.
        domain: Whose dialogues are held.
        folder: Where everything goes.
        journal: Gets each episode before it is used.
        done: Episodes of the journal that need not be played again.
        model: The policy; stages change its weights.
        renderer: Between messages and its tokens.
        prompts: Tokens that every dialogue begins with, of each domain.
        progress: Told how far the run is.
        stop: Drains on request.
        observation: Told what happens to dialogues.
        fuse: Ends the run when too many dialogues end in faults.
        user: The model of users, where the run has one.
        ranks: Who carry the run out together.
        crew: The same as they play dialogues; None: this process is the only one.
        home: Folder of the run file, which paths in it are relative to.
        loop: An agent's own loop, which leads every dialogue; None: muarl's.
    """

    run: RunSpec
    domain: AnyDomain
    folder: RunFolder
    journal: JournalWriter
    done: dict[EpisodeKey, Episode]
    model: PreTrainedModel
    renderer: Renderer
    prompts: list[list[int]]
    progress: Progress
    stop: StopSignal
    observation: Observation
    fuse: Fuse
    user: UserAtWork | None = None
    ranks: Ranks = ALONE
    crew: Crew | None = None
    home: Path = Path()
    loop: AgentLoop | None = None

    @property
    def user_model(self) -> UserModel | None:
        """What plays users who are a `model`."""
        return None if self.user is None else self.user.plays

    def held_out(self, on_group: Callable[[Group], None] = lambda _group: None) -> HeldOut:
        """Plays the held-out tasks into this run's journal; `on_group` is told of each group."""
        return HeldOut(
            domain=self.domain,
            run=self.run,
            renderer=self.renderer,
            journal=self.journal,
            done=self.done,
            stop=self.stop,
            on_group=on_group,
            observer=self.observation,
            user_model=self.user_model,
            crew=self.crew,
            loop=self.loop,
        )

    def since(self, before: Snapshot) -> dict[str, Any]:
        """What there was to be seen of the dialogues that came after a snapshot."""
        return self.observation.counters.snapshot().since(before).figures()
