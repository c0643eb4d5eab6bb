import atexit
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, settings

# Helper modules lie beside the tests that use them.
for folder in Path(__file__).parent.iterdir():
    if folder.is_dir():
        sys.path.append(str(folder))

# A shell that starts us in the background has us ignore Ctrl-C, and what we start with us; tests of
# Ctrl-C need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What is printed hangs on the terminal that a test makes, not on that of whoever runs it.
for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)

# Servers that tests talk to are on this machine, where no proxy leads to.
for name in ("NO_PROXY", "no_proxy"):
    os.environ[name] = "127.0.0.1,localhost"

# The same examples each time, however slow the machine is: a test fails because something is wrong,
# or not at all. `pytest --hypothesis-profile=search` looks for examples that nobody has seen yet.
slow_machine = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, database=None, **slow_machine)
settings.register_profile("search", print_blob=True, **slow_machine)
settings.load_profile("same")


# Tasks that one test composed the next one finds, in processes that tests start too; not in a home.
os.environ["MUARL_TASK_CACHE"] = tempfile.mkdtemp(prefix="muarl-tasks-")
atexit.register(shutil.rmtree, os.environ["MUARL_TASK_CACHE"], ignore_errors=True)


def pytest_collection_finish() -> None:
    """The cycle collector is as any verb leaves it, whether or not a test before ran one."""
    from muarl.cli._running import calm_collector

    calm_collector()


LONGEST = ("test_documented_commands.py", "test_every_benchmark.py")
"""Files that take as long as all others of a worker's together."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers share the files out (`make test`), none waits at the end for one that is long."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Draws of no seed of their own are the same in each run, whatever ran before."""
    random.seed(0)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(0)


def _children() -> set[psutil.Process]:
    """Processes that this one started, but for Python's own resource tracker, which lives as long."""
    tracker = resource_tracker._resource_tracker._pid
    return {child for child in psutil.Process().children() if child.pid != tracker}


@pytest.fixture(scope="module", autouse=True)
def no_process_left() -> Iterator[None]:
    """A file whose tests leave a process behind fails itself, and not those after it."""
    before = _children()
    yield
    left = _children() - before
    said = [str(child) for child in left]
    for child in left:
        child.kill()
        child.wait()
    assert not said, said
