"""Be the user of a domain, or with `--as agent` the agent, at the terminal.

As the user you talk with the domain's expert, or with the model of a run (`--run`); as the agent you
are given what a model is given, and talk with the domain's scripted user, or with the run's. At the
end stands what the dialogue earned, why, and what it changed in the world. `/help` lists what can be
commanded. Lines may come from a file or a pipe as well; their end is the end of the dialogue.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from muarl.cli._answer import answer
from muarl.cli._arguments import seed
from muarl.cli._telling import remark
from muarl.cli._which import all_tasks, task_of, unknown, wrong
from muarl.errors import NoRunError
from muarl.spec import load_run
from muarl.spec.run import RolloutSpec, RunSpec
from muarl.spec.user import modelless_user

if TYPE_CHECKING:
    from muarl.cli._terminal import Terminal
    from muarl.domain import Domain
    from muarl.policy import Policy
    from muarl.record import Episode, EpisodeKey, PredicateResult
    from muarl.spec import Located, TaskSpec
    from muarl.train.player import Player

_PATIENCE_S = 1e7
"""What a person may take for a message: months."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument(
        "what", metavar="DOMAIN[/TASK]", help="a domain's folder or file; a task's id, else any"
    )
    parser.add_argument(
        "--as",
        dest="role",
        choices=("user", "agent"),
        default="user",
        help="who you are (%(default)s)",
    )
    parser.add_argument("--persona", metavar="P", help="how the user is (default: drawn)")
    parser.add_argument(
        "--seed", type=seed, default=0, metavar="N", help="of every draw (default: 0)"
    )
    parser.add_argument(
        "--run", type=Path, metavar="FOLDER", help="a run, whose model or user you talk with"
    )
    parser.add_argument(
        "--calls", action="store_true", help="as the user: see the agent's tool calls as well"
    )


def run(args: argparse.Namespace) -> int:
    """Hold one dialogue, and print what it earned.

    Raises:
        SpecError: There is no such domain, task or persona, or nobody to talk with.
        NoRunError: There is no such run.
    """
    import anyio

    from muarl.cli._terminal import Terminal
    from muarl.domain import load_domain
    from muarl.seeds import generator

    path, task_id = _split(args.what)
    domain = load_domain(path)
    rng = generator(args.seed, "play")
    if not all_tasks(domain):
        raise wrong(domain, "there are no tasks, so that nothing can be played; write one")
    task = rng.choice(all_tasks(domain)) if task_id is None else task_of(domain, task_id)
    persona = args.persona or domain.draw_persona(task, rng)
    if persona not in domain.spec.personas:
        raise unknown(domain, "persona", persona, domain.spec.personas)
    of_run = _spec_of(args.run)
    if of_run is not None and args.role == "user":
        from muarl.cli._running import prepare_torch

        prepare_torch(of_run.spec.threads)
    elif args.role == "user" and domain.spec.expert is None:
        raise wrong(
            domain,
            "the domain names no `expert` to talk with; let a run's model speak (--run FOLDER), "
            "or be the agent yourself (--as agent)",
        )
    if args.role == "user" and domain.spec.environment is not None:
        raise wrong(domain, "an environment answers here, and no user: be the agent (--as agent)")
    terminal = Terminal()
    terminal.show(f"{domain.spec.id}/{task.id}: you are the {args.role}; /help helps")
    hold = _as_user if args.role == "user" else _as_agent
    episode = anyio.run(hold, domain, task, persona, args, of_run, terminal)
    if episode is None:
        terminal.show("\nyou left before the end: nothing is scored")
        return 0
    return _tell(episode)


def _split(what: str) -> tuple[Path, str | None]:
    """Domain, and task if one is named."""
    path = Path(what)
    if path.exists() or not ((path.parent / "domain.yaml").is_file() or path.parent.is_file()):
        return path, None
    return path.parent, path.name


def _spec_of(folder: Path | None) -> Located[RunSpec] | None:
    if folder is None:
        return None
    path = folder / "spec.resolved.yaml"
    if not path.is_file():
        way = "name the folder of one" if folder.exists() else "make one with: muarl train RUN.yaml"
        where = "" if folder.exists() else f" --out {folder}"
        raise NoRunError(f"no run in {folder}: {way}{where}")
    return load_run(path)


