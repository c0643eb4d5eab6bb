"""What the user did next (FACA, arXiv 2608.17499).

An exchange is what the policy does between two messages of the user; p is 1 where her reaction to it
shows that the dialogue moves on (she confirms, tells what she was asked for, goes on to what is next,
ends), -1 where it shows that something went wrong (she does not understand, denies, objects, changes
her mind, leaves), else 0. Over all exchanges of the group that she reacted to, with limit c:

    A_t = A + λ · clip((p - mean) / (deviation + 1e-6), -c, c)      for each turn t of the exchange

so that no turn is moved by more than λ · c. Turns after which she said nothing keep A. Acts come from
the record (`UserReply.act`); an act that is not known counts 0, and so does a reply that carries none.

Example: two exchanges, p = 1 and -1: z = ±0.707; with λ = 0.3 the turns get ±0.212.
"""

from __future__ import annotations

from collections.abc import Mapping

from muarl.credit.scored import PerTurn, Scored, exchanges
from muarl.kernel.advantage import group_advantages
from muarl.spec.credit import POLARITY, ReactionCredit


def polarity_of(act: str, ours: Mapping[str, int]) -> int:
    """Of an act such as `tell:order_id`: by its whole name, then by what stands before the colon."""
    kind = act.partition(":")[0]
    return ours.get(act, ours.get(kind, POLARITY.get(kind, 0)))


def reaction(group: Scored, spec: ReactionCredit) -> PerTurn:
    """Advantages of turns; see the module."""
    reacted = [
        (number, turns, polarity_of(reply.act, spec.polarity))
        for number, episode in enumerate(group.episodes)
        for turns in exchanges(episode)
        if (reply := episode.turns[turns[-1]].reply) is not None
    ]
    values = group_advantages([float(polarity) for _, _, polarity in reacted], baseline="std")
    credit = [[0.0] * len(episode.turns) for episode in group.episodes]
    for (number, turns, _), value in zip(reacted, values, strict=True):
        for turn in turns:
            credit[number][turn] = max(-spec.limit, min(spec.limit, value or 0.0))
    return group.added(credit, spec.weight)
