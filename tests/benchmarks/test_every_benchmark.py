"""Every benchmark runs, in small, and says what the README, the docs and the project's goals quote of it."""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from forked import Forked, forked

from muarl.spec import load_run
from muarl.suite import load_domain_of
from muarl.train.models import open_model

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
QUICKSTART = ROOT / "specs" / "quickstart.yaml"
DATA = ROOT.parent / "shared" / "fixtures" / "data"


class Small(NamedTuple):
    """A benchmark, so small that it takes seconds.

    Attributes:
        arguments: Beside `--json`; `RUN` is the folder of a run with a model.
        figures: Keys of what it prints, those of mappings in mappings and places in lists after a slash.
            Each is a finite number, or a mapping of such.
        needs: A key of `NEEDS`.
    """

    arguments: str
    figures: str
    needs: str = ""


class Need(NamedTuple):
    """What a benchmark cannot do without.

    Attributes:
        is_there: Whether it is here.
        missing: What is to be said if not.
        required_by: Environment variable that makes a failure of it; "" for none.
    """

    is_there: Callable[[], bool]
    missing: str
    required_by: str = ""


def _is_on_path(*programs: str) -> bool:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return any(shutil.which(program, path=beside) for program in programs)


NEEDS = {
    "data": Need(DATA.is_dir, "no ../shared/fixtures/data: published tasks are not here"),
    "bfcl_eval": Need(
        lambda: find_spec("bfcl_eval") is not None,
        "bfcl-eval is not installed; it pins a numpy that muarl[train] does not go with",
    ),
    "clients": Need(
        lambda: all(map(find_spec, ("openai", "pydantic_ai", "agents"))),
        "openai, pydantic-ai and openai-agents are not installed: pip install 'muarl[clients]'",
    ),
    "chromium": Need(
        lambda: _is_on_path("chromium", "chromium-browser"),
        "Chromium is not installed",
        "MUARL_REQUIRE_BROWSER",
    ),
    "vllm": Need(
        lambda: find_spec("vllm") is not None,
        "vLLM is not installed: `make vllm`",
        "MUARL_REQUIRE_VLLM",
    ),
    "memory server": Need(
        lambda: _is_on_path("mcp-server-memory"),
        "mcp-server-memory is not installed: scripts/install-tool-servers.sh",
        "MUARL_REQUIRE_TOOL_SERVERS",
    ),
}
MODEL = "--hidden 64 --layers 1"
SHORT = f"--group 2 --shared 20 --own 60 {MODEL}"
SMALL = {
    "acebench_audit": Small(
        "", "en multi_turn/solved_by_milestones, zh multi_step/entries", "data"
    ),
    "async_training": Small(
        "--small",
        "speedup, lag_max, lag_mean, overlap, on_policy/sampled_tokens_per_s, "
        "on_policy/trained_tokens_per_s, asynchronous/trained_tokens_per_s",
    ),
    "bfcl_audit": Small("--only 'v3 base'", "v3 base/entries, v3 base/solved_by_gold", "data"),
    "bfcl_decoder": Small("--texts 20", "texts, calls, same, texts_per_second", "bfcl_eval"),
    "bfcl_official": Small("--dialogues 1 --only base", "same_verdict, same_error", "bfcl_eval"),
    "check": Small(
        "--tasks 12 --overlap 60 --fuzz 4",
        "check_tasks, check_s, check_and_fuzz_cpu_s, fuzz_s, overlap_s, overlap_cpu_s, "
        "overlap_planted, overlap_found, help_s, help_max_s, help_cpu_s",
    ),
    "clients": Small(
        "--small --clients openai",
        "clients/openai/before, clients/openai/after, clients/openai/token_drift",
        "clients",
    ),
    "conformance": Small("--only tau1", "gold, fuzz, by_set, vectors, calls_per_s", "data"),
    "contamination": Small(
        "--tasks 200",
        "compare_s, compare_cpu_s, planted, planted_found, false_alarms, long_s, tau_retail, "
        "tau_retail_of, tau_airline, tau_airline_of, tau_airline_plain_words, tau_other",
        "data",
    ),
    "contamination_audit": Small("", "sets/HEAD airline base/alike", "data"),
    "credit": Small("--groups 20", "groups_that_differ, outcome, gigpo/within, gigpo/shuffled"),
    "embedding_lines": Small(
        "--episodes 2", "lines_before, lines_changed, trainable/success, before/success", "clients"
    ),
    "engines": Small("RUN --engines embedded --dialogues 4", "embedded/tokens_per_s"),
    "floors": Small(
        "--only 'tau2 HEAD mock'", "floors/tau2 HEAD mock base, share, tasks, seconds", "data"
    ),
    "fsdp": Small(
        f"{SHORT} --vocab 400 --ranks 2",
        "loss_gap_1, gradient_gap_1, loss_gap_2, gradient_gap_2, step_s_1, step_s_2",
    ),
    "gateway": Small(
        "--small",
        "token_drift, fork_drift, at_once/1/http/added_cpu_ms, at_once/8/openai_sdk/added_latency_ms",
        "clients",
    ),
    "kernel": Small(
        f"{SHORT} --vocab 1000 --threads 1 --repeat 1",
        "time_over_floor_1k, time_over_plain_1k, 1k/kernel, 1k/plain, 1k/floor/step_s",
    ),
    "kernel_scaling": Small(
        f"--tokens 60 120 --vocab 400 {MODEL}",
        "growth, growth_of_body, growth_over_body, memory_growth_over_length",
    ),
    "mcp_overhead": Small("--calls 1", "direct_us, memory_us, stdio_us, stdio_world_us, http_us"),
    "paper_overhead": Small(
        "--sizes 1",
        "ours/0/per_minute, ours/0/kib_per_dialogue, ours/0/cpu_ms, ours/0/solved",
        "data",
    ),
    "plugin_cost": Small(
        "--calls 2",
        "user_added_us, tool_server_added_us, predicate_added_us, policy_added_us, figures/user/direct_us",
    ),
    "quickstart": Small(
        "--small --seeds 0 --skip engines ablation",
        "wall_s, peak_rss_mb, success_cold, success_final, greedy_cold, floor, token_drift, "
        "max_logprob_gap",
    ),
    "report": Small(
        "--episodes 10 --rounds 1",
        "build_s, page_mb, first_paint_s, filter_ms, view/index_s, view/filter_ms",
        "chromium",
    ),
    "sampler": Small("--dialogues 4 --threads 1 --repeats 1", "figures/0/tokens_per_s"),
    "scheduler": Small(
        "--dialogues 16 --growth 16 --mean-s 0.01",
        "wall_over_ideal, cpu_ms_per_turn, rss_kib_per_dialogue, loop_lag_p99_ms, "
        "growth/0/wall_over_ideal",
    ),
    "soak": Small("--dialogues 48 --round 24", "rss_growth_mb, open_handles, threads, tasks"),
    "stats": Small(
        "--draws 60", "coverage_min, coverage_max, coverage_mean, false_positive, golden_gap"
    ),
    "synth_real_mcp": Small("--dialogues 1", "dialogues, replay_verified, kept", "memory server"),
    "synth_throughput": Small(
        "--dialogues 20",
        "dialogues_per_minute, cpu_ms_per_dialogue, made_per_minute, verified_per_minute",
    ),
    "synth_verify": Small("--good 6 --of-each 6", "bad_rejected, good_kept, rejected_by_kind"),
    "task_generation": Small("--tasks 24", "solvable, unique, floor, on_trust, axes, generate_s"),
    "tau_audit": Small("--only 'tau1 retail dev'", "tau1 retail dev/tasks", "data"),
    "tokenize": Small("--repeats 5", "turn_2_us, turn_60_us, growth"),
    "transport": Small("--at-once 4 --rounds 1", "wall_over_ideal, cpu_ms_per_request, ways"),
    "turn_tokens": Small("--repeats 5", "turn_2_us, turn_60_us, growth"),
    "user_cost": Small("--dialogues 4 --rounds 1", "ms_per_turn"),
    "user_generalisation": Small("--small --seeds 1", "success"),
    "user_knobs": Small("--dialogues 8 --knob typos", "max_error, oracle_success, unseen"),
    "user_metrics": Small(
        "--tasks 8 --variance-tasks 4",
        "miscounted, f1, f1_seen, f1_held_back, ranked_worst, apart, oracle_reward, reward_fell, "
        "variance_error",
    ),
    "versions": Small("", "tau2 retail, tau2 airline, BFCL base", "data"),
    "weight_sync": Small(
        "--times 1 --sizes quickstart --engines embedded embedded_copy",
        "quickstart/copy_s, quickstart/embedded, quickstart/embedded_copy/first_token_s",
    ),
    "worlds": Small(
        "--mb 0.2 --live 8 --times 3", "fork_us, kib_per_fork, equal_ms, diff_ms, live_mb, sql"
    ),
}
ELSEWHERE = {
    "authoring": "tests/domains/test_smallest_domains.py",
    "fuzz": "tests/fuzz/test_coverage_guided.py",
    "vllm_saturation": "test_vllm_is_saturated, below",
}
"""Benchmarks that another test runs as a command."""


