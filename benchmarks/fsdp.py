"""Do several ranks come to the loss and the gradient of one?

    python benchmarks/fsdp.py --json

A group of 16 samples of 500 tokens, 300 of them shared and a third of the rest sampled, through `Trainer`'s
own path: a GRPO update with clipping, divergence and both kinds of advantages, and a supervised step; by one
process, and by 2 and 4 that torchrun starts, over gloo, the model in pieces (FSDP2).

`loss_gap_N` is the largest difference of a loss, relative to it; `gradient_gap_N` that of a parameter's
gradient, relative to the norm of the whole gradient. One process that cuts its updates into other micro-batches
differs by `loss_gap_1` and `gradient_gap_1`. `step_s_N` are the seconds of both updates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from kernel import build_model, build_samples, say
from safetensors.torch import load_file, save_file
from torch import Tensor

from muarl.kernel.optimizer import Optimizer
from muarl.kernel.ranks import ALONE, Ranks, joined
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.shards import full, shard
from muarl.kernel.step import Trainer
from muarl.record import Sample
from muarl.spec import GrpoSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.model import ColdStartSpec

SIZES = (2, 4)
SPEC = GrpoSpec(freeze_embeddings=False, kl_coef=0.05)


def outcomes(args: argparse.Namespace, ranks: Ranks, max_tokens: int) -> dict[str, Any]:
    """Losses, gradients and seconds of both kinds of updates, cut at so many tokens."""
    torch.set_num_threads(1)
    samples = build_samples(args, args.vocab)
    found: dict[str, Any] = {}
    for kind in ("grpo", "sft"):
        model = build_model(args, args.vocab)
        shard(model, ranks)
        kernel = KernelSpec(max_tokens=max_tokens)
        if kind == "grpo":
            trainer = Trainer.for_grpo(model, SPEC, kernel, ranks)
        else:
            trainer = Trainer.for_cold_start(model, ColdStartSpec(optimizer="adamw"), kernel, ranks)
        gradients = _recorded(trainer.optimizer, dict(model.named_parameters()))
        began = time.monotonic()
        loss = (_grpo if kind == "grpo" else _sft)(trainer, samples)
        found[kind] = loss, gradients, time.monotonic() - began
    return found


def _grpo(trainer: Trainer, samples: list[Sample]) -> float:
    rows = sample_logprobs(trainer.model, samples, kernel=trainer.kernel, ranks=trainer.ranks)
    for sample, row in zip(samples, rows, strict=True):
        # As if older weights had sampled; the same whichever place the sample stands at.
        sample.logprobs = [
            value + 0.3 * ((token % 7) - 3) / 3 for value, token in _tokens(sample, row)
        ]
    return trainer.grpo_update(
        samples,
        [_advantage(sample) for sample in samples],
        spec=SPEC,
        lr=1e-3,
        reference_logprobs=[[value - 0.1 for value in row] for row in rows],
    ).loss


def _tokens(sample: Sample, row: list[float]) -> list[tuple[float, int]]:
    ids = [token for span in sample.spans for token in sample.token_ids[span.start : span.end]]
    return list(zip(row, ids, strict=True))


def _advantage(sample: Sample) -> float | list[float]:
    """Of half the samples one for all tokens, of the others one for each."""
    of = (sum(sample.token_ids) % 11 - 5) / 5
    return (
        of if sum(sample.token_ids) % 2 else [of * (1 + i % 3) for i in range(sample.num_sampled)]
    )


def _sft(trainer: Trainer, samples: list[Sample]) -> float:
    return trainer.sft_step(samples, 1e-3).loss


def _recorded(optimizer: Optimizer, parameters: dict[str, Any]) -> dict[str, Tensor]:
    """Filled with what the optimizer's next step is given, put together."""
    found: dict[str, Tensor] = {}
    step = optimizer.step

    def recording(lr: float) -> None:
        found.update({n: full(p.grad) for n, p in parameters.items() if p.grad is not None})
        step(lr)

    optimizer.step = recording  # type: ignore[method-assign]
    return found


def _gaps(found: dict[str, Any], one: dict[str, Any]) -> tuple[float, float]:
    losses, gradients = [], []
    for kind, (loss, gradient, _) in one.items():
        other, theirs, _ = found[kind]
        losses.append(abs(other - loss) / abs(loss))
        norm = torch.stack([g.norm() for g in gradient.values()]).norm()
        gradients += [((theirs[n] - g).norm() / norm).item() for n, g in gradient.items()]
    return max(losses), max(gradients)


def by_ranks(args: argparse.Namespace, size: int) -> dict[str, Any]:
    """The same by several processes."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(size), __file__, "--into", folder, *sys.argv[1:]]
        done = subprocess.run(command, stdout=sys.stderr, check=False)
        if done.returncode:
            sys.exit(f"{size} ranks failed")
        read = json.loads(Path(folder, "found.json").read_text())
        return {
            kind: (loss, load_file(Path(folder, f"{kind}.safetensors")), seconds)
            for kind, (loss, seconds) in read.items()
        }


def leave(found: dict[str, Any], folder: Path) -> None:
    """For the process that asked."""
    for kind, (_, gradient, _) in found.items():
        save_file(gradient, folder / f"{kind}.safetensors")
    said = {kind: (loss, seconds) for kind, (loss, _, seconds) in found.items()}
    (folder / "found.json").write_text(json.dumps(said))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--vocab", type=int, default=2000)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--group", type=int, default=16)
    parser.add_argument("--shared", type=int, default=300)
    parser.add_argument("--own", type=int, default=200)
    parser.add_argument("--sampled", type=float, default=0.3)
    parser.add_argument("--max-tokens", type=int, default=700)
    parser.add_argument("--ranks", type=int, nargs="+", default=list(SIZES))
    parser.add_argument(
        "--into", type=Path, help="a rank's: where the first one leaves its results"
    )
    args = parser.parse_args()
    if args.into is not None:
        with joined() as ranks:
            found = outcomes(args, ranks, args.max_tokens)
            if ranks.is_first:
                leave(found, args.into)
        return
    one = outcomes(args, ALONE, args.max_tokens)
    figures: dict[str, float] = {}
    other = outcomes(args, ALONE, args.max_tokens // 2)
    figures["loss_gap_1"], figures["gradient_gap_1"] = _gaps(other, one)
    for size in args.ranks:
        say(f"{size} ranks")
        found = by_ranks(args, size)
        figures[f"loss_gap_{size}"], figures[f"gradient_gap_{size}"] = _gaps(found, one)
        figures[f"step_s_{size}"] = round(sum(seconds for *_, seconds in found.values()), 3)
    figures["step_s_1"] = round(sum(seconds for *_, seconds in one.values()), 3)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
