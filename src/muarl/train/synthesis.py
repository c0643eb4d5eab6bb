"""A synthesis at work: play what is planned, look at all of it, keep what stands it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

from msgspec import structs

from muarl.errors import SpecError
from muarl.record import EpisodeKey, StoredEpisodes
from muarl.scheduler import Observer
from muarl.scheduler.dialogues import spread_keys
from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.seeds import generator
from muarl.spec import Located, RunSpec, SynthSpec
from muarl.spec.declared_tools import tools_in
from muarl.spec.finding import Finding, unknown
from muarl.spec.select import SelectSpec
from muarl.suite import AnyDomain, load_any_domain, one_of_each
from muarl.synth.graph import StateGraph
from muarl.synth.review import with_reviews
from muarl.synth.select import Selected, select
from muarl.synth.verdicts import RulingsWriter, known_rulings, known_verdicts, recorded
from muarl.synth.verify import SELECT, Verdict, Verifier, Yield
from muarl.train.player import Player, by_agents, by_endpoint, endpoint_client
from muarl.train.playing import play_planned, player, stored_user
from muarl.train.progress import Progress
from muarl.train.ready import require_engine, require_room
from muarl.train.run_domain import try_all_users
from muarl.train.run_folder import RunFolder

PHASE = "synth"
"""Of its dialogues."""

SPEC = "synth.yaml"
"""File of a synthesis' folder, beside those of any run: what was asked for."""


def run_of_synth(synth: Located[SynthSpec]) -> Located[RunSpec]:
    """The run that plays a synthesis; problems with it are told at the places of its own file."""
    return Located(synth.spec.as_run(synth.path.parent), synth.path, synth.root)


async def ready_synth(synth: Located[SynthSpec], run: Located[RunSpec]) -> AnyDomain:
    """Load the domain or the suite, and look whether agent, user and rules go with it.

    Raises:
        SpecError: File or domain have to be mended.
        SetupError: A model, an engine or the key of an endpoint is missing.
        ToolServerError: The tool server does not start.
    """
    domain = load_any_domain(synth.resolve(synth.spec.domain))
    split = synth.spec.split
    if split not in domain.splits:
        synth.refuse([Finding(("split",), unknown("split", split, domain.splits))])
    try_all_users(domain, synth.spec.user, domain.tasks(split), synth, ("user",))
    synth.refuse(_expert_findings(synth.spec, domain))
    synth.refuse(await _rule_findings(synth.spec, domain))
    Verifier(domain, synth.spec.verify)  # refuses replays that would do harm
    stored_user(run, [synth.spec.user])
    agent = synth.spec.agent
    if agent.llm is not None:
        endpoint_client(agent.llm)
    if agent.model is not None:
        model = synth.resolve(agent.model)
        await require_engine(run.spec, model)
        await require_room(run, domain, model)
    return domain


def plan_of_synth(synth: SynthSpec) -> dict[str, str]:
    """What makes its dialogues beside its run: a resumed one must say the same.

    What they have to stand may be said anew: it is looked at after they were made.
    """
    agent = synth.agent.model_dump(mode="json", exclude_none=True)
    for how in ("base_url", "api_key_env", "timeout_s"):  # where it is asked, not who
        agent.get("llm", {}).pop(how, None)
    return {"synth": json.dumps(agent)}


def keys_of_synth(domain: AnyDomain, synth: SynthSpec) -> list[EpisodeKey]:
    """The dialogues that it makes."""
    tasks = domain.tasks(synth.split)
    return spread_keys(tasks, synth.dialogues, run_seed=synth.seed, phase=PHASE)


