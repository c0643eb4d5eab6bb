"""Past users: a first-in-first-out pool of what the user's weights were, of whom each dialogue draws.

With K past users, one every m iterations, iteration t meets the present user and those of

    the last K of 0, m, 2m, ... below t

each as likely as another. (The population of arXiv 2608.12253: K = 5, one every 4 steps, drawn
uniformly.) A user's number is the iteration whose weights she has; it is the version of her tokens.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio.to_thread
import torch
from transformers import PreTrainedModel

from muarl.kernel.device import moved
from muarl.kernel.model import copy_weights, load_model, save_model
from muarl.policy import Policy
from muarl.policy.torch_sampler import TorchPolicy
from muarl.record.whole import whole_folder
from muarl.spec.user_model import PastUsersSpec


def past_users(iteration: int, spec: PastUsersSpec) -> list[int]:
    """Numbers of the past users that an iteration meets, the oldest first.

    Example:
        Two past users, one every four iterations: iteration 0 meets none, 4 meets [0], 9 meets
        [4, 8], 12 meets [4, 8], 13 meets [8, 12].
    """
    return list(range(0, iteration, spec.every))[-spec.size :]


class PastUsers:
    """The past users of a run, each with an engine of her own.

    Args:
        spec: How many, and how often one joins.
        folder: Holds their weights, a folder for each.
        engines: As many engines as there may be past users, with the models they sample.
    """

    def __init__(
        self, spec: PastUsersSpec, folder: Path, engines: list[tuple[PreTrainedModel, TorchPolicy]]
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._engines = engines
        self._held: list[int | None] = [None] * len(engines)

    async def at(self, iteration: int, present: PreTrainedModel) -> list[Policy]:
        """Those that an iteration meets; the present user is kept, if she is to be met later.

        Raises:
            RecordError: The disk refused.
            SetupError: The weights of one are gone.
        """
        return await anyio.to_thread.run_sync(self._at, iteration, present)

    def _at(self, iteration: int, present: PreTrainedModel) -> list[Policy]:
        if iteration % self._spec.every == 0:
            with whole_folder(self._of(iteration)) as draft:
                save_model(present, draft)
        found: list[Policy] = []
        for number in past_users(iteration, self._spec):
            place = number // self._spec.every % self._spec.size
            model, engine = self._engines[place]
            if self._held[place] != number:
                copy_weights(load_model(self._of(number)), model)
                engine.set_version(number)
                self._held[place] = number
            found.append(engine)
        return found

    def forget(self, iteration: int) -> None:
        """Remove those whom no iteration from this one on meets."""
        needed = past_users(iteration, self._spec)
        for path in self._folder.iterdir():
            if path.name.isdecimal() and int(path.name) < min(needed, default=0):
                shutil.rmtree(path)

    def _of(self, number: int) -> Path:
        return self._folder / f"{number:06d}"


@asynccontextmanager
async def open_past_users(
    spec: PastUsersSpec,
    folder: Path,
    model_folder: Path,
    *,
    device: torch.device,
    context_tokens: int,
    slots: int,
) -> AsyncIterator[PastUsers]:
    """Make room for the past users of a run; their engines end with the block.

    Args:
        spec: How many.
        folder: Holds their weights.
        model_folder: A model of the same shape.
        device: Where they are.
        context_tokens: Of one user's side of a dialogue.
        slots: Dialogues at once, of all users together.
    """
    folder.mkdir(exist_ok=True)
    slots = -(-2 * slots // (spec.size + 1))  # twice her share of them
    async with AsyncExitStack() as held:
        engines = []
        for _ in range(spec.size):
            model = moved(load_model(model_folder), device)
            policy = TorchPolicy(model, max_len=context_tokens, slots=slots)
            engines.append((model, await held.enter_async_context(policy)))
        yield PastUsers(spec, folder, engines)
