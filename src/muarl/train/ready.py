"""What would stop a run is said before its folder is made, and before an old one is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.errors import Problem, SetupError, SpecError
from muarl.kernel.device import device_for
from muarl.kernel.ranks import Ranks
from muarl.policy.vllm_process import require_vllm
from muarl.render import Renderer, TextTokenizer
from muarl.spec import Located, RunSpec
from muarl.suite import AnyDomain
from muarl.train.engines import shared_prompts
from muarl.train.playing import model_folder
from muarl.train.servers import require_servers
from muarl.version import __version__
from muarl.world import diff


async def require_engine(run: RunSpec, model: Path | None, *, trains: bool = False) -> None:
    """Look whether what is to be sampled, and what samples it, are there; neither is loaded.

    Args:
        run: Says which engine, and which samples users who are a model.
        model: A run's folder or a model's; None: there is none yet.
        trains: New weights will be given to the engine.

    Raises:
        SetupError: The engine is not installed, does not answer, there is no model in the
            folder, or no GPU for this process where one is asked for.
    """
    device_for(run.model.device)
    if model is not None:
        model_folder(model)
    lora = run.model.lora is not None
    engines = [(run.engine, run.rollout.context_tokens, trains, lora)]
    hers = run.user_model
    if hers is not None and (run.user.models() or run.eval_user.models()):
        lora = hers.model.lora is not None
        engines.append((hers.engine, hers.context_tokens, hers.grpo is not None, lora))
    for engine, length, gets_weights, adapters in engines:
        if engine.vllm is not None:
            require_vllm()
        if engine.vllm_server is not None:
            await require_servers(
                engine.vllm_server, length, trains=gets_weights, adapters=adapters
            )


async def require_room(run: Located[RunSpec], domain: AnyDomain, model: Path) -> None:
    """Look whether a dialogue of a stored model can begin at all.

    Raises:
        SpecError: Rules and tools fill the whole context.
        SetupError: There is no model in the folder.
    """
    renderer = Renderer(TextTokenizer.load(model_folder(model)))
    refuse_no_room(run, await shared_prompts(domain, renderer))


def refuse_no_room(run: Located[RunSpec], prompts: Sequence[Sequence[int]]) -> None:
    """Refuse a context that the rules and the tools' schemas fill by themselves.

    Args:
        run: Says how much may be held.
        prompts: What every dialogue begins with, of each domain.

    Raises:
        SpecError: Not one message would fit.
    """
    limits = run.spec.rollout
    longest = max(map(len, prompts), default=0)
    if longest + limits.max_tokens > limits.context_tokens:
        message = (
            f"rules and tool schemas take {longest} tokens; with max_tokens "
            f"{limits.max_tokens} not one message fits into {limits.context_tokens}. Raise it"
        )
        raise SpecError([run.problem(("rollout", "context_tokens"), message)])


def refuse_for_many(located: Located[RunSpec], ranks: Ranks) -> None:
    """Refuse what several ranks cannot carry out together.

    Raises:
        SpecError: The run asks for it.
    """
    if not ranks.alone and (problems := list(_problems(located, ranks.size))):
        raise SpecError(problems)


_OF_EACH_RANK = {"run.domain", "run.threads", "run.model.device"}
"""What ranks may have of their own; where a domain lies says nothing, what it is made of does."""


def refuse_other_runs(run: RunSpec, content: Mapping[str, Any], ranks: Ranks) -> None:
    """Make sure that all ranks carry out the same run, or each would move its share by other rules.

    Collective.

    Args:
        run: This rank's.
        content: What its domain is made of.
        ranks: All of them.

    Raises:
        SetupError: Another rank was started with another; all say what differs.
    """
    mine = {"muarl": __version__, "run": run.model_dump(mode="json"), "domain": content}
    first, *others = map(msgspec.json.decode, ranks.gather(msgspec.json.encode(mine)))
    for rank, theirs in enumerate(others, start=1):
        found = [change for change in diff(first, theirs) if change.path not in _OF_EACH_RANK]
        if found:
            raise SetupError(
                f"rank {rank} was started with another run than rank 0. Give all of them the same "
                "command, files, environment and version of muarl. What differs, rank 0 -> rank "
                f"{rank}:\n" + "\n".join(f"  {change}" for change in found[:10])
            )


def _problems(located: Located[RunSpec], size: int) -> Iterator[Problem]:
    run, many = located.spec, f"with {size} ranks (torchrun)"
    if run.engine.vllm is not None:
        yield located.problem(
            ("engine",),
            f"engine: vllm runs in one process, and not {many}; start vLLM servers and name them under "
            "engine.vllm_server, or take engine: embedded",
        )
    if run.engine.plugin is not None:
        yield located.problem(
            ("engine", "plugin"),
            f"a policy of a package is opened in one process, and not {many}; take engine: embedded, or "
            "vLLM servers",
        )
    if run.user_model is not None:
        yield located.problem(
            ("user_model",),
            f"a user who is a model is not played {many}; start the run without torchrun",
        )
    if run.kernel.optimizer_bits == 8:
        yield located.problem(
            ("kernel", "optimizer_bits"),
            f"8-bit states are not shared out {many}; each rank holds a share of 32-bit ones: say 32",
        )
    grpo = run.grpo
    if grpo is None:
        return
    if grpo.mode.asynchronous is not None:
        yield located.problem(
            ("grpo", "mode"),
            f"asynchronous is not carried out {many}: what is learned from next would depend on which "
            "rank is faster; take on_policy or one_step_off",
        )
    if grpo.credit.checklist is not None and grpo.credit.weight:
        yield located.problem(
            ("grpo", "credit"),
            f"checklist credit is not measured {many}: judges could tell each rank something else; "
            "take another credit",
        )


def files_of_run(run: Located[RunSpec]) -> list[Path]:
    """What a run reads again and again, and nobody must write over: domain, model, recorded users."""
    hers = run.spec.user_model
    models = [run.spec.model.path, None if hers is None else hers.model.path]
    domain = run.resolve(run.spec.domain)
    folder = domain if domain.is_dir() else domain.parent
    recorded = [user.replay.file for user in run.spec.users() if user.replay]
    return [
        domain,
        *(run.resolve(model) for model in models if model),
        *(folder / file for file in recorded),
    ]
