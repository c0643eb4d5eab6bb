"""The noting policy of the fault kit as a vLLM server would serve it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fake_vllm import LOOK_PROMPT, FakeVllm
from fault_kit import deserves, words

from muarl.dialogue import episode_seed
from muarl.record import EpisodeKey
from muarl.seeds import derive_seed


class NotingVllm(FakeVllm):
    """Samples what the noting policy says; knows dialogues by their seeds."""

    def __init__(self, keys: Sequence[EpisodeKey]) -> None:
        super().__init__()
        self._opening = {
            derive_seed(episode_seed(key, "policy", attempt), 0): key
            for key in keys
            for attempt in range(1, 5)
        }

    def _generate(self, asked: dict[str, Any]) -> Any:
        sampling = asked["sampling_params"]
        if asked["token_ids"][:4] == LOOK_PROMPT:
            return super()._generate(asked)
        key = self._opening.get(sampling["seed"])
        ids = [*words(None if key is None else deserves(key)), sampling["stop_token_ids"][0]]
        reply = self._reply(ids, [-0.5] * len(ids))
        reply["choices"][0]["finish_reason"] = "stop"
        return reply
