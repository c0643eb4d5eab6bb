"""What one update's log-probs and loss cost, beside a plain implementation, TRL's, and the floor.

    python benchmarks/kernel.py --json

A batch as in tau-bench: a group of 8 samples, 1,200 tokens shared and 800 of their own, 30 % of those
sampled, on a Qwen3 of random weights with the paper's vocabulary (151,936) and a smaller one (32,000).
Each way runs in a process of its own; a step is the forward and backward pass of the whole group, and
no optimizer.

    kernel    muarl: `Trainer`'s own path, from samples to gradients
    plain     the textbook: full logits of one sample at a time
    trl       TRL's GRPOTrainer: `compute_loss` on the same tokens and masks, then backward (optional:
              `pip install trl`; left out, and said, where it is not installed). On a CPU it scores all
              positions, on a GPU those of completions, tools and users included. `--trl-batch` samples
              at a time, gradients accumulated: a whole group with 151,936 words takes 40 GB
    floor     the body on the 1,200 + 8 · 800 distinct tokens and the head at the positions of sampled
              ones, forward and backward, and nothing else: no attention across prefix and samples, no
              softmax, no loss

`step_s` is the median of `--repeat` steps, `cpu_s` the processor time of one, `peak_mb` the most memory
above that of the model and its gradients. What is compared is processor time where both ran the same
number of threads, since wall time is what else the machine does, too.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from muarl.kernel.optimizer import adamw
from muarl.kernel.step import Trainer
from muarl.record import Sample, Span
from muarl.spec import GrpoSpec
from muarl.spec.kernel import KernelSpec

WAYS = ("kernel", "plain", "trl", "floor")
MESSAGE_TOKENS = 24
"""Length of one message of the policy; messages are spread evenly over a sample's own tokens."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def build_model(args: argparse.Namespace, vocab_size: int) -> PreTrainedModel:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.hidden // 64,
        num_key_value_heads=args.hidden // 128 or 1,
        head_dim=64,
        intermediate_size=3 * args.hidden,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
    )
    return Qwen3ForCausalLM(config).eval()


def build_samples(args: argparse.Namespace, vocab_size: int) -> list[Sample]:
    """The group: a shared prefix, then messages of the policy between what answered them."""
    rng = random.Random(0)
    prefix = [rng.randrange(vocab_size) for _ in range(args.shared)]
    count = max(1, round(args.sampled * args.own / MESSAGE_TOKENS))
    every = args.own // count
    samples = []
    for _ in range(args.group):
        ids = prefix + [rng.randrange(vocab_size) for _ in range(args.own)]
        ends = [args.shared + every * (number + 1) for number in range(count)]
        spans = [Span(end - MESSAGE_TOKENS, end, 0) for end in ends]
        logprobs = [-rng.random() * 5 - 8 for _ in range(count * MESSAGE_TOKENS)]
        samples.append(Sample(ids, spans, logprobs))
    return samples


Step = Callable[[], float]
"""Forward and backward of the group; the loss."""


def kernel_step(args: argparse.Namespace, model: PreTrainedModel, samples: list[Sample]) -> Step:
    """What the trainer does up to the optimizer, which stands still."""

    class Still:
        """Stands for an optimizer, and leaves the gradients where the others leave them."""

        def __init__(self) -> None:
            self.parameters = list(model.parameters())
            self.unsplit: set[str] = set()

        def step(self, lr: float) -> None:
            del lr

    trainer = Trainer(
        model, adamw(model, freeze_embeddings=False), kernel=KernelSpec(max_tokens=args.max_tokens)
    )
    trainer.optimizer = Still()  # type: ignore[assignment]
    advantages = [1.0 if number % 2 else -1.0 for number in range(len(samples))]
    return lambda: trainer.grpo_update(samples, advantages, spec=GrpoSpec(), lr=0.0).loss


