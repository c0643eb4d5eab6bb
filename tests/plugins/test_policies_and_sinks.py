"""Policies and sinks of a package: one that trains, one that is only evaluated, and where figures go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from plugin_kit import PATIENT, Install
from plugin_packages import engine, sink_code
from short_run import ready_model, write_run
from spec_files import said, spoil

from muarl.cli import main
from muarl.errors import PluginError, PolicyError, SpecError, WeightSyncError
from muarl.policy import GenerateRequest
from muarl.policy.plugin import Seat, open_policy
from muarl.render import Renderer, TextTokenizer, train_tokenizer
from muarl.spec import load_run
from muarl.spec.engine import EngineSpec
from muarl.testing import policy_laws
from muarl.train.packages import package_findings

POINTS = tuple(f"muarl.policies: {name} = {name}" for name in ("mine", "still", "empty"))


def test_one_that_takes_no_weights_cannot_be_trained(tmp_path: Path, install: Install) -> None:
    install(engine(), *POINTS)
    run = load_run(write_run(tmp_path, engine={"plugin": {"still": {}}}))
    with pytest.raises(SpecError) as caught:
        run.refuse(package_findings(run.spec))
    (found,) = said(caught.value)
    assert found.endswith(
        "the policy 'still' of shop-plugins 0.1 takes no new weights, so what it samples cannot be "
        "trained (muarl.plugins.Retrainable); evaluate with it, or name another engine"
    )


REQUEST = GenerateRequest([1, 2, 3], "d", 7, 6, 1.0, (0,))


def seat() -> Seat:
    folder = Path(ready_model()["path"])
    return Seat(folder, 1000, 8, Renderer(TextTokenizer.load(folder)))


def named(name: str) -> Any:
    return EngineSpec.model_validate({"plugin": name}).plugin


def test_it_keeps_the_laws_of_policies(install: Install) -> None:
    install(engine(), *POINTS)

    place = seat()

    async def look() -> None:
        async with open_policy(named("mine"), place) as policy:
            await policy_laws(policy, REQUEST, place.renderer.tokenizer.vocab_size)

    anyio.run(look)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("name", "code", "kind", "problem"),
    [
        (
            "mine",
            {"open": "{}['x']"},
            PluginError,
            "the policy 'mine' of shop-plugins 0.1 raised as it starts: KeyError: 'x' (MODULE:",
        ),
        ("mine", {"close": "{}['x']"}, PluginError, "raised as it ends: KeyError: 'x' (MODULE:"),
        (
            "mine",
            {"generate": "{}['x']"},
            PolicyError,
            "the policy 'mine' of shop-plugins 0.1 raised: KeyError: 'x' (MODULE:",
        ),
        ("mine", {"generate": "raise PolicyError('out of ink')"}, PolicyError, "out of ink"),
        (
            "mine",
            {"load": "{}['x']"},
            WeightSyncError,
            "raised as it was given weights: KeyError: 'x' (MODULE:",
        ),
        (
            "mine",
            {"load": "return"},
            WeightSyncError,
            "was given version 4 of the weights, and says that it has 0",
        ),
        (
            "empty",
            {},
            PluginError,
            "made a int, which is no muarl.plugins.Policy: it lacks generate",
        ),
    ],
)
def test_what_a_policy_raises_is_its_fault(
    install: Install,
    tmp_path: Path,
    name: str,
    code: dict[str, str],
    kind: type[Exception],
    problem: str,
    backend: str,
) -> None:
    module_name = install(engine(**code), *POINTS)
    (module,) = tmp_path.glob(f"*/{module_name}.py")
    place = seat()

    async def use() -> None:
        async with open_policy(named(name), place) as policy:
            await policy.generate(REQUEST)
            await policy.load_weights(place.weights, 4)

    with pytest.raises(kind) as caught:
        anyio.run(use, backend=backend)
    assert problem.replace("MODULE", str(module)) in str(caught.value)


def test_what_ends_a_run_is_not_blamed_on_its_policy(install: Install) -> None:
    install(engine(), *POINTS)

    place = seat()

    async def use() -> None:
        async with open_policy(named("mine"), place):
            raise LookupError("of the run")

    with pytest.raises(LookupError, match="of the run"):
        anyio.run(use)


CLERK = """\
import re
from contextlib import asynccontextmanager

from muarl.plugins import *


class Manner(Options):
    \"\"\"How it behaves.\"\"\"

    asks: bool = True
    \"\"\"Ask for a yes before an order is cancelled.\"\"\"


class Clerk:
    policy_version = 0

    def __init__(self, manner, seat):
        self.manner, self.seat = manner, seat

    async def generate(self, request):
        last = request.history[-1]
        heard = " ".join(m.content for m in request.history if m.role == "user")
        order = re.search(r"W\\d", heard)
        if last.role == "tool":
            message = Message("assistant", "Done. Anything else?")
        elif order is None:
            message = Message("assistant", "Which order?")
        elif self.manner.asks and "Yes" not in heard:
            message = Message("assistant", f"Cancel {order[0]}, shall I?")
        else:
            call = ToolCall("c1", "cancel", {"order_id": order[0]})
            message = Message("assistant", "", tool_calls=(call,))
        return self.seat.says(message, request, Usage("clerk-1"))


