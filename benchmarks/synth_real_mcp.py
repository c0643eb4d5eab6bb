"""Dialogues over a published MCP server that knows nothing of muarl, made and verified.

    python benchmarks/synth_real_mcp.py --json

Pipeline two: the tools are those of `@modelcontextprotocol/server-memory` (npm), a process for each
dialogue, really called; only what users ask for is generated: 20 tasks on address books of their own. The
agent is behind a chat endpoint and calls tools in its form, as an LLM would; here it is a rule, so that it
costs nothing. The user is the scripted one of `domains/contacts`. Each dialogue is replayed on a fresh server.

    replay_verified  Dialogues whose calls, made again, answered as recorded and led to the recorded state.
    kept             Dialogues that passed all stages.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from muarl.cli._running import prepare_torch
from muarl.spec import TasksFile, load_synth
from muarl.testing.http_server import HttpRequest, http_server

CONTACTS = Path(__file__).resolve().parent.parent / "domains" / "contacts"
FIRST = ("Ada", "Ben", "Cleo", "Dora", "Egon", "Fay", "Gus", "Hana", "Ida", "Jon", "Kai", "Lea")
LAST = ("Byron", "Reed", "Stone", "Marsh", "Vale", "Quill", "Thorn", "Brook", "Hale", "Lund")
MONTHS = ("January", "March", "May", "July", "October", "December")
ENTRIES = 5


def tasks(count: int, seed: int) -> list[dict[str, Any]]:
    """Queries, each on an address book of its own."""
    rng = random.Random(seed)
    found = []
    for number in range(count):
        names = [f"{first} {last}" for first, last in zip(
            rng.sample(FIRST, ENTRIES), rng.sample(LAST, ENTRIES), strict=True
        )]  # fmt: skip
        phones = [str(phone) for phone in rng.sample(range(1000, 9999), ENTRIES + 1)]
        book = [
            {"name": name, "entityType": "contact", "observations": [f"phone {phone}"]}
            for name, phone in zip(names, phones, strict=False)
        ]
        who = rng.randrange(ENTRIES)
        if number % 2:
            day = f"{rng.randrange(1, 29)} {rng.choice(MONTHS)}"
            goal = f"Have it noted that {names[who]}'s birthday is on {day}."
            ask, fact = "add_birthday", {"id": "birthday", "value": day}
            gold = [_add(names[who], f"birthday {day}")]
        else:
            goal = f"Change {names[who]}'s phone number to {phones[-1]}."
            ask, fact = "change_phone", {"id": "phone", "value": phones[-1]}
            gold = [
                _remove(names[who], f"phone {phones[who]}"),
                _add(names[who], f"phone {phones[-1]}"),
            ]
        facts = [{"id": "name", "value": names[who]}, fact]
        found.append(
            {
                "id": f"contact-{number}",
                "goal": goal,
                "personas": ["plain"],
                "user": {"requests": [{"ask": ask, "facts": facts}]},
                "world": {"graph": {"entities": book, "relations": []}},
                "gold": gold,
            }
        )
    return found


def _add(name: str, text: str) -> dict[str, Any]:
    arguments = {"observations": [{"entityName": name, "contents": [text]}]}
    return {"tool": "add_observations", "arguments": arguments}


def _remove(name: str, text: str) -> dict[str, Any]:
    arguments = {"deletions": [{"entityName": name, "observations": [text]}]}
    return {"tool": "delete_observations", "arguments": arguments}


def agent(request: HttpRequest) -> dict[str, Any]:
    """Looks the contact up, and writes what was asked for."""
    messages = request.json()["messages"]
    asked = next(message["content"] for message in messages if message["role"] == "user")
    answers = [message["content"] for message in messages if message["role"] == "tool"]
    new_phone = "change the phone" in asked
    name = asked.partition(" of ")[2].partition(" to " if new_phone else " is ")[0]
    value = asked.rpartition(" to " if new_phone else " is ")[2]
    if not answers:
        return _says("", _call("search_nodes", {"query": name}))
    if len(answers) > 1:
        return _says("Done. Anything else?")
    (entry,) = json.loads(answers[0])["entities"]
    calls = []
    if new_phone:
        old = next(text for text in entry["observations"] if text.startswith("phone "))
        calls.append(_call(**_remove(name, old)))
    calls.append(_call(**_add(name, f"{'phone' if new_phone else 'birthday'} {value}")))
    return _says("", *calls)


def _call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": f"{tool}-1", "type": "function", "function": function}


def _says(text: str, *calls: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "tool_calls": list(calls) or None}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


async def measure(dialogues: int, seed: int) -> dict[str, Any]:
    """The figures."""
    from muarl.scheduler.rounds import StopSignal
    from muarl.train.progress import Silent
    from muarl.train.run_folder import RunFolder
    from muarl.train.synthesis import ready_synth, run_of_synth, synthesise

    with tempfile.TemporaryDirectory() as given:
        home = Path(given) / "contacts"
        home.mkdir()
        shutil.copy(CONTACTS / "domain.yaml", home)
        made = {"version": 1, "domain": "contacts", "tasks": tasks(dialogues, seed)}
        (home / "tasks.yaml").write_text(TasksFile.model_validate(made).to_yaml())
        async with http_server(agent) as server:
            path = home.parent / "synth.yaml"
            path.write_text(
                f"version: 1\ndomain: contacts\ndialogues: {dialogues}\nseed: {seed}\n"
                f'agent: {{llm: {{base_url: "{server.url}/v1", model: rule}}}}\n'
                "rollout: {concurrency: 4}\n"
            )
            synth = load_synth(path)
            run = run_of_synth(synth)
            domain = await ready_synth(synth, run)
            folder = RunFolder.create(home.parent / "run", run.spec, resume=False, overwrite=False)
            began = time.perf_counter()
            found = await synthesise(
                domain, synth, run, folder=folder, progress=Silent(), stop=StopSignal()
            )
            seconds = time.perf_counter() - began
    table = found.as_json()
    return {
        "dialogues": found.made,
        "replay_verified": found.stages["replay"].passed,
        "kept": found.kept,
        "stages": table["stages"],
        "wall_s": round(seconds, 1),
        "seed": seed,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="only one line on stdout")
    args = parser.parse_args()
    prepare_torch(1)
    found = anyio.run(measure, args.dialogues, args.seed)
    print(json.dumps(found, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
