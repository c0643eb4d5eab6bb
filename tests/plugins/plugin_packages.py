"""Modules of packages that provide an engine, a sink, a world and a tool server."""

from __future__ import annotations

ENGINE = '''\
from contextlib import asynccontextmanager

import torch
from transformers import AutoModelForCausalLM

from muarl.plugins import *


class Settings(Options):
    """How it samples."""

    dtype: str = "float32"
    """Type of its weights."""


class Engine:
    """Samples one message at a time, token by token, as anybody's first engine does."""

    policy_version = 0

    def __init__(self, settings, folder):
        self.settings = settings
        self.read(folder)

    def read(self, folder):
        dtype = getattr(torch, self.settings.dtype)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    async def load_weights(self, folder, version):
        LOAD
        self.read(folder)
        self.policy_version = version

    async def generate(self, request):
        GENERATE
        with torch.no_grad():
            return self.sampled(request)

    def sampled(self, request):
        draw = torch.Generator().manual_seed(request.seed % 2**63)
        ids, logprobs, cache, left = [], [], None, torch.tensor([request.prompt_ids])
        while len(ids) < request.max_tokens:
            out = self.model(left, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            heat = request.temperature or 1.0
            logits = torch.log_softmax(out.logits[0, -1].float() / heat, dim=-1)
            token = (
                int(torch.multinomial(logits.exp(), 1, generator=draw))
                if request.temperature
                else int(logits.argmax())
            )
            ids.append(token)
            logprobs.append(float(logits[token]))
            left = torch.tensor([[token]])
            if token in request.stop_token_ids:
                return Generation(ids, logprobs, "stop", self.policy_version)
        return Generation(ids, logprobs, "length", self.policy_version)


@asynccontextmanager
async def opened(settings, seat):
    OPEN
    yield Engine(settings, seat.weights)
    CLOSE


mine = PolicyPlugin(Settings, opened, trains=True)
still = PolicyPlugin(Settings, opened)


@asynccontextmanager
async def nothing(settings, seat):
    yield 3


empty = PolicyPlugin(Options, nothing)
'''


def engine(**code: str) -> str:
    text = ENGINE
    for place in ("LOAD", "GENERATE", "OPEN", "CLOSE"):
        text = text.replace(place, code.get(place.lower(), "pass"))
    return text


SINK = """\
import json

from muarl.plugins import *


class Where(Options):
    \"\"\"Where to.\"\"\"

    file: str = "figures.jsonl"
    \"\"\"A file in the run's folder.\"\"\"


class Lines:
    def __init__(self, where, folder, config):
        OPEN
        self.path = folder / where.file
        self.path.write_text(json.dumps({"seed": config["seed"]}) + "\\n")

    def add(self, line):
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\\n")

    def write(self, figures):
        WRITE
        self.add([figures.axis, figures.at, len(figures.values)])

    def rewind(self, kept):
        self.add(["rewound", len(kept)])

    def close(self):
        self.add("closed")


sink = SinkPlugin(Where, Lines)
nothing = SinkPlugin(Where, lambda where, folder, config: 3)
"""


def sink_code(**code: str) -> str:
    text = SINK
    for place in ("OPEN", "WRITE"):
        text = text.replace(place, code.get(place.lower(), "pass"))
    return text


SHOP = '''\
from contextlib import asynccontextmanager

import anyio

from muarl.plugins import *


class Orders(World):
    """A world that can be asked which orders are still open."""

    def open(self):
        return [name for name, order in self["orders"].items() if order["status"] == "pending"]


class Stock(Options):
    """What there is."""

    orders: int = 1
    """Orders that are open."""


def build(options, folder):
    return Orders({"orders": {f"W{n}": {"status": "pending"} for n in range(1, options.orders + 1)}})


class Wording(Options):
    """What the server says."""

    done: str
    """Answer to a call that did what it was to do."""


PARAMETERS = {"type": "object", "properties": {"order_id": {"type": "string"}}}


class Session:
    tools = (ToolSpec("cancel", "Cancel.", PARAMETERS), ToolSpec("look", "Look.", PARAMETERS))

    def __init__(self, options, world):
        self.options, self.world = options, world

    async def call(self, call):
        order = self.world["orders"].get(call.arguments.get("order_id"))
        if order is None:
            return ToolResult(call.id, call.name, "no such order", is_error=True)
        CANCEL
        if call.name == "cancel":
            order["status"] = "cancelled"
        return ToolResult(call.id, call.name, self.options.done + " " + order["status"])


class Server:
    def __init__(self, options, folder):
        BUILD
        self.options = options

    @asynccontextmanager
    async def session(self, world):
        START
        yield Session(self.options, world)
        END


orders = WorldPlugin(Stock, build)
server = ToolServerPlugin(Wording, Server)
'''


def shop(**code: str) -> str:
    text = SHOP
    for place in ("CANCEL", "BUILD", "START", "END"):
        text = text.replace(place, code.get(place.lower(), "pass"))
    return text
