"""A model in pieces: each rank keeps a share of every weight, and of what its optimizer remembers.

By PyTorch's own engine, FSDP2 (`fully_shard`), with the kernel saying when weights come together:

    shares ──whole()──> weights, as in one process ──> gradients of this rank's samples
      ^                                                        │ sum_gradients(): summed over ranks
      └────────── the optimizer moves each rank's shares <─────┘ each keeps its shares'

Between those two moments ranks do not wait for one another, so each may run as many micro-batches as
its samples take; and weights that are whole are ordinary parameters, so shared prefixes, recomputation
and the output layer at loss positions are what they are in one process. The price: for the length of
an update each rank has room for all weights and all gradients, 8 bytes a weight in float32. Masters
and AdamW's two moments, 12 bytes a weight, are shared out.

All functions are collective where a model is in pieces, and do nothing where it is not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, distribute_tensor
from torch.nn import Parameter
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from muarl.kernel.ranks import Ranks


@dataclass
class _Shards:
    """A model in pieces.

    Attributes:
        mesh: The ranks.
        units: What comes together at once: each layer, and the rest.
        shares: This rank's of each parameter.
        names: Of the model's state.
        held: Blocks that want it whole.
    """

    mesh: DeviceMesh
    units: Sequence[FSDPModule]
    shares: dict[str, Parameter]
    names: list[str]
    held: int = 0


_sharded: WeakKeyDictionary[PreTrainedModel, _Shards] = WeakKeyDictionary()


def shard(model: PreTrainedModel, ranks: Ranks) -> None:
    """Leave each rank its share of a model that all of them have alike; alone, leave it as it is."""
    if ranks.alone:
        return
    names = list(model.state_dict())
    mesh = init_device_mesh(model.device.type, (ranks.size,))
    layers = [m for m in model.modules() if isinstance(m, GradientCheckpointingLayer)]
    for part in (*layers, model):
        fully_shard(part, mesh=mesh, reshard_after_forward=False)
    units = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for unit in units:
        # What FSDP would do by itself at each forward and backward pass is done here, in one place.
        unit.set_requires_gradient_sync(False, recurse=False)
        unit.set_reshard_after_backward(False, recurse=False)
    with torch.no_grad():  # the first pass tells FSDP which of its modules is the root
        model(torch.zeros(1, 1, dtype=torch.long, device=model.device), use_cache=False)
    for unit in units:
        unit.reshard()
    _sharded[model] = _Shards(mesh, units, dict(model.named_parameters()), names)


def is_sharded(model: PreTrainedModel) -> bool:
    """Whether it is in pieces."""
    return model in _sharded


@contextmanager
def whole(model: PreTrainedModel) -> Iterator[None]:
    """Have all of a model's weights within the block, to read them; blocks may be nested."""
    shards = _sharded.get(model)
    if shards is None:
        yield
        return
    if not shards.held:
        for unit in shards.units:
            unit.unshard()
    shards.held += 1
    try:
        yield
    finally:
        shards.held -= 1
        if not shards.held:
            for unit in shards.units:
                unit.reshard()


@contextmanager
def rewritten(model: PreTrainedModel) -> Iterator[None]:
    """Likewise to write them, on every rank the same."""
    with whole(model):
        yield
        shards = _sharded.get(model)
        if shards is None:
            return
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                share = shards.shares[name]
                _local(share).copy_(_local(share_like(share, parameter.detach())))


def state_of(model: PreTrainedModel) -> Mapping[str, Tensor]:
    """`state_dict` of a model that is whole now, in memory that outlives that."""
    shards = _sharded.get(model)
    if shards is None:
        return model.state_dict()
    tensors = {name: attrgetter(name)(model) for name in shards.names}
    # Copies, since what goes to a file by numpy cannot be freed; tied weights stay one.
    copies = {id(tensor): tensor.detach().cpu().clone() for tensor in tensors.values()}
    return {name: copies[id(tensor)] for name, tensor in tensors.items()}


def sum_gradients(model: PreTrainedModel, unsplit: Collection[str] = ()) -> None:
    """Add up the ranks' gradients, and leave each rank those of its shares; while the model is whole.

    Args:
        model: Which.
        unsplit: Parameters of whose gradient each rank gets all.
    """
    shards = _sharded.get(model)
    if shards is None:
        return
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        share = shards.shares[name]
        # A rank may have none, such as of experts that none of its tokens asked.
        own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        parameter.grad = None
        assert isinstance(share, DTensor)
        summed = DTensor.from_local(own, shards.mesh, [Partial()], run_check=False)
        to = [Replicate()] if name in unsplit else share.placements
        share.grad = summed.redistribute(placements=to)


def forget_gradients(model: PreTrainedModel) -> None:
    """Of the weights, whole and shared out."""
    model.zero_grad(set_to_none=True)
    if (shards := _sharded.get(model)) is not None:
        for share in shards.shares.values():
            share.grad = None


def share_like(share: Tensor, value: Tensor, *, unsplit: bool = False) -> Tensor:
    """Of a tensor that every rank has, this rank's share, laid out like another's; or all, if unsplit."""
    if not isinstance(share, DTensor) or value.shape != share.shape:
        return value
    to = [Replicate()] if unsplit else share.placements
    return distribute_tensor(value.to(share.device), share.device_mesh, to, src_data_rank=None)


def full(value: Tensor) -> Tensor:
    """A tensor of which each rank has a share."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def _local(value: Tensor) -> Tensor:
    return value.to_local() if isinstance(value, DTensor) else value
