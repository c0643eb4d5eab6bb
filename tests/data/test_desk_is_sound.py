"""The order desk that ships with muarl passes its own proof; the whole of it where docs/gallery.md says so."""

from __future__ import annotations

from pathlib import Path

import anyio

from muarl.data.proof import Proof, prove
from muarl.domain import load_domain

DESK = Path(__file__).parents[2] / "domains" / "desk"


def test_a_sample_of_the_desk_is_sound() -> None:
    async def main() -> Proof:
        return await prove(load_domain(DESK), limit=12, dialogues=12)

    found = anyio.run(main)
    assert [str(finding.problem) for finding in found.findings] == []
    assert found.skipped == []
    assert all(mean.value == 1 for mean in found.expert.values())
