"""Policies that an installed package provides."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import msgpack, structs

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import EpisodeError, MuarlError, PluginError, PolicyError, WeightSyncError
from muarl.json_values import json_problem
from muarl.messages import Message
from muarl.policy.flaws import flaw_of
from muarl.policy.protocol import EngineLoad, GenerateRequest, Generation, Loaded, Policy
from muarl.record import Usage
from muarl.spec.plugged import PluggedPolicy
from muarl.spec.plugin import O, Plugin

if TYPE_CHECKING:
    from muarl.render import Renderer


@dataclass(frozen=True)
class Seat:
    """What a policy is opened for.

    Attributes:
        weights: Folder of the model it begins with, in Hugging Face form; None where a spec names none, as
            among the policies of a grid.
        context_tokens: Tokens of a dialogue, at most.
        at_once: Dialogues that may be alive at once.
        renderer: The tokenizer and the chat template of the dialogues.
    """

    weights: Path | None
    context_tokens: int
    at_once: int
    renderer: Renderer

    def says(
        self, message: Message, request: GenerateRequest, usage: Usage | None = None
    ) -> Generation:
        """A message whose tokens nobody knows, as one of an agent behind an endpoint.

        Such a policy can be evaluated, and nothing can be trained on what it says.

        Args:
            message: What it says, or calls.
            request: What it was asked for.
            usage: Of the model that wrote it, where that is known.
        """
        from muarl.policy.spoken import (
            as_sampled,  # loads tokenizers; specs that name a policy need none
        )

        generation = as_sampled(message, self.renderer, request)
        usage = usage or Usage("unknown")
        return structs.replace(generation, message=message, finish_reason="stop", usage=usage)


class Retrainable(Policy, Protocol):
    """A policy that takes the weights that training makes."""

    async def load_weights(self, folder: Path, version: int) -> None:
        """Sample with these weights from now on, and call them `version` (`policy_version`).

        Args:
            folder: In Hugging Face form; it goes once this returns.
            version: Of the weights.
        """
        ...


@dataclass(frozen=True)
class PolicyPlugin(Plugin[O]):
    """A policy, registered in the group `muarl.policies`.

    Under `engine` it samples the model of a run, and its tokens are trained on; among the policies of a
    grid it is whatever it is.

    Attributes:
        options: The model of what a spec may say to it.
        make: Makes what is entered to get the policy, of options and seat: an async context manager,
            which ends with the run.
        trains: It takes new weights (`Retrainable`), so that a run that trains may name it.
    """

    make: Callable[[O, Seat], AbstractAsyncContextManager[Policy]]
    trains: bool = False

    group = "muarl.policies"


@asynccontextmanager
async def open_policy(named: PluggedPolicy, seat: Seat) -> AsyncIterator[OpenedPolicy]:
    """The policy, for the length of the block.

    Raises:
        PluginError: Its package raised as it was opened or closed, or made what is no policy.
    """
    plugin = named.registered(PolicyPlugin)
    whose = str(named.provided)
    now = "starts"
    try:
        async with plugin.make(named.options, seat) as policy:
            wanted = ["generate", *(["load_weights"] if plugin.trains else [])]
            lacking = [name for name in wanted if not callable(getattr(policy, name, None))]
            if lacking or type(getattr(policy, "policy_version", None)) is not int:
                missing = " and ".join([*lacking, *([] if lacking else ["policy_version"])])
                raise PluginError(
                    f"{whose} made a {type(policy).__name__}, which is no muarl.plugins."
                    f"{'Retrainable' if plugin.trains else 'Policy'}: it lacks {missing}"
                )
            now = "runs"
            yield OpenedPolicy(policy, whose, seat.renderer.tokenizer.vocab_size)
            now = "ends"
    except RAISED as error:  # boundary: the package raises anything, and so may what the block does
        let_others_pass(error)
        if now == "runs" or isinstance(error, MuarlError):
            raise
        raise PluginError(f"{whose} raised as it {now}: {blame(error)}") from error


class OpenedPolicy:
    """A policy whose code is another author's: what it raises is its fault, and said of it."""

    def __init__(self, policy: Policy, whose: str, vocab_size: int) -> None:
        self._policy = policy
        self._whose = whose
        self._vocab_size = vocab_size

    @property
    def policy_version(self) -> int:
        return self._policy.policy_version

    async def generate(self, request: GenerateRequest) -> Generation:
        try:
            generation = await self._policy.generate(request)
            flaw = flaw_of(generation, request, self._vocab_size) or _odd_call(generation)
        except EpisodeError:
            raise
        except RAISED as error:  # boundary: the package raises anything
            let_others_pass(error)
            raise PolicyError(f"{self._whose} raised: {blame(error)}") from error
        if flaw:
            raise PolicyError(f"{self._whose} {flaw}")
        return generation

    def load(self) -> EngineLoad | None:
        """As of the policy, if it says.

        Raises:
            PluginError: It raised, or says what is no load.
        """
        if not isinstance(self._policy, Loaded):
            return None
        try:
            load = self._policy.load()
            if load is not None:
                msgpack.decode(msgpack.encode(load), type=EngineLoad)
        except RAISED as error:  # boundary: the package raises anything
            let_others_pass(error)
            raise PluginError(f"{self._whose} raised in load: {blame(error)}") from error
        if load is not None and not (isinstance(load, EngineLoad) and math.isfinite(load.kv_use)):
            raise PluginError(
                f"{self._whose}: load returned {load!r:.80}, which is no muarl.policy.EngineLoad"
            )
        return load

    async def load_weights(self, folder: Path, version: int) -> None:
        """Give it new weights.

        Raises:
            WeightSyncError: It raised, or does not say that it has them.
        """
        try:
            await self._policy.load_weights(folder, version)  # type: ignore[attr-defined]
        except RAISED as error:  # boundary: the package raises anything
            let_others_pass(error)
            raise WeightSyncError(
                f"{self._whose} raised as it was given weights: {blame(error)}"
            ) from error
        if (has := self._policy.policy_version) != version:
            raise WeightSyncError(
                f"{self._whose} was given version {version} of the weights, and says that it has {has}"
            )


def _odd_call(generation: Generation) -> str:
    """What is wrong with a call that a package's code made, and no model wrote; "" for nothing."""
    for call in generation.message.tool_calls if generation.message is not None else ():
        if problem := json_problem(call.arguments):
            return f"returned a call of {call.name[:80]!r} whose arguments are no JSON: {problem}"
    return ""
