"""Let every policy of a grid play with every user, into one journal."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from muarl.data.stored import refuse_another_domain
from muarl.data.trivial import trivial_agent, trivial_policies
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.evaluate.contamination import contamination
from muarl.evaluate.grid import GridFound, Played, compare, played
from muarl.evaluate.held_out import evaluation_tasks
from muarl.observe import Counters
from muarl.record import Episode, JournalWriter, read_journal
from muarl.render import Renderer
from muarl.scheduler import Fuse, Observer
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.rounds import StopSignal, bounds, run_round
from muarl.seeds import generator
from muarl.spec import GridSpec, Located, RunSpec, TaskSpec
from muarl.spec.finding import Finding, unknown
from muarl.spec.grid import GridPolicySpec, grid_phase
from muarl.spec.run import EvalSpec
from muarl.train.began_with import of_own_seed
from muarl.train.player import Player, by_agents, by_endpoint, by_package, endpoint_client
from muarl.train.playing import counting, keep_tokenizer, open_stored_user, player, stored_user
from muarl.train.progress import Progress
from muarl.train.ready import files_of_run, require_engine, require_room
from muarl.train.run_domain import placed, refuse_unfit, try_users
from muarl.train.run_folder import RunFolder, write_text
from muarl.train.run_loop import loop_of
from muarl.train.said import RESULT
from muarl.train.trained_before import (
    contaminations,
    other_than_seed,
    refuse_trained_tasks,
    training_of,
)
from muarl.train.users_measured import log_users

_USERS = "grid"
"""The phase by whose keys users are drawn: with all policies the same."""


def run_of_grid(grid: Located[GridSpec], run: Located[RunSpec]) -> Located[RunSpec]:
    """The grid's run, as it evaluates the grid's tasks."""
    spec, said = grid.spec, run.spec
    plays = EvalSpec(
        split=spec.split or said.eval.split,
        episodes=spec.tasks,
        temperatures=[spec.temperature],
    )
    limits = said.rollout.model_copy(update={"group_size": spec.trials})
    update = {
        "eval": plays,
        "rollout": limits,
        "seed": spec.seed,
        "user": spec.users[spec.first_user],
    }
    return replace(run, spec=said.model_copy(update=update))


async def ready_grid(grid: Located[GridSpec], run: Located[RunSpec]) -> Domain:
    """Load the domain, and look whether all policies and users of a grid are there.

    Args:
        grid: The grid.
        run: Its run, as `run_of_grid` makes it.

    Raises:
        SpecError: Grid, run or domain have to be mended, or a policy was trained on the tasks.
        SetupError: A model, an engine or the key of an endpoint is missing.
        ToolServerError: The tool server does not start.
    """
    domain = load_domain(run.resolve(run.spec.domain))
    grid.refuse(_findings(grid.spec, run.spec, domain))
    tasks = tasks_of_grid(domain, run.spec)
    for name, spec in grid.spec.users.items():
        for pooled, user in spec.users():
            with placed(grid, ("users", name), pooled):
                try_users(domain, [user], tasks)
    refuse_unfit(run, domain)
    stored_user(run, grid.spec.users.values())
    await domain.tools()
    grid.refuse(_other_trainings(grid))
    looked_at = set[Path]()
    for policy in grid.spec.policies.values():
        if policy.chat is not None:
            endpoint_client(policy.chat)  # refuses a key that is not set
        for model in _folders(grid, policy):
            await require_engine(run.spec, model)
            before = training_of(model)
            if before is not None and before.path not in looked_at:
                looked_at.add(before.path)
                refuse_trained_tasks(run, domain, model)
            await require_room(run, domain, model)
    return domain


def _other_trainings(grid: Located[GridSpec]) -> Iterator[Finding]:
    """Policies whose weights of several seeds are not of one kind of training, as far as is known."""
    for name, policy in grid.spec.policies.items():
        runs = [training_of(folder) for folder in _folders(grid, policy)]
        known = [run for run in runs if run is not None]
        where = ("policies", name, "model" if policy.model is not None else "cold_start")
        if len(known) > 1 and (other := other_than_seed(known)):
            message = (
                "its seeds are to be trainings of one kind, and differ in more than the seed: "
                f"{'; '.join(other[:3])}. Make them policies of their own"
            )
            yield Finding(where, message)
        elif len({run.spec.seed for run in known}) < len(known):
            yield Finding(where, "two of its folders hold a training with the same seed")


def tasks_of_grid(domain: Domain, run: RunSpec) -> list[TaskSpec]:
    """The tasks that a grid plays.

    Raises:
        SpecError: The run trains on one of them (law L10).
    """
    return evaluation_tasks(domain, run)


def plan_of_grid(grid: Located[GridSpec]) -> dict[str, str]:
    """What makes a grid beside its run: a resumed one must say the same."""
    policies = {
        f"grid.policies.{name}": ", ".join(str(f.resolve()) for f in _folders(grid, policy))
        or _policy_text(policy)
        for name, policy in grid.spec.policies.items()
    }
    if grid.spec.seeds is not None:
        policies["grid.seeds"] = str(grid.spec.seeds)
    return policies | {f"grid.users.{name}": _text(user) for name, user in grid.spec.users.items()}


def files_of_grid(grid: Located[GridSpec], run: Located[RunSpec]) -> list[Path]:
    """What a grid reads again and again, and nobody must write over."""
    of_users = [
        path
        for user in grid.spec.users.values()
        for path in files_of_run(replace(run, spec=run.spec.model_copy(update={"user": user})))
    ]
    policies = grid.spec.policies.values()
    return [*of_users, *(folder for policy in policies for folder in _folders(grid, policy))]


def _folders(grid: Located[GridSpec], policy: GridPolicySpec) -> list[Path]:
    """Where the weights of a policy are, one folder for each seed that has its own; none of rules."""
    named = (policy.folder(seed) for seed in grid.spec.every_seed)
    return list(dict.fromkeys(grid.resolve(folder) for folder in named if folder is not None))


async def play_grid(
    domain: Domain,
    grid: Located[GridSpec],
    run: Located[RunSpec],
    *,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
    counters: Counters | None = None,
) -> GridFound:
    """Play what the folder's journal does not hold yet, compare, and write `grid.json`.

    A fault is played again: what caused it may have been mended. But never after an effect, which
    would be had twice.

    Args:
        domain: The domain.
        grid: Policies, users and how often.
        run: Its run, as `run_of_grid` makes it.
        folder: Where the journal and the result go.
        progress: Told of each cell.
        stop: Drains on request.
        observer: Told what happens to dialogues.
        counters: Read before and after each cell.
    """
    spec = grid.spec
    tasks = tasks_of_grid(domain, run.spec)
    limits = run.spec.rollout
    fuse = Fuse(limits.max_fault_rate, limits.concurrency)
    found: dict[tuple[str, str], Played] = {}
    her_folder = stored_user(run, spec.users.values())
    renderers: list[Renderer] = []
    async with AsyncExitStack() as held:
        journal = held.enter_context(JournalWriter(folder.journal))
        opened = open_stored_user(run.spec, her_folder)
        user_model = await held.enter_async_context(opened)
        done = {
            episode.key: episode
            for episode in of_own_seed(
                folder.journal, read_journal(folder.journal), spec.every_seed
            )
            if not episode.outcome.is_fault or episode.effect
        }
        refuse_another_domain(domain, done.values())
        for policy_name, policy in spec.policies.items():
            price = policy.chat.price if policy.chat is not None else None
            episodes: defaultdict[str, dict[int, list[Episode]]] = defaultdict(dict)
            seen: dict[str, dict[str, Any]] = {}
            for seed in spec.every_seed:
                async with _player(domain, run, grid, policy, seed) as who:
                    renderers.append(who.renderer)
                    for user_name, user in spec.users.items():
                        before = None if counters is None else counters.snapshot()
                        of_seed = f", seed {seed}" if spec.seeds else ""
                        words = f"{policy_name} with {user_name}{of_seed}"
                        progress.phase(words, len(tasks) * spec.trials)
                        runner = DialogueRunner(
                            domain=domain,
                            tasks=tasks,
                            renderer=who.renderer,
                            limits=who.limits,
                            user=user,
                            policy_for=who.policy_for,
                            temperature=spec.temperature,
                            observer=observer,
                            load=who.load,
                            users_drawn_in=_USERS,
                            user_model=user_model,
                            loop=who.loop,
                        )
                        keys = episode_keys(
                            tasks,
                            run_seed=seed,
                            phase=grid_phase(policy_name, user_name),
                            group_size=spec.trials,
                        )
                        groups = await run_round(
                            keys,
                            runner,
                            limits=bounds(limits),
                            journal=journal,
                            done=done,
                            stop=stop,
                            fuse=fuse,
                            observer=observer,
                            on_group=counting(progress),
                        )
                        episodes[user_name][seed] = [e for group in groups for e in group.episodes]
                        if counters is not None and before is not None:
                            observed = counters.snapshot().since(before).figures()
                            seen[user_name] = observed  # of several seeds, the last
                            about = {"policy": policy_name, "user": user_name, "seed": seed}
                            folder.log("observed", **about, **observed)
            for user_name, by_seed in episodes.items():
                of_cell = (episode for of_seed in by_seed.values() for episode in of_seed)
                about = {"policy": policy_name, "user": user_name}
                log_users(folder, domain, of_cell, spec.seed, **about)
                found[policy_name, user_name] = played(
                    by_seed, seed=spec.seed, price=price, observed=seen.get(user_name)
                )
    if all(one.tokenizer.is_like(renderers[0].tokenizer) for one in renderers):
        keep_tokenizer(
            folder, renderers[0]
        )  # else an id would be read as what another policy meant
    of_weights = contaminations(
        run, domain, {name: _folders(grid, policy) for name, policy in spec.policies.items()}
    )
    of_others = {
        name: contamination(len(tasks), None)
        for name, policy in spec.policies.items()
        if policy.chat is not None or policy.plugin is not None
    }
    trained_on = of_weights | of_others
    result = compare(spec, found, trained_on)
    write_text(folder.path / RESULT, json.dumps(as_json(spec, tasks, result), indent=1))
    return result


def as_json(
    grid: GridSpec, tasks: list[TaskSpec], found: GridFound, *, observed: bool = False
) -> dict[str, Any]:
    """What `grid.json` holds: the same whenever the same is played.

    Args:
        grid: Who was compared with whom.
        tasks: Those that were played.
        found: What was found.
        observed: Also what the clock said, which is another each time.
    """
    said = msgspec.to_builtins(found, str_keys=True)
    if not observed:
        for cell in said["cells"]:
            del cell["observed"]
    return {
        "grid": grid.model_dump(mode="json", exclude_none=True),
        "tasks": [task.id for task in tasks],
        **said,
    }


@asynccontextmanager
async def _player(
    domain: Domain,
    located: Located[RunSpec],
    grid: Located[GridSpec],
    policy: GridPolicySpec,
    seed: int,
) -> AsyncIterator[Player]:
    run, loop = located.spec, loop_of(located)
    folder, expert, trivial = policy.folder(seed), policy.expert, policy.trivial
    if policy.plugin is not None:
        async with by_package(run, policy.plugin, loop=loop) as who:
            yield who
        return
    if policy.chat is not None:
        yield by_endpoint(domain, run, policy.chat, judged=True, loop=loop)
        return
    if folder is not None:
        async with player(domain, run, grid.resolve(folder), loop) as who:
            yield who
    elif expert is not None:
        yield by_agents(
            domain,
            run,
            lambda task, key: domain.expert(
                task, expert.imperfections, generator(key.run_seed, str(key), "expert")
            ),
            loop,
        )
    else:
        assert trivial is not None  # a policy is of exactly one kind
        tools = await domain.tools()
        yield by_agents(
            domain,
            run,
            lambda _task, key: trivial_agent(
                trivial, domain, tools, generator(key.run_seed, str(key), trivial)
            ),
        )


def _findings(grid: GridSpec, run: RunSpec, domain: Domain) -> Iterator[Finding]:
    """What of a grid the domain does not have."""
    if run.eval.split not in domain.splits:
        yield Finding(("split",), unknown("split", run.eval.split, domain.splits))
        return
    for name, user in grid.users.items():
        if user.models() and run.user_model is None:
            message = "she is a `model`, and the grid's run has none for her: `user_model`"
            yield Finding(("users", name), message)
    task = domain.tasks(run.eval.split)[0]
    floor = trivial_policies(domain.spec)
    for name, policy in grid.policies.items():
        if policy.trivial is not None and policy.trivial not in floor:
            message = unknown("policy without skill", policy.trivial, floor)
            yield Finding(("policies", name, "trivial"), message)
        if policy.expert is not None:
            try:
                domain.expert(task, policy.expert.imperfections, generator(0))
            except SpecError as error:
                for problem in error.problems:
                    yield Finding(("policies", name, "expert"), problem.message)


def _policy_text(policy: GridPolicySpec) -> str:
    """Who plays; not where an endpoint is, nor what it charges."""
    said = policy.model_dump(mode="json", exclude_none=True)
    for how in ("base_url", "api_key_env", "timeout_s", "price"):
        said.get("chat", {}).pop(how, None)
    return json.dumps(said)


def _text(spec: Any) -> str:
    return json.dumps(spec.model_dump(mode="json", exclude_none=True))
