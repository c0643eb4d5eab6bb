"""Whatever an agent sends over HTTP, the tokens trained on are those the engine was sent and sampled (L1)."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from dialogue_kit import led, renderer
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.domain import Domain

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from _wild_client import WildClient, WildPolicy, drift


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_tokens_are_exact_and_forks_are_where_the_words_say_L1(notes: Domain, seed: int) -> None:
    """Goes on, asks twice, trims, edits, several at once; both forms, streams, ids of responses."""
    client, policy = WildClient(seed), WildPolicy(renderer())
    roomy = {"max_turns": 100, "max_tokens": 4096, "context_tokens": 1_000_000}
    dialogue = led(notes, client, policy, ["note it"] + ["go on"] * 40, **roomy)
    episode = anyio.run(dialogue.run)
    assert not episode.outcome.is_fault, episode.error
    ((_, sampled),) = policy.sampled.items() or [("", [])]
    assert len(sampled) == len(episode.turns)
    assert drift(episode, sampled) == 0
    assert len(episode.samples) == client.expected
    assert episode.forks == max(client.expected - 1, 0)


@pytest.mark.anyio
async def test_a_drift_would_be_seen(notes: Domain) -> None:
    client, policy = WildClient(0), WildPolicy(renderer())
    episode = await led(notes, client, policy, ["note it"] + ["go on"] * 40).run()
    ((_, sampled),) = policy.sampled.items()
    episode.samples[0].token_ids[episode.turns[0].start] ^= 1
    assert drift(episode, sampled) > 0
