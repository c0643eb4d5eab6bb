"""What all dialogues of a domain begin with, which the embedded sampler holds once."""

from __future__ import annotations

from pathlib import Path

import pytest
from dialogue_kit import TASKS, renderer, write_notes

from muarl.domain import load_domain
from muarl.train.engines import shared_prompts


@pytest.mark.anyio
async def test_it_is_held_only_where_all_tasks_show_the_same_tools(tmp_path: Path) -> None:
    domain = write_notes(tmp_path)
    (held,) = await shared_prompts(domain, renderer())
    assert '"name": "put"' in renderer().tokenizer.decode(held)
    (tmp_path / "tasks.yaml").write_text(
        TASKS.replace("goal: Note it.", "goal: Note it., tools: [put]")
    )
    assert await shared_prompts(load_domain(tmp_path), renderer()) == []
