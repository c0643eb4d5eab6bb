"""The processes under a vLLM engine: what they inherit, and that none of them stays."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from muarl.errors import SetupError
from muarl.policy.vllm_versions import check_version

_INSTALL = "pip install 'muarl[vllm]' (GPU) or run scripts/install-vllm-cpu.sh (CPU)"
SHUTDOWN_S = 10.0
"""Seconds the engine may take to end by itself before it is killed."""
_WORKER_GRACE_S = 2
"""Seconds a worker may take to end by itself; vLLM 0.32's never does on a CPU."""


def require_vllm() -> None:
    """Look whether vLLM is there, without the seconds it takes to import it.

    Raises:
        SetupError: It is not installed.
    """
    if importlib.util.find_spec("vllm") is None:
        raise SetupError(f"`engine: vllm` needs vLLM, which is not installed: {_INSTALL}")


def import_vllm() -> Any:
    """Import vLLM and the modules of it that we use.

    Raises:
        SetupError: It is not installed, its installation is broken, or it is too old.
    """
    # vLLM warns while it is imported, before its logging is set up.
    logging.getLogger("vllm").addHandler(logging.NullHandler())
    try:
        import vllm
        import vllm.exceptions
        import vllm.platforms
        import vllm.sampling_params
        import vllm.v1.engine.async_llm
    except ImportError as error:
        raise SetupError(f"the vLLM engine needs vLLM ({error}): {_INSTALL}") from error
    check_version(vllm.__version__, "vLLM")
    return vllm


@contextmanager
def engine_environment(threads: int) -> Iterator[None]:
    """What the engine's processes inherit; taken back afterwards.

    vLLM itself writes LD_PRELOAD, OMP and inductor variables while it starts; none of them should
    reach the tool servers that this process starts later. SIGINT is blocked in the children, or a
    Ctrl-C in the terminal would stop the engine while the run still drains.
    """
    before = dict(os.environ)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ["VLLM_LOGGING_STREAM"] = "ext://sys.stderr"
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS"] = str(_WORKER_GRACE_S)
    # Bound to one core, as by vLLM's default, a worker that shares it sampled a quarter as much.
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ["OMP_NUM_THREADS"] = str(threads or max(1, (os.cpu_count() or 1) - 1))
    # The resource tracker unblocks signals when it is started, so it must run already.
    resource_tracker.ensure_running()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def family(processes: Iterable[BaseProcess | subprocess.Popen[bytes]]) -> list[Any]:
    """These processes and all below them, as psutil sees them."""
    import psutil  # a requirement of vLLM's

    found = []
    for process in processes:
        try:
            head = psutil.Process(process.pid)
            found += [head, *head.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue  # the engine died before us
    return found


_WATCH = """
import shutil, sys
sys.stdin.read()  # ends with the process that holds the other end, however that one ends
for pid, born in (name.split(":") for name in sys.argv[2:]):
    import psutil
    try:
        process = psutil.Process(int(pid))
        if str(process.create_time()) == born:
            process.kill()
    except psutil.NoSuchProcess:
        pass
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


@contextmanager
def nothing_outlives_us(processes: list[Any], folder: Path) -> Iterator[None]:
    """While this is open and should this process be killed, the others go and the folder with them.

    vLLM's processes outlive a parent that was killed, two gigabytes each, and so does a folder in
    memory. So a small process waits, in a session of its own, for a pipe to end that we hold open.
    """
    names = [f"{process.pid}:{process.create_time()}" for process in processes]
    with subprocess.Popen(
        [sys.executable, "-c", _WATCH, str(folder), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as watch:
        try:
            yield
        finally:
            watch.kill()


def end(processes: list[Any]) -> None:
    """Wait for processes that are on their way out, and kill what stays."""
    import psutil

    _, alive = psutil.wait_procs(processes, timeout=_WORKER_GRACE_S)
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, timeout=SHUTDOWN_S)


def tmpfs() -> str | None:
    """Folder of a file system in memory, or None where there is none (macOS)."""
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and os.access(shm, os.W_OK) else None
