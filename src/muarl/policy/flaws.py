"""What shows that an engine did not sample a message as it was asked to (law L2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msgspec import MsgspecError, msgpack

from muarl.authors import blame
from muarl.errors import PolicyError
from muarl.messages import Message
from muarl.policy.protocol import GenerateRequest, Generation, Policy, VersionSwitch
from muarl.record import Usage

_MAX_PADDING = 1024
"""Models have embeddings for more ids than their tokenizer knows; by far not for so many more."""
_ROUNDING = 1e-2
"""What half precision may add to a log-prob of 0."""
_MOST = 2**63 - 1
"""Version that a journal can hold."""


async def sound_message(policy: Policy, request: GenerateRequest, vocab_size: int) -> Generation:
    """What a policy samples, looked at.

    Raises:
        PolicyError: It failed, or the message has a flaw.
    """
    try:
        generation = await policy.generate(request)
    except OSError as error:  # a policy of somebody's own, whose connection failed
        raise PolicyError(f"the policy raised {blame(error)}") from error
    if flaw := flaw_of(generation, request, vocab_size):
        raise PolicyError(f"the engine {flaw}")
    return generation


def flaw_of(generation: Generation, request: GenerateRequest, vocab_size: int) -> str:
    """The first flaw of what an engine returned, "" for none; of a flawed message nothing is kept.

    A message is cut by the caps of the run alone, which the request's `max_tokens` holds together:
    those of a message, and what the dialogue's context has room for. An engine that cuts earlier,
    because it was started for shorter contexts or given up on the way, failed; the policy would
    else be paid for what the engine did (law L2).

    Args:
        generation: What it returned; of a policy of somebody's own it may be anything.
        request: What it was asked for.
        vocab_size: Ids that the tokenizer knows.
    """
    return next(_flaws(generation, request, vocab_size), "")


def _flaws(generation: Generation, request: GenerateRequest, vocab_size: int) -> Iterator[str]:
    if not isinstance(generation, Generation):
        yield f"returned {type(generation).__name__}, not a Generation"
    ids, logprobs = generation.token_ids, generation.logprobs
    if not (isinstance(ids, list) and isinstance(logprobs, list)):
        yield "returned tokens or log-probs that are not in a list"
    if not ids or len(ids) != len(logprobs):
        yield (
            f"returned {len(ids)} tokens with {len(logprobs)} log-probs; expected at least one, "
            "and as many"
        )
    if len(ids) > request.max_tokens:
        yield f"returned {len(ids)} tokens; asked for {request.max_tokens}"
    if any(type(token) is not int for token in ids):
        yield "returned token ids that are not whole numbers"
    known = vocab_size + _MAX_PADDING
    if not 0 <= min(ids) <= max(ids) < known:
        yield f"returned token ids from {min(ids)} to {max(ids)}; the vocabulary ends at {known}"
    if not all(type(logprob) in (int, float) and math.isfinite(logprob) for logprob in logprobs):
        yield "returned a log-prob that is not finite"
    if max(logprobs) > _ROUNDING:
        yield f"returned a log-prob of {max(logprobs):g}; no probability is above 1"
    yield from _of_the_end(generation, request)
    yield from _of_versions(generation)
    yield from _of_what_was_written(generation)


def _of_the_end(generation: Generation, request: GenerateRequest) -> Iterator[str]:
    if generation.usage is not None:  # the ids are not what an endpoint's model sampled
        return
    ids, reason = generation.token_ids, generation.finish_reason
    stops = set(request.stop_token_ids)
    if not stops.isdisjoint(ids[:-1]):
        yield "went on sampling after a stop token"
    if reason not in ("stop", "length"):
        yield f"ended a message as {reason!r}; expected 'stop' or 'length'"
    if reason == "length" and ids[-1] in stops:
        yield "ended a message as 'length', though its last token is a stop token"
    if reason == "length" and len(ids) < request.max_tokens:
        yield (
            f"ended a message as 'length' after {len(ids)} tokens; asked for {request.max_tokens}. "
            "It must hold contexts of rollout.context_tokens (vLLM: --max-model-len)"
        )


def _of_versions(generation: Generation) -> Iterator[str]:
    switches = generation.switches
    if not isinstance(switches, tuple) or not all(isinstance(s, VersionSwitch) for s in switches):
        yield f"returned switches {switches!r:.80}; expected a tuple of VersionSwitch"
    versions = [generation.policy_version, *(switch.policy_version for switch in switches)]
    if any(type(at) is not int for at in (s.start for s in switches)):
        yield "says that its weights changed at what is no whole number"
    if any(type(version) is not int or abs(version) > _MOST for version in versions):
        yield f"returned versions {versions} of its weights; expected whole numbers"
    starts = [switch.start for switch in switches]
    inside = range(1, len(generation.token_ids))
    if starts != sorted(set(starts)) or any(start not in inside for start in starts):
        yield f"says that its weights changed at tokens {starts} of {len(generation.token_ids)}"


def _of_what_was_written(generation: Generation) -> Iterator[str]:
    """Of a message that comes as one: in another form it would make a record that nobody can read."""
    for what, given, form in (
        ("message", generation.message, Message),
        ("usage", generation.usage, Usage),
    ):
        if given is None:
            continue
        if not isinstance(given, form):
            yield f"returned a {what} that is none: it is a {type(given).__name__}"
        try:
            msgpack.decode(msgpack.encode(given), type=form)
        except UnicodeEncodeError:  # half a character: the journal knows what to do
            continue
        except (MsgspecError, TypeError, ValueError, OverflowError) as error:
            yield f"returned a {what} that is none: {error}"
    if generation.message is not None and generation.message.role != "assistant":
        yield f"returned a message of role {generation.message.role!r}; expected 'assistant'"
