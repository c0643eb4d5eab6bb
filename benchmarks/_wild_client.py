"""An agent that talks over HTTP as wildly as agents may, a policy that samples as wildly, and what is to come of it.

Whole histories and responses' ids, streams, parallel calls, tools of its own, conversations that go on, are asked
twice, trimmed, edited or asked at once, reasoning that is dropped or kept. What its requests should come to is
told by the words alone: a request goes on from a conversation that was answered and that nobody went on from
yet, if it begins with it and adds nothing of the agent's; anything else begins a sample.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel

from muarl.messages import Message, ToolCall
from muarl.own_loop import AgentContext
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode
from muarl.render import Renderer

OWN = {
    "name": "search",
    "description": "Of a sub-agent's own.",
    "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
}
_WORDS = [
    "order",
    "A10",
    "done",
    "shall",
    "I",
    "go",
    "ahead?",
    "é",
    "日本",
    "<b>",
    "{}",
    "\n",
    "",
    "yes",
    "12",
]


class WildPolicy:
    """Samples texts, calls, several of them, broken ones, thoughts, and ids in no order at all.

    What it writes is seldom spelled as a tokenizer would spell it.

    Attributes:
        sampled: What it was sent and sampled, by dialogue.
    """

    policy_version = 0

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self.sampled: dict[str, list[tuple[list[int], Generation]]] = defaultdict(list)

    async def generate(self, request: GenerateRequest) -> Generation:
        await anyio.lowlevel.checkpoint()
        rng = random.Random(request.seed)
        stops = request.stop_token_ids
        ids = [i for i in self._draw(rng) if i not in stops] or [self._plain("a")[0]]
        ids = [*ids[: request.max_tokens - 1], rng.choice(stops)]
        generation = Generation(ids, [-rng.random() for _ in ids], "stop", 0)
        self.sampled[request.dialogue].append((list(request.prompt_ids), generation))
        return generation

    def _draw(self, rng: random.Random) -> list[int]:
        kind = rng.choice(["text", "text", "text", "call", "calls", "broken", "ids"])
        if kind == "ids":
            return [
                rng.randrange(self._renderer.tokenizer.vocab_size) for _ in range(rng.randint(1, 9))
            ]
        text = " ".join(rng.choice(_WORDS) for _ in range(rng.randint(1, 5)))
        thought = text[::-1] if rng.random() < 0.2 else ""
        many = {"call": 1, "calls": rng.randint(2, 3)}.get(kind, 0)
        calls = tuple(_call(rng) for _ in range(many))
        said = Message("assistant", text if rng.random() < 0.7 or not calls else "", calls)
        if kind == "broken":
            mark = self._renderer.tokenizer.convert_tokens_to_ids("<tool_call>")
            return [*self._misspelled(text, rng), mark, *self._plain("{no")]
        ids = self._renderer.encode_reply(said)
        if thought:
            marks = [
                self._renderer.tokenizer.convert_tokens_to_ids(m) for m in ("<think>", "</think>")
            ]
            ids = [marks[0], *self._plain(thought), marks[1], *ids]
        return [i for one in ids for i in self._respelled(one, rng)]

    def _respelled(self, one: int, rng: random.Random) -> list[int]:
        """The same text in other ids, now and then."""
        text = self._renderer.tokenizer.decode([one])
        if rng.random() < 0.6 or not text.isascii() or "<" in text or self._plain(text) != [one]:
            return [one]
        return self._misspelled(text, rng)

    def _misspelled(self, text: str, rng: random.Random) -> list[int]:
        return [i for letter in text for i in self._plain(letter)]

    def _plain(self, text: str) -> list[int]:
        return self._renderer.tokenizer.encode(text)


def _call(rng: random.Random) -> ToolCall:
    name, arguments = rng.choice(
        [
            ("get_order", {"order_id": f"A{rng.randint(10, 99)}"}),
            ("find_orders", {"account": "anna\u00e9"}),
            ("nothing", {"a": [1, 2.5, None, {"b": True}]}),
        ]
    )
    return ToolCall("c", name, arguments)


class WildClient:
    """The agent of one dialogue.

    Args:
        seed: Of all it does.

    Attributes:
        expected: Samples that its requests should come to.
        did: How often it did what.
    """

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._open: Counter[str] = Counter()
        self._ids: dict[str, str] = {}
        self.expected = 0
        self.did: Counter[str] = Counter()

    async def __call__(self, context: AgentContext) -> None:
        """Talk until the dialogue ends, or it has had enough."""
        rng = self._rng
        self._context = context
        self._endpoint = await context.endpoint()
        self._functions = [tool.as_function()["function"] for tool in context.tools]
        opening = [{"role": m.role, "content": m.content} for m in context.opening]
        known: list[list[dict[str, Any]]] = [opening]
        headers = self._endpoint.headers
        async with aiohttp.ClientSession(headers=headers) as self._session:
            for _ in range(rng.randint(2, 10)):
                act = rng.choice(
                    ["on", "on", "on", "on", "twice", "trim", "edit", "sub", "at once"]
                )
                history = list(rng.choice(known) if act != "on" else known[-1])
                if act == "trim" and len(history) > 2:
                    del history[1 : rng.randint(2, len(history) - 1)]
                if act == "edit":
                    history = _edited(history, rng)
                own = [OWN] if act == "sub" else self._functions
                self.did[act] += 1
                if act == "at once":
                    async with anyio.create_task_group() as tasks:
                        for _ in range(2):
                            tasks.start_soon(self._ask, history, own)
                    continue
                if act == "twice":
                    await self._ask(history, own)
                answered = await self._ask(history, own)
                known.append(await self._gone_on([*history, answered]))

    async def _gone_on(self, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """With what answers its last message: results of its calls, made at once, or the user."""
        said = history[-1]
        if not said.get("tool_calls"):
            reply = await self._context.tell_user(said["content"] or "")
            return [*history, {"role": "user", "content": reply.content}]
        results: dict[str, str] = {}

        async def make(call: dict[str, Any]) -> None:
            arguments = json.loads(call["function"]["arguments"])
            result = await self._context.call_tool(call["function"]["name"], arguments)
            results[call["id"]] = result.content

        async with anyio.create_task_group() as tasks:
            for call in said["tool_calls"]:
                tasks.start_soon(make, call)
        answers = [
            {"role": "tool", "tool_call_id": call["id"], "content": results[call["id"]]}
            for call in said["tool_calls"]
        ]
        return [*history, *answers]

    async def _ask(
        self, history: list[dict[str, Any]], own: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """The message that answers a conversation, as chat has it."""
        self._foresee(history, own)
        form = self._rng.choice(["chat", "chat", "responses"])
        streams = self._rng.random() < 0.4
        keeps_thoughts = self._rng.random() < 0.5
        self.did[f"{form}, streamed" if streams else form] += 1
        ask = self._chat if form == "chat" else self._responses
        said, answer_id = await ask(history, own, streams)
        if not keeps_thoughts:
            said.pop("reasoning_content", None)
        answered = _key([*history, said], own)
        self._open[answered] += 1
        if answer_id is not None:
            self._ids[answered] = answer_id
        return said

    def _foresee(self, history: Sequence[dict[str, Any]], own: list[dict[str, Any]]) -> None:
        last = max((n for n, m in enumerate(history) if m["role"] == "assistant"), default=None)
        before = (
            None if last is None or last + 1 == len(history) else _key(history[: last + 1], own)
        )
        if before is not None and self._open[before]:
            self._open[before] -= 1
        else:
            self.expected += 1

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        async with self._session.post(f"{self._endpoint.url}/{path}", json=body) as response:
            assert response.status == 200, await response.text()
            if response.content_type == "application/json":
                return await response.json()
            text = await response.text()
        lines = [
            line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")
        ]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    async def _chat(
        self, history: list[dict[str, Any]], own: list[dict[str, Any]], streams: bool
    ) -> tuple[dict[str, Any], str | None]:
        tools = [{"type": "function", "function": tool} for tool in own]
        body = {"model": "policy", "messages": history, "tools": tools, "stream": streams}
        found = await self._post("chat/completions", body)
        said: dict[str, Any] = (
            found[0]["choices"][0]["delta"] if streams else found["choices"][0]["message"]
        )
        for call in said.get("tool_calls", ()):
            call.pop("index", None)
        return said, None

    async def _responses(
        self, history: list[dict[str, Any]], own: list[dict[str, Any]], streams: bool
    ) -> tuple[dict[str, Any], str | None]:
        tools = [{"type": "function", **tool} for tool in own]
        last = max((n for n, m in enumerate(history) if m["role"] == "assistant"), default=-1) + 1
        before = self._ids.get(_key(history[:last], own)) if last < len(history) else None
        if before is not None:
            self.did["previous_response_id"] += 1
            history = history[last:]
        body = {"model": "policy", "input": _items(history), "tools": tools, "stream": streams}
        found = await self._post("responses", body | {"previous_response_id": before})
        whole = found[-1]["response"] if streams else found
        return _as_chat(whole["output"]), whole["id"]


def _edited(history: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    place = rng.randrange(len(history))
    changed = {**history[place], "content": (history[place]["content"] or "") + "!"}
    return [*history[:place], changed, *history[place + 1 :]]


def _items(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in history:
        if message["role"] == "tool":
            answer = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **answer})
            continue
        if message.get("reasoning_content"):
            part = {"type": "reasoning_text", "text": message["reasoning_content"]}
            items.append({"type": "reasoning", "summary": [], "content": [part]})
        calls = message.get("tool_calls", ())
        if message["content"] or not calls:
            items.append({"role": message["role"], "content": message["content"] or ""})
        items += [
            {"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls
        ]
    return items


def _as_chat(output: list[dict[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": None}
    for item in output:
        if item["type"] == "reasoning":
            said["reasoning_content"] = item["content"][0]["text"]
        elif item["type"] == "message":
            said["content"] = item["content"][0]["text"]
        else:
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            said.setdefault("tool_calls", []).append(call)
    return said


def _key(history: Sequence[dict[str, Any]], own: list[dict[str, Any]]) -> str:
    """What of a conversation decides whether another goes on from it."""
    told = [{**m, "content": m["content"] or "", "reasoning_content": ""} for m in history]
    return json.dumps([told, [tool["name"] for tool in own]], sort_keys=True)


def drift(episode: Episode, sampled: list[tuple[list[int], Generation]]) -> int:
    """Turns whose ids in the samples are not, byte for byte, those that the engine was sent and sampled."""
    left = [(prompt, g.token_ids, g.logprobs) for prompt, g in sampled]
    wrong = 0
    for turn in episode.turns:
        sample = episode.samples[turn.sample]
        ids = sample.token_ids
        place = (ids[: turn.start], ids[turn.start : turn.end], _logprobs(episode, turn))
        if place in left and all(sample.loss_mask()[turn.start : turn.end]):
            left.remove(place)
        else:
            wrong += 1
    return wrong


def _logprobs(episode: Episode, turn: Any) -> list[float]:
    sample = episode.samples[turn.sample]
    before = sum(sample.loss_mask()[: turn.start])
    return sample.logprobs[before : before + turn.end - turn.start]
