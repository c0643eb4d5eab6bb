"""What a run file refers to by itself: its domain, its models, and what those need to be told."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from muarl.spec.base import Spec
from muarl.spec.finding import Finding
from muarl.spec.model import ColdStartSpec
from muarl.spec.named_files import no_file, no_python
from muarl.spec.run import RunSpec
from muarl.spec.user_model import UserModelSpec

_OF_THE_MODEL = {
    ("rollout", "max_tokens"): "1024",
    ("rollout", "context_tokens"): "16384",
    ("cold_start", "lr"): "1e-5",
    ("grpo", "lr"): "1e-6",
}
_OF_THE_USER_MODEL = {
    ("cold_start", "lr"): "1e-5",
    ("grpo", "lr"): "1e-6",
}
"""What depends on a model's size by orders of magnitude, and a usual value for one of billions."""


def run_findings(
    run: RunSpec, folder: Path, *, without_weights: bool = False, trains: bool = True
) -> Iterator[Finding]:
    """Files a run names that do not exist, training on what is evaluated, and users without models.

    Args:
        run: The run.
        folder: That of its file.
        without_weights: Do not ask for what is made first: folders of models, dialogues of a cold start.
        trains: Say what no policy could learn from; dialogues alone go with it.
    """
    yield from domain_findings(run.domain, folder)
    if run.rollout.loop is not None and (missing := no_python(folder, run.rollout.loop)):
        yield Finding(("rollout", "loop"), missing)
    at = None if without_weights else folder
    yield from _model(run.model.path, run, (), _OF_THE_MODEL, at)
    if run.user_model is not None:
        hers = run.user_model
        yield from _model(hers.model.path, hers, ("user_model",), _OF_THE_USER_MODEL, at)
        yield from _together(run, hers)
    for loc, user in ((("user",), run.user), (("eval", "user"), run.eval.user)):
        if user is not None and user.models() and run.user_model is None:
            message = "a user is a `model`, and the run has none for her; say which: `user_model`"
            yield Finding(loc, message)
    for of, holder in (((), run), (("user_model",), run.user_model)):
        if holder is None or holder.model.lora is None:
            continue
        server = holder.engine.vllm_server
        if server is not None and server.sync == "nccl":
            message = (
                "nccl sends whole weights, and with model.lora only adapters are sent; use disk"
            )
            yield Finding((*of, "engine", "vllm_server", "sync"), message)
    yield from _choices(run)
    if trains:
        yield from _nothing_to_learn_from(run)
        yield from _no_peak(run)
    for part, spec in run.trained_on():
        if isinstance(spec, ColdStartSpec) and spec.user.models():
            message = "an expert's dialogues are there before the user's model; say another user"
            yield Finding((*part, "user"), message)
        if isinstance(spec, ColdStartSpec) and spec.file is not None:
            if part != ("cold_start",):
                message = (
                    "a user learns from the expert's dialogues, which have her goals; leave it out"
                )
                yield Finding((*part, "file"), message)
            elif at is not None and not os.path.isfile(folder / spec.file):
                yield Finding((*part, "file"), no_file(folder, spec.file))
        if spec.split == run.eval.split and run.overlap.accepted is None:
            message = f"split {spec.split!r} is evaluated, so it cannot be trained on"
            yield Finding((*part, "split"), message)


def _choices(run: RunSpec) -> Iterator[Finding]:
    """Weights that are chosen on tasks on which they look better than they are."""
    chosen = None if run.grpo is None else run.grpo.validation
    if chosen is None:
        return
    used = {part.split: ".".join(loc) for loc, part in run.trained_on()} | {run.eval.split: "eval"}
    if (where := used.get(chosen.split)) is not None:
        message = (
            f"{where} is on split {chosen.split!r} too, and weights that are chosen on tasks look better "
            "on them than they are; choose on another split"
        )
        yield Finding(("grpo", "validation", "split"), message)