def plain_step(model: PreTrainedModel, samples: list[Sample]) -> Step:
    """One sample at a time, all logits, as a first implementation would."""
    total = sum(sample.num_sampled for sample in samples)

    def step() -> float:
        loss = 0.0
        for number, sample in enumerate(samples):
            ids = torch.tensor([sample.token_ids])
            logprobs = model(ids).logits[0, :-1].float().log_softmax(-1)
            places = [i - 1 for i, sampled in enumerate(sample.loss_mask()) if sampled]
            found = logprobs[places].gather(-1, ids[0, 1:][places][:, None])[:, 0]
            ratio = (found - torch.tensor(sample.logprobs)).exp()
            advantage = 1.0 if number % 2 else -1.0
            clipped = ratio.clamp(0.8, 1.28) * advantage
            part = -torch.minimum(ratio * advantage, clipped).sum() / total
            part.backward()  # type: ignore[no-untyped-call]
            loss += part.item()
        return loss

    return step


def floor_step(args: argparse.Namespace, model: PreTrainedModel, samples: list[Sample]) -> Step:
    """The matrix products that nobody can do without."""
    prefix = torch.tensor([samples[0].token_ids[: args.shared]])
    own = torch.tensor([sample.token_ids[args.shared :] for sample in samples])
    places = torch.cat(
        [
            torch.tensor(sample.loss_mask()[args.shared :]).nonzero()[:, 0] - 1 + number * args.own
            for number, sample in enumerate(samples)
        ]
    )
    head = model.get_output_embeddings()
    slope = torch.randn(64, head.weight.shape[0]) / 1000

    def step() -> float:
        first = model.base_model(prefix, use_cache=False).last_hidden_state
        hidden = model.base_model(own, use_cache=False).last_hidden_state.flatten(0, 1)[places]
        leaf = hidden.detach().requires_grad_()
        for rows in leaf.split(64):  # no more logits alive than must be
            logits = head(rows)
            logits.backward(slope[: len(rows)])
        hidden_grad: Tensor = leaf.grad  # type: ignore[assignment]
        torch.autograd.backward([hidden, first], [hidden_grad, torch.ones_like(first)])
        return 0.0

    return step


def trl_step(
    args: argparse.Namespace, model: PreTrainedModel, samples: list[Sample], folder: str
) -> Step:
    """TRL's loss of a whole group, on tokens, masks and log-probs that it is given."""
    from datasets import Dataset
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    words = Tokenizer(WordLevel({"a": 0, "<pad>": 1, "</s>": 2}, unk_token="a"))
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=args.trl_checkpointing,
            per_device_train_batch_size=args.trl_batch,
            gradient_accumulation_steps=len(samples) // args.trl_batch,
            num_generations=len(samples),
            max_completion_length=args.own,
            epsilon_high=0.28,
            report_to=[],
        ),
        train_dataset=Dataset.from_dict({"prompt": ["a"] * len(samples)}),
        processing_class=PreTrainedTokenizerFast(
            tokenizer_object=words, pad_token="<pad>", eos_token="</s>"
        ),
    )
    trainer.current_gradient_accumulation_steps = len(samples) // args.trl_batch
    trainer.model.train()
    ids = torch.tensor([sample.token_ids for sample in samples])
    sampled = torch.tensor([sample.loss_mask()[args.shared :] for sample in samples])
    old = torch.zeros(sampled.shape)
    old[sampled] = torch.tensor([value for sample in samples for value in sample.logprobs])
    inputs = {
        "prompt_ids": ids[:, : args.shared],
        "prompt_mask": torch.ones_like(ids[:, : args.shared]),
        "completion_ids": ids[:, args.shared :],
        "completion_mask": torch.ones_like(ids[:, args.shared :]),
        "tool_mask": sampled.long(),
        "advantages": torch.tensor([1.0 if n % 2 else -1.0 for n in range(len(samples))]),
        "old_per_token_logps": old,
        "num_items_in_batch": sampled.sum(),
    }

    def step() -> float:
        total = 0.0
        for first in range(0, len(samples), args.trl_batch):
            some = {
                name: value if name == "num_items_in_batch" else value[first:][: args.trl_batch]
                for name, value in inputs.items()
            }
            loss: Tensor = trainer.compute_loss(trainer.model, some)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total

    return step