async def synthesise(
    domain: AnyDomain,
    synth: Located[SynthSpec],
    run: Located[RunSpec],
    *,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
) -> Yield:
    """Play what the folder's journal does not hold yet, and look at all that it holds.

    Args:
        domain: The domain or the suite.
        synth: Who makes the dialogues, and what they have to stand.
        run: Its run, by `run_of_synth`.
        folder: Where the journal and the verdicts go.
        progress: Told how far it is.
        stop: Drains on request.
        observer: Told what happens to dialogues.

    Raises:
        Interrupted: `stop` was requested; the same goes on where it was.
        FaultRateError: Too many dialogues ended in faults.
    """
    spec = synth.spec
    keys = keys_of_synth(domain, spec)
    async with _agent(domain, synth, run.spec) as who:
        await play_planned(
            domain,
            run.spec,
            who,
            keys,
            folder=folder,
            progress=progress,
            stop=stop,
            observer=observer,
            user=stored_user(run, [spec.user]),
        )
    before = known_verdicts(folder.path)
    progress.phase("verification", len(keys))
    verdicts: list[Verdict] = []
    graph = StateGraph()
    candidates: list[Selected] = []
    with closing(RulingsWriter(folder.path)) as keep:
        verifier = Verifier(domain, spec.verify, known_rulings(folder.path), keep)
        looked_at = verifier.verdicts(StoredEpisodes([folder.journal]))
        async with aclosing(looked_at):
            async for episode, verdict in looked_at:
                if stop.requested:  # what judges ruled is kept; the rest is soon looked at anew
                    raise Interrupted
                if verdict.key in before:
                    verdict = with_reviews(verdict, before[verdict.key].reviews)
                graph.add(episode)
                if verdict.kept and spec.select is not None:
                    candidates.append(Selected(episode, spec.select.axes))
                verdicts.append(verdict)
                progress.advance(len(verdicts))
    if spec.select is not None:
        verdicts = _selected(verdicts, candidates, graph, spec.select)
    names = [*verifier.names, *([SELECT] if spec.select is not None else [])]
    return recorded(folder.path, verdicts, names, graph)


def _selected(
    verdicts: list[Verdict], candidates: list[Selected], graph: StateGraph, spec: SelectSpec
) -> list[Verdict]:
    """The verdicts, where those that were not chosen say so."""
    chosen = select(candidates, {one.key: graph.shape(one.key) for one in candidates}, spec)
    cells = {one.key: ", ".join(one.cell) for one in candidates}
    return [
        structs.replace(
            verdict,
            stage=SELECT,
            kind=cells[verdict.key],
            reason=f"of ({cells[verdict.key]}) there were more than its share",
        )
        if verdict.kept and verdict.key not in chosen
        else verdict
        for verdict in verdicts
    ]


@asynccontextmanager
async def _agent(
    domain: AnyDomain, synth: Located[SynthSpec], run: RunSpec
) -> AsyncIterator[Player]:
    agent = synth.spec.agent
    if agent.expert is not None:
        habits = agent.expert.imperfections
        yield by_agents(
            domain,
            run,
            lambda task, key: domain.of(task.id).expert(
                task, habits, generator(key.run_seed, str(key), "expert")
            ),
        )
    elif agent.model is not None:
        async with player(domain, run, synth.resolve(agent.model)) as who:
            yield who
    else:
        assert agent.llm is not None  # an agent is of exactly one kind
        yield by_endpoint(domain, run, agent.llm, judged=False)


def _expert_findings(synth: SynthSpec, domain: AnyDomain) -> Iterator[Finding]:
    if synth.agent.expert is None:
        return
    for task in one_of_each(domain, domain.tasks(synth.split)):
        try:
            domain.of(task.id).expert(task, synth.agent.expert.imperfections, generator(0))
        except SpecError as error:
            for problem in error.problems:
                yield Finding(("agent", "expert"), problem.message)


async def _rule_findings(synth: SynthSpec, domain: AnyDomain) -> list[Finding]:
    """Tools that rules name and no domain has."""
    agents = [tool.name for member in domain.members for tool in await member.tools()]
    hers = [tool.name for member in domain.members for tool in await member.user_tools()]
    return [
        Finding(("verify", "rules", *loc), unknown("tool", tool, offered))
        for loc, by, tool in tools_in(synth.verify.rules)
        if tool not in (offered := agents if by == "agent" else hers)
    ]


def files_of_synth(synth: Located[SynthSpec]) -> list[Path]:
    """What it reads beside its run's files, and nobody must write over."""
    model = synth.spec.agent.model
    return [synth.path, *([synth.resolve(model)] if model is not None else [])]
