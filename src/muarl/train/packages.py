"""Packages that a run asks for, looked for before anything is trained; none is imported."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from muarl.policy.plugin import PolicyPlugin
from muarl.spec import RunSpec
from muarl.spec.finding import Finding


def package_findings(run: RunSpec) -> Iterator[Finding]:
    """Packages that are not installed, where a training asks for them."""
    yield from sink_findings(run)
    hers = run.user_model
    learns = (
        (("engine",), run.engine, run.grpo),
        *([(("user_model", "engine"), hers.engine, hers.grpo)] if hers else []),
    )
    for loc, engine, grpo in learns:
        named = engine.plugin
        if grpo is not None and named is not None and not named.registered(PolicyPlugin).trains:
            message = (
                f"{named.provided} takes no new weights, so what it samples cannot be trained "
                "(muarl.plugins.Retrainable); evaluate with it, or name another engine"
            )
            yield Finding((*loc, "plugin"), message)
    asked = (
        (run.kernel.optimizer_bits == 8, ("kernel", "optimizer_bits"), "bitsandbytes", "bits8"),
        (run.model.lora is not None, ("model", "lora"), "peft", "lora"),
        (bool(hers and hers.model.lora), ("user_model", "model", "lora"), "peft", "lora"),
    )
    for is_asked, loc, package, extra in asked:
        if is_asked and importlib.util.find_spec(package) is None:
            message = f"needs {package}, which is not installed: pip install 'muarl[{extra}]'"
            yield Finding(loc, message)


def sink_findings(run: RunSpec) -> Iterator[Finding]:
    """Likewise those of its sinks, which every run has that plays dialogues."""
    for number, sink in enumerate(run.sinks):
        if sink.plugin is None and importlib.util.find_spec(sink.name) is None:
            message = f"needs {sink.name}, which is not installed: pip install 'muarl[{sink.name}]'"
            yield Finding(("sinks", number), message)
