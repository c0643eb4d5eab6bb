"""Scripted tau2 retail dialogues through the official environment; run by `paper_overhead.py`.

It imports tau2 and nothing of muarl, so that it runs with the Python that tau2 is installed for:

    python _official_tau2.py < dialogues.json

Reads `{"at_once": 64, "dialogues": [{"task": {...}, "goal": "...", "messages": [...]}, ...]}`, where a
message is `{"calls": [{"name", "arguments"}]}` or `{"text"}`; prints one JSON object. Dialogues run in as
many threads as are at once, as the official runner has it, and are scored by the official evaluator.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from loguru import logger
from tau2.agent.base import BaseAgent
from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage
from tau2.data_model.tasks import Task
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation
from tau2.orchestrator.orchestrator import Orchestrator
from tau2.registry import registry
from tau2.user.base import BaseUser

logger.remove()
PAGE = resource.getpagesize()


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class ScriptedAgent(BaseAgent):
    """Says the messages of a script; with the first it waits until all dialogues at once are there."""

    def __init__(self, messages, all_there):
        self.messages = list(messages)
        self.all_there = all_there

    def get_init_state(self, message_history=None):
        return None

    def generate_next_message(self, message, state):
        if self.all_there is not None:
            self.all_there()
            self.all_there = None
        said = self.messages.pop(0)
        if "text" in said:
            return AssistantMessage(role="assistant", content=said["text"], cost=0.0), state
        calls = [
            ToolCall(id=f"call_{n}", requestor="assistant", **call)
            for n, call in enumerate(said["calls"])
        ]
        return AssistantMessage(role="assistant", tool_calls=calls, cost=0.0), state

    def stop(self, message=None, state=None):
        pass

    @classmethod
    def is_stop(cls, message):
        return False

    def set_seed(self, seed):
        pass


class ScriptedUser(BaseUser):
    """Says what she wants, and ends the dialogue at the first message to her."""

    def __init__(self, goal):
        super().__init__()
        self.goal = goal
        self.opened = False

    def get_init_state(self, message_history=None):
        return None

    def generate_next_message(self, message, state):
        text = "###STOP###" if self.opened else self.goal
        self.opened = True
        return UserMessage(role="user", content=text, cost=0.0), state

    @classmethod
    def is_stop(cls, message):
        return "###STOP###" in (message.content or "")


def main() -> None:
    given = json.load(sys.stdin)
    at_once, dialogues = given["at_once"], given["dialogues"]
    tasks = {}
    for dialogue in dialogues:
        task_id = dialogue["task"]["id"]
        if task_id not in tasks:
            tasks[task_id] = Task.model_validate(dialogue["task"])
    make = registry.get_env_constructor("retail")
    gate = threading.Barrier(at_once)
    first_wave = iter(range(at_once))

    def play(dialogue, waits: bool) -> float:
        task = tasks[dialogue["task"]["id"]]
        orchestrator = Orchestrator(
            domain="retail",
            agent=ScriptedAgent(dialogue["messages"], gate.wait if waits else None),
            user=ScriptedUser(dialogue["goal"]),
            environment=make(),
            task=task,
            max_steps=200,
        )
        simulation = orchestrator.run()
        return evaluate_simulation(simulation, task, EvaluationType.ALL, False, "retail").reward

    play(dialogues[0], waits=False)  # what is imported on first use
    gc.collect()
    before, peak, over = rss_bytes(), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            peak[0] = max(peak[0], rss_bytes())

    watching = threading.Thread(target=watch)
    watching.start()
    cpu, begin = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        waits = [next(first_wave, None) is not None for _ in dialogues]
        rewards = list(pool.map(play, dialogues, waits))
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    over.set()
    watching.join()
    print(
        json.dumps(
            {
                "solved": sum(reward == 1 for reward in rewards),
                "wall_s": wall,
                "cpu_s": cpu,
                "rss_growth": max(0, peak[0] - before),
            }
        )
    )


if __name__ == "__main__":
    main()
