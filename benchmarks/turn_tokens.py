"""What a turn costs in tokens: parsing what was sampled and bridging to the next prompt.

    python benchmarks/tokenize.py --json

A dialogue of 60 turns, words and calls in turn, with a tokenizer trained on its own text; every turn
is of the same kind as the one before last, so that only the history grows. `microseconds` is what
the renderer does in a turn: read what was sampled, and make the next prompt. Each figure is the
median of the repeats, and every repeat says something else, so that no text is remembered. `growth`
is what the last turn of a kind costs over the first; the ids of the history are copied, and no more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import TypeVar

from muarl.messages import Message, ToolCall, ToolSpec
from muarl.render import Renderer, train_tokenizer

T = TypeVar("T")

TURNS = 60
RULES = "You are the order desk. Look an order up before you change it. Ask for a yes first. " * 4
ASKS = "could you send my order K{:04} to Lisbon, please? it is the blue lamp and two chairs"
SAYS = "Order K{:04} goes to Lisbon from now on: one lamp, blue, and two chairs. Shall I go ahead?"
FOUND = '{{"id": "K{:04}", "status": "pending", "items": ["lamp, blue", "chair", "chair"]}}'
TOOL = ToolSpec(
    "get_order",
    "Look an order up.",
    {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
)


def said(turn: int, order: int) -> tuple[Message, list[Message]]:
    """What the policy says in a turn about an order, and what answers it."""
    if turn % 2:
        return Message("assistant", SAYS.format(order)), [Message("user", ASKS.format(order))]
    call = ToolCall(f"c{turn}", "get_order", {"order_id": f"K{order:04}"})
    answer = Message("tool", FOUND.format(order), tool_call_id=call.id, name=call.name)
    return Message("assistant", "", (call,)), [answer]


def microseconds(work: Callable[[T], object], items: list[T]) -> float:
    """Median time of one call."""
    times = []
    for item in items:
        start = time.perf_counter()
        work(item)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


Spoken = tuple[list[int], list[Message]]
"""Sampled ids, and what answers them."""


def parse(renderer: Renderer, prompt: list[int], turn: int, spoken: Spoken) -> object:
    """Read what was sampled."""
    return renderer.parse(spoken[0], prompt, turn=turn)


def bridge(renderer: Renderer, prompt: list[int], spoken: Spoken) -> object:
    """Make the next prompt."""
    return renderer.bridge(prompt, *spoken)


def measure(renderer: Renderer, repeats: int) -> dict[str, dict[str, float]]:
    """Cost of both kinds of turn near the start and at the end of one dialogue."""
    prompt = renderer.start([Message("system", RULES), Message("user", ASKS.format(0))], [TOOL])
    orders = random.Random(0)
    figures = {}
    for turn in range(1, TURNS + 1):
        message, answers = said(turn, orders.randrange(10_000))
        sampled = renderer.encode_reply(message)
        if turn in (1, 2, TURNS - 1, TURNS):
            # Each repeat is about an order that was not spoken of before.
            others = [said(turn, orders.randrange(10_000)) for _ in range(repeats)]
            spoken = [(renderer.encode_reply(message), answers) for message, answers in others]
            parse_us = microseconds(partial(parse, renderer, prompt, turn), spoken)
            bridge_us = microseconds(partial(bridge, renderer, prompt), spoken)
            figures[f"turn_{turn}"] = {
                "history_tokens": len(prompt),
                "sampled_tokens": len(sampled),
                "parse_us": round(parse_us, 1),
                "bridge_us": round(bridge_us, 1),
                "microseconds": round(parse_us + bridge_us, 1),
            }
        bridged = renderer.bridge(prompt, sampled, answers)
        assert bridged is not None
        prompt = bridged
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    texts = [RULES, *(text.format(n) for n in range(60) for text in (ASKS, SAYS, FOUND))]
    renderer = Renderer(train_tokenizer(texts, vocab_size=1024))
    figures = measure(renderer, args.repeats)
    # Turns 2 and 60 both call a tool; turns 1 and 59 both speak to the user.
    growth = {
        "call": figures["turn_60"]["microseconds"] / figures["turn_2"]["microseconds"],
        "say": figures["turn_59"]["microseconds"] / figures["turn_1"]["microseconds"],
    }
    result = {
        "benchmark": "tokenize",
        "turn_2_us": figures["turn_2"]["microseconds"],
        "turn_60_us": figures["turn_60"]["microseconds"],
        "growth": {kind: round(value, 3) for kind, value in growth.items()},
        "figures": figures,
        "repeats": args.repeats,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "renderers": version("renderers"),
        "tokenizers": version("tokenizers"),
    }
    if args.json:
        print(json.dumps(result))
        return
    for name, row in figures.items():
        print(f"{name:8} {row}")
    print(f"growth from turn 2 to turn 60: {result['growth']}")


if __name__ == "__main__":
    main()
