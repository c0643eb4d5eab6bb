"""Verified dialogues as rows that trainers read: `messages` and `tools` of chat completions.

Each row goes with what is known of it: where it came from, under what terms it may be used, and what it
stood. The user's last words are left out: nothing is learned from what follows all that the agent said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from muarl.data.export.rows import Row, chat_messages
from muarl.record import Episode, EpisodeKey
from muarl.spec import SynthSpec
from muarl.spec.user import UserSpec
from muarl.synth.verify import Verdict
from muarl.version import __version__


def dialogue_rows(
    episodes: Iterable[Episode], verdicts: Mapping[EpisodeKey, Verdict], spec: SynthSpec
) -> Iterator[Row]:
    """A row for each dialogue that was kept, in order.

    Args:
        episodes: Of one synthesis.
        verdicts: Its own.
        spec: What it was made by.
    """
    agent = _agent(spec)
    for episode in episodes:
        verdict = verdicts.get(episode.key)
        if verdict is None or not verdict.kept:
            continue
        messages = list(chat_messages(episode))
        while messages and messages[-1]["role"] == "user":
            messages.pop()
        tools = [tool.as_function() for tool in episode.tools]
        yield {
            "messages": messages,
            "tools": msgspec.json.encode(tools).decode(),
            "licence": spec.licence,
            "provenance": {
                "made_by": f"muarl {__version__}",
                "domain": episode.domain,
                "content_hash": episode.content_hash,
                "split": episode.split,
                "task_id": episode.key.task_id,
                "task_hash": episode.task_hash,
                "run_seed": episode.key.run_seed,
                "sample": episode.key.sample,
                "agent": agent,
                "user": episode.user or _kind(spec.user),
                "persona": episode.persona,
            },
            "verification": {
                "passed": list(verdict.passed),
                "reward": episode.reward,
                "rulings": [msgspec.to_builtins(ruling) for ruling in verdict.rulings],
                "reviews": [msgspec.to_builtins(review) for review in verdict.reviews],
            },
        }


def as_line(row: Row) -> Row:
    """A row as a line of JSON has it: tools as data, and of messages only what applies."""
    return row | {
        "tools": msgspec.json.decode(row["tools"]),
        "messages": [
            {key: value for key, value in message.items() if value is not None}
            for message in row["messages"]
        ],
    }


def _agent(spec: SynthSpec) -> str:
    agent = spec.agent
    if agent.llm is not None:
        return f"llm {agent.llm.model}"
    return "expert" if agent.expert is not None else f"model {agent.model}"


def _kind(user: UserSpec) -> str:
    return next(kind for kind in user.kinds() if getattr(user, kind) is not None)