def _nothing_to_learn_from(run: RunSpec) -> Iterator[Finding]:
    """Groups in which nothing can be compared, or nothing that the policy did."""
    grpo = run.grpo
    if grpo is None:
        return
    if run.rollout.temperature == 0:
        message = (
            "at temperature 0 the policy says the likeliest and draws nothing, so nothing varies in a "
            "group but what others do, and there is nothing to learn from; let it be above 0"
        )
        yield Finding(("rollout", "temperature"), message)
    alone = run.rollout.group_size == 1
    if alone and grpo.baseline != "none" and not grpo.credit.tells_turns_apart:
        message = (
            f"the baseline of a group of one ({grpo.baseline}) is its own reward, so nothing is learned; "
            "take 2 or more, or grpo.baseline: none"
        )
        yield Finding(("rollout", "group_size"), message)


def _no_peak(run: RunSpec) -> Iterator[Finding]:
    """Rates that still rise when the run is over."""
    hers = run.user_model
    for of, start in (((), run.cold_start), (("user_model",), hers and hers.cold_start)):
        warmup, steps = (start.warmup_steps, start.steps) if start else (None, None)
        if warmup is not None and steps is not None and warmup > steps:
            yield Finding((*of, "cold_start", "warmup_steps"), _rising(warmup, f"{steps} updates"))
    if run.grpo is not None and run.grpo.lr_warmup_iterations > run.grpo.iterations:
        message = _rising(run.grpo.lr_warmup_iterations, f"{run.grpo.iterations} iterations")
        yield Finding(("grpo", "lr_warmup_iterations"), message)


def _rising(warmup: int, whole: str) -> str:
    return (
        f"the rate would rise until {warmup}, and after {whole} the run is over, far from its peak; "
        "take fewer"
    )


def domain_findings(domain: str, folder: Path) -> Iterator[Finding]:
    """A domain that does not exist."""
    if not os.path.exists(folder / domain):  # False, not OSError, for a path that is too long
        yield Finding(("domain",), no_file(folder, domain))
    elif (folder / domain).is_dir() and not (folder / domain / "domain.yaml").exists():
        yield Finding(("domain",), f"the folder {domain!r} has no domain.yaml")


def _model(
    path: str | None,
    holder: Spec,
    loc: tuple[str, ...],
    needs: Mapping[tuple[str, str], str],
    folder: Path | None,
) -> Iterator[Finding]:
    """A model's folder that does not exist, or what its run leaves to defaults for one made here.

    `folder` is that of the run's file; None: the model may be missing.
    """
    if path is None:
        return
    if folder is not None and not os.path.isdir(folder / path):
        yield Finding((*loc, "model", "path"), no_file(folder, path, "folder"))
        return
    for (part, key), usual in needs.items():
        spec = getattr(holder, part)
        if spec is not None and key not in spec.model_fields_set:
            yield Finding(
                (*loc, part),
                f"say {'.'.join((*loc, part, key))} for the model that "
                f"{'.'.join((*loc, 'model', 'path'))} names; left out it is "
                f"{getattr(spec, key):g}, which is for a tiny one (many begin with {usual})",
            )


def _together(run: RunSpec, hers: UserModelSpec) -> Iterator[Finding]:
    """What does not go with a user who is trained."""
    if hers.grpo is None:
        return
    loc = ("user_model", "grpo")
    temperatures = {model.temperature for model in run.user.models()}
    if run.grpo is not None and run.grpo.mode.on_policy is None:
        yield Finding(
            loc, "she learns from rounds of the present weights; let grpo.mode be on_policy"
        )
    if run.grpo is None:
        yield Finding(loc, "she learns from the policy's rounds; the run has no `grpo`")
    if not temperatures:
        yield Finding(loc, "she is trained on what she says; let `user` be a `model`")
    elif len(temperatures) > 1:
        message = "she is trained as she was sampled; give all her temperatures in `user` alike"
        yield Finding(loc, message)
    elif temperatures == {0.0}:
        message = (
            "at temperature 0 she says the likeliest and draws nothing, so there is nothing to learn "
            "from; let the temperature of the model in `user` be above 0"
        )
        yield Finding(loc, message)
    if run.eval_user.models():
        message = (
            "the user is trained, so evaluations before and after would meet different ones; say "
            "who plays her in evaluations, such as `eval: {user: {scripted: {}}}`"
        )
        yield Finding(("eval",), message)