async def _as_user(
    domain: Domain,
    task: TaskSpec,
    persona: str,
    args: argparse.Namespace,
    of_run: Located[RunSpec] | None,
    terminal: Terminal,
) -> Episode:
    from muarl.cli._overheard import Overheard
    from muarl.dialogue import Dialogue
    from muarl.own_dialogue import LedDialogue
    from muarl.user.person import PersonUser

    key = _key(args.seed, task)
    style = domain.spec.personas[persona].style
    async with _agent(domain, of_run, args.run, task, key) as (policy, who):
        dialogue = Dialogue if who.loop is None else partial(LedDialogue, who.loop)
        return await dialogue(
            key=key,
            domain=domain,
            task=task,
            persona=persona,
            policy=policy,
            user=PersonUser(terminal, f"{task.goal}\n({persona}: {style})"),
            renderer=who.renderer,
            limits=who.limits.model_copy(update={"reply_s": _PATIENCE_S}),
            server=Overheard(domain.server, terminal) if args.calls else None,
        ).run()


async def _as_agent(
    domain: Domain,
    task: TaskSpec,
    persona: str,
    args: argparse.Namespace,
    of_run: Located[RunSpec] | None,
    terminal: Terminal,
) -> Episode | None:
    """The episode; None if the person left before it was over."""
    from muarl.data.expert import byte_limits, byte_renderer
    from muarl.dialogue import Dialogue, episode_seed
    from muarl.policy.person import PersonPolicy
    from muarl.render import in_convention
    from muarl.seeds import generator

    key = _key(args.seed, task)
    renderer = byte_renderer()
    who = modelless_user([task]) if of_run is None else of_run.spec.user
    name, kind = who.draw(generator(args.seed, "play", "user of the pool"))
    user = domain.user(kind, task, persona, episode_seed(key, "user"))
    limits = byte_limits(RolloutSpec() if of_run is None else of_run.spec.rollout)
    policy = PersonPolicy(terminal, in_convention(renderer, domain.convention))
    episode = await Dialogue(
        key=key,
        domain=domain,
        task=task,
        persona=persona,
        policy=policy,
        user=user,
        user_name=name,
        renderer=renderer,
        limits=limits.model_copy(update={"message_s": _PATIENCE_S}),
    ).run()
    return None if policy.left else episode


def _key(run_seed: int, task: TaskSpec) -> EpisodeKey:
    from muarl.record import EpisodeKey

    return EpisodeKey(run_seed, "play", 0, task.id, 0)


@asynccontextmanager
async def _agent(
    domain: Domain,
    of_run: Located[RunSpec] | None,
    folder: Path | None,
    task: TaskSpec,
    key: EpisodeKey,
) -> AsyncIterator[tuple[Policy, Player]]:
    """Whom the person talks with: the run's model, else the domain's expert."""
    if folder is None or of_run is None:
        from muarl.data.expert import ExpertPolicy, byte_limits, byte_renderer
        from muarl.render import in_convention
        from muarl.seeds import generator
        from muarl.train.player import Player

        agent = domain.expert(task, {}, generator(key.run_seed, str(key), "expert"))
        renderer = byte_renderer()
        policy = ExpertPolicy(agent, in_convention(renderer, domain.convention))
        yield policy, Player(lambda _task, _key: policy, renderer, byte_limits(RolloutSpec()))
        return
    from muarl.train.playing import player
    from muarl.train.run_loop import loop_of

    async with player(domain, of_run.spec, folder, loop_of(of_run)) as who:
        yield who.policy_for(task, key), who


def _tell(episode: Episode) -> int:
    """Print how it ended; the exit code."""
    if episode.reward is None:
        remark(f"muarl: the dialogue broke off: {episode.error}")
        return 1
    answer(f"\nthe dialogue is {episode.outcome.value}; reward {episode.reward:g}")
    for result in episode.rewards:
        answer(_in_words(result))
    if episode.metrics:
        answer("observed, not scored:")
    for result in episode.metrics:
        answer(_in_words(result))
    answer("changed in the world:" if episode.changes else "nothing is changed in the world")
    for change in episode.changes:
        answer(f"  {change}")
    return 0


def _in_words(result: PredicateResult) -> str:
    score = "does not apply" if result.score is None else f"{result.score:g}"
    evidence = f" ({result.evidence!r})" if result.evidence else ""
    return f"  {result.name}: {score}; {result.reason}{evidence}"
