"""What an answer told the policy for its next message (InfoPO, arXiv 2603.00656).

Turn t was answered by o_t, and the policy then said a. Asked again what it makes of a with and without
that answer, under the weights that are about to be trained, it gives the gain of turn t:

    g_t = mean over the tokens of a of  log π(a | history, o_t) - log π(a | history, nothing)

Its expected value is the mutual information of answer and next message, given the history. With z(g)
the gain against those of all turns of the group, and σ the deviation of the group's rewards,

    A_t = A + β · sigmoid(-σ / τ) · z(g_t)

so that gains count where outcomes tell nothing, and hardly where they do. The last turn, and those
after which the template rewrote history, have no gain and keep A. It takes a forward pass over each
episode and one over what led to each turn, and no rollout.

Example: gains 0.2 and 0.6, all rewards equal, β = 0.1: z = ±0.707, gate 1/2, so ±0.035.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from muarl.credit.scored import PerTurn, Scored
from muarl.kernel.advantage import group_advantages
from muarl.messages import Message
from muarl.record import Episode, EpisodeKey, Sample, Span
from muarl.spec.credit import InformationCredit


class Score(Protocol):
    """Knows what the policy makes of what was sampled."""

    def __call__(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Log-probs of every sample's sampled tokens, laid out like `Sample.logprobs`."""
        ...


class Bridge(Protocol):
    """Knows how an answer follows a message, in tokens; as `Renderer.bridge`."""

    def __call__(
        self, prompt_ids: list[int], sampled_ids: list[int], answers: Sequence[Message]
    ) -> list[int] | None:
        """The next prompt; None where history would be rewritten."""
        ...


class _Probe(NamedTuple):
    """A turn's next message, as if nothing had answered before it.

    Attributes:
        key: Of the episode.
        turn: That was answered.
        sample: Of the episode, that holds the message.
        begin: Sampled tokens of the sample before the message.
        blank: The message after no answer.
    """

    key: EpisodeKey
    turn: int
    sample: int
    begin: int
    blank: Sample


def information(group: Scored, spec: InformationCredit) -> PerTurn:
    """Advantages of turns; see the module."""
    places = [
        (number, turn, gain)
        for number, episode in enumerate(group.episodes)
        for turn, gain in enumerate(group.measured.get(episode.key, ()))
        if gain is not None
    ]
    spread = statistics.stdev(group.rewards) if len(group.rewards) > 1 else 0.0
    gate = 1 / (1 + math.exp(min(spread / spec.gate, 700.0)))
    credit = [[0.0] * len(episode.turns) for episode in group.episodes]
    values = group_advantages([gain for _, _, gain in places], baseline="std")
    for (number, turn, _), value in zip(places, values, strict=True):
        credit[number][turn] = gate * (value or 0.0)
    return group.added(credit, spec.weight)


def information_gains(
    episodes: Sequence[Episode], spec: InformationCredit, *, score: Score, bridge: Bridge
) -> dict[EpisodeKey, list[float | None]]:
    """Gain of each turn of each episode; None where there is none to be had.

    Args:
        episodes: Scored ones.
        spec: What stands for a missing answer.
        score: The policy that is about to be trained.
        bridge: Of its renderer.
    """
    found: dict[EpisodeKey, list[float | None]] = {e.key: [None] * len(e.turns) for e in episodes}
    probes = [probe for e in episodes for probe in _probes(e, spec.instead, bridge)]
    places = [(e.key, number) for e in episodes for number in range(len(e.samples))]
    told = score(
        [sample for e in episodes for sample in e.samples] + [probe.blank for probe in probes]
    )
    informed = dict(zip(places, told, strict=False))
    for probe, blind in zip(probes, told[len(places) :], strict=True):
        whole = informed[probe.key, probe.sample]
        knowing = whole[probe.begin : probe.begin + len(blind)]
        gaps = [ours - theirs for ours, theirs in zip(knowing, blind, strict=True)]
        found[probe.key][probe.turn] = math.fsum(gaps) / len(gaps)
    return found


def _probes(episode: Episode, instead: str, bridge: Bridge) -> list[_Probe]:
    found: list[_Probe] = []
    sampled = [0] * len(episode.samples)
    for number, (turn, following) in enumerate(zip(episode.turns, episode.turns[1:], strict=False)):
        sampled[turn.sample] += turn.end - turn.start
        if turn.sample != following.sample or following.end == following.start:
            continue
        ids = episode.samples[turn.sample].token_ids
        if turn.reply is not None:
            answers = [Message(role="user", content=instead)]
        else:
            answers = [
                Message(role="tool", content=instead, tool_call_id=call.id, name=call.name)
                for call in turn.message.tool_calls
            ]
        prompt = bridge(ids[: turn.start], ids[turn.start : turn.end], answers)
        if prompt is None:
            continue
        said = ids[following.start : following.end]
        span = Span(len(prompt), len(prompt) + len(said), -1)
        blank = Sample(prompt + said, [span], [0.0] * len(said))
        found.append(_Probe(episode.key, number, turn.sample, sampled[turn.sample], blank))
    return found
