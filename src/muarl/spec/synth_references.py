"""What a synthesis file refers to by itself: its domain, its models, and who needs which."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muarl.spec.finding import Finding
from muarl.spec.named_files import no_file
from muarl.spec.run_references import domain_findings
from muarl.spec.synth import SynthSpec


def synth_findings(synth: SynthSpec, folder: Path) -> Iterator[Finding]:
    """A domain or a model that does not exist, and a user without the model that plays her."""
    yield from domain_findings(synth.domain, folder)
    if (model := synth.agent.model) is not None and not os.path.isdir(folder / model):
        yield Finding(("agent", "model"), no_file(folder, model, "folder"))
    if synth.user.models() and synth.user_model is None:
        message = "a user is a `model`, and there is none for her; say which: `user_model`"
        yield Finding(("user",), message)
