"""What the README and the docs tell a reader to type works, in the order in which they tell it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import guide
import pytest
from documents import ROOT, blocks, outputs
from forked import Forked, forked

ROLL_OUT = ".venv/bin/muarl rollout specs/quickstart.yaml --expert --episodes 40 --group-size 4"
FEW_OF_EXPERT = ".venv/bin/muarl rollout specs/quickstart.yaml --expert --episodes 20"
USERS = ".venv/bin/muarl users"
EXPORT = ".venv/bin/muarl export runs/quickstart-rollout"
EVAL = ".venv/bin/muarl eval specs/quickstart.yaml"
TRAIN = ".venv/bin/muarl train specs/quickstart.yaml"
RANKS = (
    ".venv/bin/python -m torch.distributed.run --standalone --nproc-per-node 2 "
    "-m muarl.cli train specs/quickstart.yaml"
)
FEW = (
    "--set cold_start.episodes=200 --set cold_start.steps=20 --set grpo.iterations=2 "
    "--set eval.episodes=40"
)
PLAN = [
    "make quickstart",
    ".venv/bin/muarl check domains/desk",
    ".venv/bin/muarl check domains/desk --offline",
    f"{FEW_OF_EXPERT} --overwrite",
    ".venv/bin/muarl eval specs/quickstart.yaml --model runs/quickstart --overwrite",
    ".venv/bin/muarl report runs/quickstart",
    ".venv/bin/muarl init cinema",
    ".venv/bin/muarl check cinema",
    ".venv/bin/muarl rollout cinema/run.yaml --expert --episodes 20 --out runs/cinema-expert",
    ".venv/bin/muarl report runs/cinema-expert",
    ".venv/bin/muarl check cinema/run.yaml",
    ".venv/bin/muarl init vault --template gymnasium",
    ".venv/bin/muarl check vault",
    ".venv/bin/muarl train vault/run.yaml --out runs/vault",
    ".venv/bin/muarl replay runs/vault --phase eval:final:T1",
    ".venv/bin/muarl init prices --template verifiers",
    f"{EXPORT} --what trl --out runs/trl.jsonl --overwrite",
    f"{EXPORT} --what prompts --out runs/prompts.parquet --overwrite",
    f"{EXPORT} --what samples --out runs/samples.parquet --overwrite",
    f"{TRAIN} --set 'grpo.credit={{gigpo: {{}}}}' --dry-run",
    f"{TRAIN} --set 'grpo.curriculum={{half: {{by: kind}}}}' --dry-run",
    ".venv/bin/muarl check domains/handset",
    ".venv/bin/muarl rollout specs/handset.yaml --expert --episodes 20 --overwrite",
    ".venv/bin/muarl replay runs/handset-rollout",
    f"{FEW_OF_EXPERT} --set rollout.loop=specs/agents/openai_sdk.py:agent --out runs/openai --overwrite",
    ".venv/bin/muarl compare runs/quickstart --phase eval:cold:T1 --phase eval:final:T1",
    ".venv/bin/muarl check domains/library",
    ".venv/bin/muarl check domains/telecom",
    ".venv/bin/muarl check domains/retail",
    ".venv/bin/muarl check domains/airline",
    ".venv/bin/muarl eval specs/grid-expert.yaml --out runs/grid-expert --overwrite",
    ".venv/bin/muarl eval specs/grid.yaml --out runs/grid --overwrite",
    f"{TRAIN} preset:dapo --set grpo.overlong.penalty=0.5 --dry-run",
    ".venv/bin/muarl doctor",
    ".venv/bin/muarl doctor specs/quickstart.yaml",
    ".venv/bin/muarl completion bash",
    f"{RANKS} {FEW} --out runs/two-ranks --overwrite",
    ".venv/bin/muarl synth specs/mua-rl/cold-start.synth.yaml --dry-run",
    ".venv/bin/muarl train specs/mua-rl/8b-cold-start.yaml --dry-run",
    ".venv/bin/muarl train specs/mua-rl/8b-grpo.yaml --dry-run",
    ".venv/bin/muarl eval specs/mua-rl/8b-eval.yaml --dry-run",
    ".venv/bin/muarl train specs/mua-rl/mua-rl-as-released.yaml --dry-run",
    ".venv/bin/muarl top runs/quickstart --once",
    f"{FEW_OF_EXPERT} --set 'sinks=[tensorboard]' --out runs/tensorboard --overwrite",
    ".venv/bin/muarl overlap domains/desk:train domains/desk:held_out",
    ".venv/bin/muarl check domains/desk --limit 60 --fuzz 200",
    f"{ROLL_OUT} --shard 1/2 --overwrite",
    f"{ROLL_OUT} --shard 2/2 --overwrite",
    f"{ROLL_OUT} --shard 2/2 --resume",
    ".venv/bin/muarl replay runs/quickstart-rollout-1-of-2 runs/quickstart-rollout-2-of-2",
    ".venv/bin/muarl score runs/quickstart-rollout --overwrite",
    f"{EXPORT} --what episodes --out runs/episodes.jsonl --overwrite",
    f"{EXPORT} --what samples --format parquet --out runs/samples.parquet --overwrite",
    f"{EXPORT} --what samples --format hf --out runs/samples --overwrite",
    ".venv/bin/muarl report runs/quickstart runs/handset-rollout --out runs/side-by-side.html",
    f"{EVAL} specs/overlays/perturbed.yaml --model runs/quickstart --out runs/perturbed --overwrite",
    f"{TRAIN} --set grpo.iterations=2 --set model.tiny.num_layers=2 --dry-run",
    ".venv/bin/muarl synth specs/synth.yaml --overwrite",
    ".venv/bin/muarl review runs/synth --page runs/review.html --dialogues 40 --overwrite",
    ".venv/bin/muarl export runs/synth --what dialogues --out runs/dialogues.jsonl --overwrite",
    ".venv/bin/muarl tasks domains/desk --goals goals.py:goals --count 60 --out runs/desk-goals.yaml --overwrite",
    ".venv/bin/muarl train specs/trained-user.yaml --overwrite",
    f"{TRAIN} --set 'grpo.mode={{asynchronous: {{max_lag: 2}}}}' --dry-run",
    ".venv/bin/python benchmarks/user_metrics.py --runs runs/users --tasks 200",
    f"{USERS} runs/users/honest runs/users/leaky runs/users/agreeable runs/users/early runs/users/flipped",
    f"{USERS} runs/users/agreeable --reference runs/users/honest",
    f"{USERS} runs/quickstart --phase train",
    ".venv/bin/python benchmarks/worlds.py --json --mb 0.5 --live 64 --times 50",
]
"""Commands that are carried out, in order."""

ELSEWHERE = {
    ".venv/bin/muarl serve domains/desk": "asks a client; tests/cli/test_cli_serve.py is one",
    ".venv/bin/muarl play cinema --persona terse --calls": "tests/docs/test_authoring_guide.py does",
    ".venv/bin/muarl check errands/run.yaml": "tests/docs/test_plugins_page.py does",
    ".venv/bin/muarl eval errands/grid.yaml --out runs/errands": "likewise",
    ".venv/bin/muarl check clinic": "tests/docs/test_sql_page.py does",
    ".venv/bin/muarl play clinic/move-ann --as agent": "likewise",
    ".venv/bin/muarl play domains/desk": "asks a person; tests/cli/test_cli_play.py is one",
    ".venv/bin/muarl import tau1 --from ../tau-bench --to benchmarks-tau1": "needs a copy; "
    "tests/compat/test_import_tau.py imports what is recorded",
    ".venv/bin/muarl import tau2 --from ../tau2-bench --to benchmarks-tau2": "likewise",
    ".venv/bin/muarl import bfcl --from ../bfcl_eval --to benchmarks-bfcl": "likewise; tests/compat/bfcl does",
    ".venv/bin/muarl import acebench --from ../ACEBench --to benchmarks-acebench": "likewise; "
    "tests/compat/acebench does",
    ".venv/bin/muarl import tau1 --from ../tau-bench --to imported/tau1": "likewise; "
    "tests/compat/test_mua_rl_runs.py",
    ".venv/bin/muarl import tau2 --from ../tau2-bench --version v0.2.0 --to imported/tau2-v0.2.0": "likewise",
    ".venv/bin/muarl import bfcl --from ../bfcl_eval --version V3 --to imported/bfcl-v3": "likewise",
    ".venv/bin/muarl import acebench --from ../ACEBench --to imported/acebench": "likewise",
    ".venv/bin/muarl overlap benchmarks-tau1/retail:test benchmarks-tau2/retail/base.yaml": "likewise; "
    "benchmarks/contamination.py does",
    "make test": "what runs this",
    "make site": "tests/docs/test_site.py builds it",
    "make vllm": "what CI has run before this",
    "scripts/install-verifiers.sh .venv": "what CI has run before this",
    ".venv/bin/muarl check prices": "needs verifiers; tests/environments/test_in_verifiers.py does",
    ".venv/bin/muarl rollout prices/run.yaml --expert --episodes 16 --out runs/prices-expert": "likewise",
    ".venv/bin/muarl replay runs/prices-expert": "likewise",
    "scripts/install-tool-servers.sh .venv": "what `make test` has run before this",
    ".venv/bin/muarl check domains/contacts": "tests/domains/test_third_party_servers.py proves it",
    ".venv/bin/muarl check domains/tickets": "likewise",
    ".venv/bin/muarl view runs/quickstart": "serves until Ctrl-C; tests/report/test_serving.py asks it",
    ".venv/bin/python benchmarks/report.py --json": "takes minutes; its parts are tests/report",
    "python benchmarks/user_metrics.py --json": "its parts are tests/measure",
    "python benchmarks/quickstart.py --json": "takes half an hour; its parts are tested",
}
"""Commands that are not, and why."""


def test_every_documented_command_is_carried_out_or_excused() -> None:
    shown = [command for block in blocks() for command in block.commands]
    unknown = [command for command in shown if command not in PLAN and command not in ELSEWHERE]
    assert not unknown, "add these to PLAN, or to ELSEWHERE with a reason; output is ```text"
    assert not [command for command in PLAN if command not in shown], "no longer documented"
    order = [PLAN.index(command) for command in dict.fromkeys(shown) if command in PLAN]
    assert order == sorted(order), "PLAN is in the order of the documents"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files, with an environment that is this one under the name of `.venv`."""
    clone = tmp_path_factory.mktemp("clone") / "muarl"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name)
    programs = clone / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, module in (("python", ""), ("muarl", " -m muarl.cli")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        program.chmod(0o755)
    for stamp in (".train", ".test", ".vllm"):  # newer than what they depend on: nothing to install
        (clone / ".venv" / stamp).touch()
    return clone


def carry_out(
    command: str, folder: Path, environment: dict[str, str], python: Forked
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr.

    `make` and torchrun start Python themselves; the rest forks one that has imported torch, which
    takes longer than what most of them do.
    """
    program, *arguments = shlex.split(command)
    if program == ".venv/bin/muarl":
        return python.run(["-m", "muarl.cli", *arguments], folder)
    if program == ".venv/bin/python" and arguments[0] != "-m":
        return python.run(arguments, folder)
    with subprocess.Popen(
        [program, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, errors = process.communicate(timeout=6000)
        except BaseException:  # it takes too long: what it started ends with it
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, errors


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_the_documented_commands_work_and_the_agent_learns(clone: Path) -> None:
    environment = {
        # What an outer `make test` left would change what the inner make does.
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MAKE") and name not in ("MFLAGS", "VLLM", "VENV", "RUN", "PYTHON")
    }
    environment["PYTHONPATH"] = str(clone / "src")
    said: dict[str, str] = {}
    with forked(environment) as python:
        for command in PLAN:
            code, said[command], errors = carry_out(command, clone, environment, python)
            if command.endswith(" init cinema"):
                guide.write(clone)  # what the guide makes of it, before it goes on
            assert code == 0, f"{command}\n{said[command]}\n{errors[-4000:]}"
            assert "Traceback" not in errors

    report = clone / "runs" / "quickstart" / "report.html"
    assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    assert said[".venv/bin/muarl report runs/quickstart"].strip() == "runs/quickstart/report.html"
    assert said[PLAN[1]].splitlines()[-1] == "sound"
    assert "20 dialogues in runs/quickstart-rollout/episodes.journal, 0 faults" in said[PLAN[3]]
    (replayed,) = (out for command, out in said.items() if "replay runs/quickstart" in command)
    assert replayed == "40 episodes are as recorded, 0 differ, 0 faults were left out\n"
    (scored,) = (out for command, out in said.items() if " score " in command)
    assert "on 20 dialogues; 0 gained, 0 lost, 0 faults" in scored
    (panel,) = (out for command, out in said.items() if command.endswith("runs/users/flipped"))
    marked = {line.split()[0] for line in panel.splitlines() if line.count(" !") == 1}
    assert {"premature_disclosure", "sycophancy", "role_flips"} <= marked
    assert "reward" not in marked
    for shown in (
        "cinema",
        "domains/desk",
        "domains/library",
        "domains/handset",
        "domains/retail",
        "domains/airline",
    ):
        assert said[f".venv/bin/muarl check {shown}"] in outputs()
    (grid,) = (out for command, out in said.items() if "grid-expert" in command)
    assert all(line in grid for line in next(o for o in outputs() if "stubborn" in o).splitlines())
    (exported,) = (out for command, out in said.items() if "--format hf" in command)
    assert "20 samples in runs/samples\n" in exported

    lines = (clone / "runs" / "quickstart" / "metrics.jsonl").read_text().splitlines()
    success = {
        entry["phase"]: entry["success"]["value"]
        for entry in map(json.loads, lines)
        if entry["kind"] == "eval" and entry["temperature"] == 1.0
    }
    assert success["final"] >= 0.85, success
    assert success["final"] >= success["cold"] + 0.3, success