def _environment() -> dict[str, str]:
    path = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def test_none_is_forgotten() -> None:
    there = {path.stem for path in BENCHMARKS.glob("[!_]*.py")}
    assert there == SMALL.keys() | ELSEWHERE.keys()


@pytest.fixture(scope="module")
def python() -> Iterator[Forked]:
    with forked(_environment()) as python:
        yield python


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What of a quickstart's folder benchmarks read: its model, whose weights are random."""
    located, folder = load_run(QUICKSTART), tmp_path_factory.mktemp("run")
    assert located.spec.cold_start is not None
    few = located.spec.cold_start.model_copy(update={"episodes": 60})
    located = replace(located, spec=located.spec.model_copy(update={"cold_start": few}))
    anyio.run(open_model, load_domain_of(located), located, folder / "model")
    return folder


@pytest.mark.parametrize("name", SMALL)
def test_it_runs_and_says_its_figures(
    name: str, python: Forked, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    small = SMALL[name]
    if small.needs:
        _require(NEEDS[small.needs])
    arguments = small.arguments
    if "RUN" in arguments:
        arguments = arguments.replace("RUN", str(request.getfixturevalue("a_run")))
    script = str(BENCHMARKS / f"{name}.py")
    ended = python.run([script, "--json", *shlex.split(arguments)], tmp_path)
    assert ended.code == 0, ended.err[-4000:]
    out = ended.out.strip()
    found = json.loads(out if out.startswith("{") else out.splitlines()[-1])
    for path in small.figures.split(", "):
        _assert_finite(_at(found, path), path)


def _require(need: Need) -> None:
    if need.is_there():
        return
    if need.required_by and os.environ.get(need.required_by) == "1":
        pytest.fail(need.missing)
    pytest.skip(need.missing)


def _at(found: Any, path: str) -> Any:
    for key in path.split("/"):
        assert key.isdecimal() or key in found, f"no {path}: there are {', '.join(found)}"
        found = found[int(key) if isinstance(found, list) else key]
    return found


def _assert_finite(value: Any, path: str) -> None:
    if isinstance(value, (dict, list)):
        assert value, f"{path} is empty"
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            _assert_finite(one, f"{path}/{key}")
    else:
        assert math.isfinite(value), f"{path} is {value}"


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.timeout(1200)
def test_vllm_is_saturated(a_run: Path) -> None:
    """`vllm_saturation` in small, in a process of its own, as vLLM wants."""
    _require(NEEDS["vllm"])
    sizes = "--dialogues 64 --at-once 32 --rows 16 --rounds 1 --skip-http"
    script = str(BENCHMARKS / "vllm_saturation.py")
    done = subprocess.run(
        [sys.executable, script, "--json", "--run", str(a_run), *sizes.split()],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["messages"] > 0
    for path in ("saturation", "dialogues_tokens_per_s", "turns", "messages", "sampled_tokens"):
        _assert_finite(_at(found, path), path)
