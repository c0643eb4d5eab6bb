"""What a message costs to fetch: 2,000 requests of half a second at once, again and again.

    python benchmarks/transport.py --json

A token server in another process answers each request after 0.5 s. `wall_over_ideal` is the time of
all rounds over what they would take if nothing cost anything; `cpu_ms_per_request` the CPU time of
this process, encoding the prompt and decoding tokens and log-probs included. The headline is the
policy on asyncio, the way a run goes; beside it the policy on trio, the transport alone, and the
clients that were not chosen.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from _token_server import token_server

from muarl.http.descriptors import allow_many_connections
from muarl.http.transport import HttpRequest, connections, send
from muarl.policy import GenerateRequest
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.policy.vllm_wire import GENERATE, generate_body

LATENCY_S = 0.5
TOKENS = 32
PROMPT = list(range(400))

Fetch = Callable[[str], Awaitable[object]]
"""Gets one message for a dialogue."""


def _request(dialogue: str) -> GenerateRequest:
    return GenerateRequest(
        prompt_ids=PROMPT,
        dialogue=dialogue,
        seed=1,
        max_tokens=TOKENS,
        temperature=1.0,
        stop_token_ids=(2,),
    )


@asynccontextmanager
async def by_policy(url: str) -> AsyncIterator[Fetch]:
    """As a run does it."""
    async with VllmServerPolicy([url]) as policy:

        async def fetch(dialogue: str) -> object:
            return await policy.generate(_request(dialogue))

        yield fetch


def _post(url: str) -> HttpRequest:
    headers = {"Content-Type": "application/json"}
    return HttpRequest("POST", url + GENERATE, headers, generate_body(_request("d"), "muarl-0"))


@asynccontextmanager
async def by_connections(url: str) -> AsyncIterator[Fetch]:
    """The transport alone, connections kept."""
    request = _post(url)
    async with connections() as over:

        async def fetch(dialogue: str) -> object:
            del dialogue
            return await over(request)

        yield fetch


@asynccontextmanager
async def by_send(url: str) -> AsyncIterator[Fetch]:
    """The transport alone, one connection a request."""
    request = _post(url)

    async def fetch(dialogue: str) -> object:
        del dialogue
        return await send(request)

    yield fetch


@asynccontextmanager
async def by_httpx(url: str) -> AsyncIterator[Fetch]:
    """A client a request: its pool, shared, takes time that grows with what is in it."""
    import httpx

    request = _post(url)
    context = httpx.create_ssl_context()

    async def fetch(dialogue: str) -> object:
        del dialogue
        async with httpx.AsyncClient(timeout=None, verify=context, trust_env=False) as client:
            return await client.post(
                request.url, headers=dict(request.headers), content=request.body
            )

    yield fetch


WAYS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "policy_asyncio": ("asyncio", by_policy),
    "policy_trio": ("trio", by_policy),
    "connections_kept_asyncio": ("asyncio", by_connections),
    "connection_a_request_asyncio": ("asyncio", by_send),
    "connection_a_request_trio": ("trio", by_send),
    "httpx_trio": ("trio", by_httpx),
}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _measure(
    way: Callable[[str], Any], url: str, at_once: int, rounds: int
) -> dict[str, Any]:
    async with way(url) as fetch:
        await fetch("warm-up")

        async def dialogue(number: int) -> None:
            for _ in range(rounds):
                await fetch(f"d{number}")

        cpu, began = _cpu_s(), time.monotonic()
        async with anyio.create_task_group() as tasks:
            for number in range(at_once):
                tasks.start_soon(dialogue, number)
        wall, cpu = time.monotonic() - began, _cpu_s() - cpu
    return {
        "wall_over_ideal": round(wall / (rounds * LATENCY_S), 3),
        "cpu_ms_per_request": round(1000 * cpu / (rounds * at_once), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--at-once", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=4, help="requests of each dialogue")
    parser.add_argument("--only", nargs="*", default=list(WAYS), choices=list(WAYS))
    args = parser.parse_args()
    allow_many_connections()
    found = {}
    for name in args.only:
        backend, way = WAYS[name]
        with token_server(LATENCY_S, TOKENS) as url:
            work = functools.partial(_measure, way, url, args.at_once, args.rounds)
            found[name] = anyio.run(work, backend=backend)
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    result = {
        **found.get("policy_asyncio", {}),
        "at_once": args.at_once,
        "rounds": args.rounds,
        "latency_s": LATENCY_S,
        "ways": found,
        "machine": {"cores": os.cpu_count(), "cpu": platform.processor()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