def rss_mb(field: str) -> float:
    """A line of this process's status: VmRSS now, VmHWM at most since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"this system does not say {field}")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def measure(args: argparse.Namespace) -> dict[str, float]:
    """One way, in this process."""
    torch.set_num_threads(args.threads)
    model, samples = build_model(args, args.vocab[0]), build_samples(args, args.vocab[0])
    with tempfile.TemporaryDirectory() as folder:
        if args.way == "trl":
            return cost(args, model, trl_step(args, model, samples, folder))
    if args.way == "floor":
        return cost(args, model, floor_step(args, model, samples))
    if args.way == "plain":
        return cost(args, model, plain_step(model, samples))
    return cost(args, model, kernel_step(args, model, samples))


def cost(args: argparse.Namespace, model: PreTrainedModel, step: Step) -> dict[str, float]:
    """What a step costs."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    gc.collect()
    before = rss_mb("VmRSS")
    forget_peak()
    loss = step()  # the first also warms up
    peak = rss_mb("VmHWM") - before
    walls, cpus = [], []
    for _ in range(args.repeat):
        model.zero_grad(set_to_none=False)
        wall, cpu = time.monotonic(), time.process_time()
        step()
        walls.append(time.monotonic() - wall)
        cpus.append(time.process_time() - cpu)
    return {
        "step_s": round(statistics.median(walls), 3),
        "cpu_s": round(statistics.median(cpus), 3),
        "peak_mb": round(peak),
        "loss": loss,
    }


def in_own_process(args: argparse.Namespace, way: str, vocab_size: int) -> dict[str, float]:
    keys = ("group", "shared", "own", "sampled", "hidden", "layers", "max_tokens", "threads")
    keys += ("repeat", "trl_batch")
    settings = [f"--{key.replace('_', '-')}={getattr(args, key)}" for key in keys]
    command = [sys.executable, __file__, f"--way={way}", f"--vocab={vocab_size}", *settings]
    command += ["--trl-checkpointing"] * args.trl_checkpointing
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    say(f"vocabulary {vocab_size}, {way}: {found}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--vocab", type=int, nargs="+", default=[32_000, 151_936])
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--shared", type=int, default=1200)
    parser.add_argument("--own", type=int, default=800)
    parser.add_argument("--sampled", type=float, default=0.3)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--trl-batch", type=int, help="samples at a time; the whole group")
    parser.add_argument("--trl-checkpointing", action="store_true", help="TRL's own default")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.trl_batch = args.trl_batch or args.group
    if args.way:
        print(json.dumps(measure(args)))
        return
    ways = [way for way in WAYS if way != "trl" or importlib.util.find_spec("trl")]
    if "trl" not in ways:
        say("TRL is not installed (`pip install trl`): nothing is compared with it")
    result: dict[str, Any] = {}
    for vocab_size in args.vocab:
        name = f"{round(vocab_size / 1000)}k"
        found = {way: in_own_process(args, way, vocab_size) for way in ways}
        result[name] = found
        ours = found["kernel"]
        result[f"time_over_floor_{name}"] = round(ours["cpu_s"] / found["floor"]["cpu_s"], 3)
        result[f"time_over_plain_{name}"] = round(ours["cpu_s"] / found["plain"]["cpu_s"], 3)
        if "trl" in found:
            result[f"time_over_trl_{name}"] = round(ours["cpu_s"] / found["trl"]["cpu_s"], 3)
            result[f"memory_over_trl_{name}"] = round(ours["peak_mb"] / found["trl"]["peak_mb"], 3)
    result["machine"] = {
        "cores": os.cpu_count(),
        "threads": args.threads,
        "torch": torch.__version__,
    }
    result["machine"]["python"] = platform.python_version()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
