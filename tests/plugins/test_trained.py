"""One run from check to trained weights in which a package provides all there is: each of the six kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plugin_kit import PATIENT, Install
from plugin_packages import engine, shop, sink_code
from short_run import ready_model

from muarl.cli import main
from muarl.record import read_journal

PREDICATE = '''
class Letter(Options):
    """What is wanted."""

    letter: str
    """A letter."""


async def share(options, evidence):
    said = "".join(text for _, text in evidence.heard())
    return min(1.0, said.count(options.letter) / 20), f"said {len(said)} characters"


letters = PredicatePlugin(Letter, share)
'''
DOMAIN = """\
version: 1
id: office
summary: An office.
rules: Be kind.
world: {plugin: {orders: {orders: 6}}}
tools: {plugin: {office: {done: Now}}, external: false}
writes: [cancel]
personas: {plain: {style: Plain.}}
reward: [{plugin: {letters: {letter: e}}}]
tasks: {files: [tasks.yaml]}
"""
RUN = """\
version: 1
domain: domain.yaml
seed: 5
threads: 1
model: {{path: {model}}}
engine: {{plugin: {{mine: {{dtype: float32}}}}}}
user: {{plugin: {{patient: {{patience: 2}}}}}}
rollout: {{group_size: 3, max_tokens: 16, context_tokens: 512, max_turns: 3}}
grpo: {{iterations: 2, tasks_per_iteration: 2, lr: 3.0e-3, kl_coef: 0.01, entropy_coef: 0.001}}
eval: {{episodes: 2, temperatures: [1.0]}}
overlap: {{accepted: "the tasks of this test are alike"}}
sinks: [{{plugin: {{lines: {{file: mine.jsonl}}}}}}]
"""
TASK = (
    "  - {{id: t{n}, split: {split}, goal: Cancel W{n}., "
    "gold: [{{tool: cancel, arguments: {{order_id: W{n}}}}}]}}\n"
)
KINDS = {
    "policy mine": "shop-plugins 0.1",
    "predicate letters": "shop-plugins 0.1",
    "sink lines": "shop-plugins 0.1",
    "tool server office": "shop-plugins 0.1",
    "user patient": "shop-plugins 0.1",
    "world orders": "shop-plugins 0.1",
}


@pytest.mark.timeout(300)
def test_a_run_of_plug_ins_alone_is_checked_and_trained(
    tmp_path: Path, install: Install, capsys: pytest.CaptureFixture[str]
) -> None:
    install(
        f"{engine()}\n{sink_code()}\n{shop()}\n{PATIENT}\n{PREDICATE}",
        "muarl.policies: mine = mine",
        "muarl.sinks: lines = sink",
        "muarl.worlds: orders = orders",
        "muarl.tool_servers: office = server",
        "muarl.users: patient = patient",
        "muarl.predicates: letters = letters",
    )
    folder = tmp_path / "office"
    folder.mkdir()
    (folder / "domain.yaml").write_text(DOMAIN)
    tasks = [TASK.format(n=n, split="train" if n < 5 else "held_out") for n in range(1, 7)]
    (folder / "tasks.yaml").write_text("version: 1\ndomain: office\ntasks:\n" + "".join(tasks))
    (folder / "run.yaml").write_text(RUN.format(model=ready_model()["path"]))

    assert main(["check", str(folder / "run.yaml"), "--offline"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if " is provided by " in line]
    assert len(told) == len(KINDS)

    out = tmp_path / "out"
    assert main(["train", str(folder / "run.yaml"), "--out", str(out)]) == 0
    rounds = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rounds = [line for line in rounds if line["kind"] == "iteration"]
    assert [line["policy_version"] for line in rounds] == [0, 1]
    for line in rounds:
        assert line["trained_tokens"] > 0
        # Each round is sampled after a sync: with other weights its log-probs would be far off.
        assert line["max_logprob_gap"] <= 1e-3
        assert line["token_drift"] == 0
    episodes = list(read_journal(out / "episodes.journal"))
    assert {episode.rewards[0].name for episode in episodes} == {"plugin letters"}
    assert {tool.name for episode in episodes for tool in episode.tools} == {"cancel", "look"}
    assert {episode.opening.text for episode in episodes} <= {f"Cancel W{n}." for n in range(1, 7)}
    figures = [json.loads(line) for line in (out / "mine.jsonl").read_text().splitlines()]
    assert ["iteration", 1] in [line[:2] for line in figures if isinstance(line, list)]
    assert json.loads((out / "domain.json").read_text())["plug-ins"] == KINDS
