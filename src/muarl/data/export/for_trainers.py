"""Stored episodes as the data sets of TRL and of verl.

`trl_rows` are samples as TRL's `SFTTrainer` takes sequences that are tokenised already. `prompt_rows`
are the beginnings of dialogues, as TRL's `GRPOTrainer` and verl's `RLHFDataset` take prompts. verl's own
fine-tuning reads samples as they are: `muarl.data.export.verl_samples`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from muarl.data.export.rows import Row, identity, sample_rows
from muarl.messages import Message, with_rules
from muarl.record import Episode, EpisodeKey

NOT_LEARNED = -100
"""The label of a token that has no part in the loss, in TRL as in PyTorch."""


def trl_rows(episodes: Iterable[Episode], advantage: Mapping[EpisodeKey, float]) -> Iterator[Row]:
    """A row for each sample, by the columns that TRL reads; nothing is tokenised again (law L1).

    P prompt, A sampled, E what answered:

        input_ids  [ P    P    A  A   E    A]
        labels     [-100 -100  A  A  -100  A]

    Raises:
        RecordError: An episode was played by a model behind an endpoint, whose tokens are unknown.
    """
    for row in sample_rows(episodes, advantage):
        ids, mask = row.pop("token_ids"), row.pop("loss_mask")
        del row["sampler_logprobs"], row["policy_versions"]
        labels = [
            token if sampled else NOT_LEARNED for token, sampled in zip(ids, mask, strict=True)
        ]
        yield {**row, "input_ids": ids, "labels": labels}


def prompt_rows(
    episodes: Iterable[Episode], advantage: Mapping[EpisodeKey, float]
) -> Iterator[Row]:
    """A row for each beginning of a dialogue: the rules, and what the user says first.

    Of equal beginnings of a task, as a group's are, the first stands for all. A fault that ended
    before anything was said has none.
    """
    del advantage  # a beginning has earned nothing
    seen: set[tuple[str, str, str, str]] = set()
    for episode in episodes:
        told = (episode.domain, episode.key.task_id, episode.system, episode.opening.text)
        if not episode.opening.text or told in seen:
            continue
        seen.add(told)
        said = (*with_rules(episode.system), Message("user", episode.opening.text))
        row = identity(episode)
        tools = msgspec.json.encode([tool.as_function() for tool in episode.tools]).decode()
        yield {
            "prompt": [{"role": message.role, "content": message.content} for message in said],
            "data_source": episode.domain,
            "ability": "agent",
            "reward_model": {"style": "rule", "ground_truth": row["task_id"]},
            "extra_info": {
                "index": len(seen) - 1,
                "split": row["split"],
                "task_id": row["task_id"],
                "task_hash": episode.task_hash,
                "persona": row["persona"],
                "tools": tools,
            },
        }
