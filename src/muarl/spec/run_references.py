"""What a run file refers to by itself: its domain, its model, and what that model needs to be told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muarl.spec.finding import Finding
from muarl.spec.named_files import no_file
from muarl.spec.run import RunSpec

_OF_THE_MODEL = {
    ("rollout", "max_tokens"): "1024",
    ("rollout", "context_tokens"): "16384",
    ("cold_start", "lr"): "1e-5",
    ("grpo", "lr"): "1e-6",
}
"""What depends on a model's size by orders of magnitude, and a usual value for one of billions."""


def run_findings(run: RunSpec, folder: Path) -> Iterator[Finding]:
    """Files a run names that do not exist, and training on what is evaluated."""
    if not os.path.exists(folder / run.domain):  # False, not OSError, for a path that is too long
        yield Finding(("domain",), no_file(folder, run.domain))
    elif (folder / run.domain).is_dir() and not (folder / run.domain / "domain.yaml").exists():
        yield Finding(("domain",), f"the folder {run.domain!r} has no domain.yaml")
    if run.model.path is not None and os.path.isdir(folder / run.model.path):
        yield from _untold(run)
    elif run.model.path is not None:
        yield Finding(("model", "path"), no_file(folder, run.model.path, "folder"))
    server = run.engine.vllm_server
    if run.model.lora is not None and server is not None and server.sync == "nccl":
        yield Finding(
            ("engine", "vllm_server", "sync"),
            "nccl sends whole weights, and with model.lora only adapters are sent; use disk",
        )
    for part, spec in (("cold_start", run.cold_start), ("grpo", run.grpo)):
        if spec is not None and spec.split == run.eval.split:
            message = f"split {spec.split!r} is evaluated, so it cannot be trained on"
            yield Finding((part, "split"), message)


def _untold(run: RunSpec) -> Iterator[Finding]:
    """What a run of a model from a folder leaves to defaults that are for a model made here."""
    for (part, key), usual in _OF_THE_MODEL.items():
        spec = getattr(run, part)
        if spec is not None and key not in spec.model_fields_set:
            yield Finding(
                (part,),
                f"say {part}.{key} for the model that model.path names; left out it is "
                f"{getattr(spec, key):g}, which is for a tiny one (many begin with {usual})",
            )