@asynccontextmanager
async def clerk(manner, seat):
    yield Clerk(manner, seat)


policy = PolicyPlugin(Manner, clerk)
"""


def test_a_grid_sets_a_packages_policy_beside_others(
    folder: Path, install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(CLERK, "muarl.policies: clerk = policy")
    spoil(folder / "tasks.yaml", "id: cancel-1", "id: cancel-1\n    split: held_out")
    (folder / "run.yaml").write_text("version: 1\ndomain: domain.yaml\nmodel: {tiny: {}}\n")
    (folder / "grid.yaml").write_text(
        "version: 1\nrun: run.yaml\n"
        "policies:\n  clerk: {plugin: {clerk: {asks: true}}}\n  idle: {trivial: do_nothing}\n"
        "users: {own: {scripted: {}}}\ntrials: 1\n"
    )
    out = tmp_path / "out"
    assert main(["eval", str(folder / "grid.yaml"), "--out", str(out), "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {cell["policy"]: cell["success"]["value"] for cell in cells} == {"clerk": 1, "idle": 0}
    recorded = json.loads((out / "domain.json").read_text())
    assert recorded["plug-ins"] == {"policy clerk": "shop-plugins 0.1"}


def rolled_out(folder: Path, sinks: str) -> int:
    spoil(folder / "tasks.yaml", "id: cancel-1", "id: cancel-1\n    split: held_out")
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    (folder / "run.yaml").write_text(
        f"version: 1\ndomain: domain.yaml\nmodel: {{tiny: {{}}}}\nseed: 3\nsinks: {sinks}\n"
    )
    run = ["rollout", str(folder / "run.yaml"), "--expert", "--episodes", "1"]
    return main([*run, "--out", str(folder / "out"), "--overwrite"])


def test_figures_go_to_a_packages_sink(folder: Path, install: Install) -> None:
    install(sink_code() + PATIENT, "muarl.sinks: lines = sink")
    assert rolled_out(folder, "[{plugin: {lines: {file: mine.jsonl}}}]") == 0
    first, *lines, last = map(json.loads, (folder / "out" / "mine.jsonl").read_text().splitlines())
    assert (first, last) == ({"seed": 3}, "closed")
    assert lines
    assert all(axis == "iteration" and count for axis, _, count in lines)
    recorded = json.loads((folder / "out" / "domain.json").read_text())
    assert recorded["plug-ins"] == {"sink lines": "shop-plugins 0.1"}


@pytest.mark.parametrize(
    ("code", "name", "exit_code", "problem"),
    [
        (
            {"write": "{}['x']"},
            "lines",
            0,
            "the sink 'lines' is told no more: the sink 'lines' of shop-plugins 0.1 raised KeyError: 'x'",
        ),
        (
            {"write": "raise SystemExit(1)"},
            "lines",
            0,
            "the sink 'lines' of shop-plugins 0.1 raised SystemExit: 1",
        ),
        (
            {"open": "{}['x']"},
            "lines",
            1,
            (
                "muarl: the sink 'lines' cannot be opened: the sink 'lines' of shop-plugins 0.1 raised "
                "KeyError: 'x'"
            ),
        ),
        (
            {},
            "nothing",
            1,
            "made a int, which is no muarl.plugins.Sink: it lacks write and rewind and close",
        ),
    ],
)
def test_what_a_sink_raises_ends_the_sink_alone(
    folder: Path,
    install: Install,
    capsys: pytest.CaptureFixture[str],
    code: dict[str, str],
    name: str,
    exit_code: int,
    problem: str,
) -> None:
    install(sink_code(**code), "muarl.sinks: lines = sink", "muarl.sinks: nothing = nothing")
    assert rolled_out(folder, f"[{{plugin: {name}}}]") == exit_code
    error = capsys.readouterr().err
    assert problem in error
    assert "Traceback" not in error


def test_two_sinks_of_packages_may_stand_beside_each_other_but_none_twice(
    folder: Path, install: Install
) -> None:
    install(sink_code(), "muarl.sinks: lines = sink", "muarl.sinks: nothing = nothing")
    (folder / "run.yaml").write_text(
        "version: 1\ndomain: domain.yaml\nmodel: {tiny: {}}\n"
        "sinks: [{plugin: lines}, {plugin: nothing}]\n"
    )
    assert [sink.name for sink in load_run(folder / "run.yaml").spec.sinks] == ["lines", "nothing"]
    spoil(folder / "run.yaml", "nothing", "lines")
    with pytest.raises(SpecError, match="'lines' is named twice"):
        load_run(folder / "run.yaml")


def test_a_seat_without_a_model_has_a_renderer_all_the_same() -> None:
    renderer = Renderer(train_tokenizer([], vocab_size=300))
    from muarl.messages import Message

    generation = Seat(None, 10, 1, renderer).says(Message("assistant", "Hi."), REQUEST)
    assert generation.message == Message("assistant", "Hi.")
    assert generation.usage is not None
