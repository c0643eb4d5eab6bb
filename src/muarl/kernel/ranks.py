"""Processes that train one model together: who they are, and what they say to one another.

`torchrun` starts the same program several times; each process is a rank. All of them know the same
episodes and take the same decisions from them, in the same order; they share out what costs: dialogues,
and forward and backward passes. What they say to one another are sums, bytes, and the pieces of weights
and gradients (`muarl.kernel.shards`).

A process that was started by itself is the only rank, `ALONE`, and says nothing to anybody.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from muarl.record.sample import Sample

_PATIENCE = timedelta(days=30)
"""A rank may wait long for another's dialogues. Who has died is found out otherwise: see
`muarl.train.peers`."""
_GLOO_THREADS = 2
"""That run a group's collectives, if nobody says otherwise."""
_LET_GO_S = 10.0
"""That they are given; whatever else may hold a tensor, a run that is done does not wait for it for ever."""


class Ranks:
    """The ranks of a run, as one of them sees them.

    All methods but `share` are collective: every rank calls them, in the same order.

    Attributes:
        rank: This one, counted from 0.
        size: How many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @property
    def alone(self) -> bool:
        """Whether there is no other."""
        return self.size == 1

    @property
    def is_first(self) -> bool:
        """Whether this one writes what is written once."""
        return self.rank == 0

    def total(self, *values: float) -> list[float]:
        """Sums over the ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def largest(self, *values: float) -> list[float]:
        """The largest of any rank."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def _reduced(self, values: Sequence[float], by: dist.ReduceOp.RedOpType) -> list[float]:
        if self.alone:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, by)
        found: list[float] = tensor.tolist()
        return found

    def gather(self, data: bytes) -> list[bytes]:
        """What each rank has to say, by rank."""
        if self.alone:
            return [data]
        sizes = [int(size) for size in self._gathered(torch.tensor([len(data)]))]
        padded = torch.zeros(max(1, *sizes), dtype=torch.uint8)
        if data:
            padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        parts = zip(self._gathered(padded), sizes, strict=True)
        return [part[:size].numpy().tobytes() for part, size in parts]

    def _gathered(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor)
        return parts

    def meet(self) -> None:
        """Return when every rank has come so far."""
        self.total(0.0)

    def share(self, samples: Sequence[Sample]) -> list[int]:
        """Which of an update's samples this rank runs, by number.

        Equal parts of the tokens. Samples that begin alike stay together as far as that goes, since a
        shared prefix is computed once by each rank that has a sample of it:

            a.x a.y b.x b.y, equally long, 2 ranks   ->   [a.x a.y] [b.x b.y]
        """
        if self.alone:
            return list(range(len(samples)))
        order = sorted(range(len(samples)), key=lambda index: samples[index].token_ids)
        whole = sum(len(sample.token_ids) for sample in samples) or 1
        mine, before = [], 0
        for index in order:
            length = len(samples[index].token_ids)
            # By its middle; twice everything, to stay with integers.
            if (2 * before + length) * self.size // (2 * whole) == self.rank:
                mine.append(index)
            before += length
        return sorted(mine)


ALONE = Ranks()


def is_one_of_many() -> bool:
    """Whether torchrun started this process as one of several."""
    return dist.is_torchelastic_launched() and int(os.environ.get("WORLD_SIZE", "1")) > 1


def notice_board() -> Any:
    """Where ranks leave each other notices, held by torchrun: `set`, `get` and `check` of a store.

    Connections of its own; those of sums and gradients are in use.
    """
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    wait = timedelta(seconds=30)
    store = dist.TCPStore(address, port, is_master=False, timeout=wait)  # type: ignore[attr-defined]
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"muarl/{start}", store)  # type: ignore[attr-defined]


@contextmanager
def joined() -> Iterator[Ranks]:
    """Be a rank for the length of the block; alone, where torchrun started no other.

    Sums and bytes go over gloo, from the processor's memory; weights and gradients over NCCL, if they
    are on GPUs.
    """
    if not is_one_of_many():
        yield ALONE
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend, timeout=_PATIENCE)
    yield Ranks(dist.get_rank(), dist.get_world_size())
    # Not after an error: whoever waits for this rank shall see that its connections are closed.
    _leave_no_tensor_to_gloo()
    dist.destroy_process_group()


def _leave_no_tensor_to_gloo() -> None:
    """Return when gloo's threads hold no tensor any more.

    A thread says that its collective is done before it lets go of the tensor. Letting go of one that
    Python made needs the interpreter; where that is ending already, the process aborts ("terminate called
    without an active exception"). Destroying the group waits for the threads only if nothing else holds
    the group, and a model in pieces does.
    """
    for _ in range(_GLOO_THREADS):  # each may be late with its own
        tensor = torch.zeros(1)
        is_held = weakref.ref(tensor)
        dist.all_reduce(tensor)
        del tensor
        until = time.monotonic() + _LET_GO_S
        while is_held() is not None and time.monotonic() < until:
            time.sleep(0.001)  # the thread gets the interpreter meanwhile
