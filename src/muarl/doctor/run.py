"""What one run needs beyond what every run does: its engine, its model, the endpoints it talks to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from muarl.doctor.extras import extra_finding, of_extra
from muarl.doctor.finding import Finding, State
from muarl.errors import SetupError
from muarl.http.call import Refused, call
from muarl.http.key import ApiKey
from muarl.http.retry import PassingFailure
from muarl.http.transport import send
from muarl.spec import Located, RunSpec, SuiteSpec, load_domain_spec, load_spec
from muarl.spec.kinds import kind_of

_found = partial(Finding, "run")
_SECONDS = 10.0
_SHOWN = 5
"""Models of an endpoint that are named."""


class Endpoint(msgspec.Struct, frozen=True):
    """A chat endpoint that a spec names.

    Attributes:
        key: Where it stands in the spec: `user.llm`.
        url: `http://127.0.0.1:8000/v1`.
        model: What is asked for there.
        api_key_env: Environment variable with the key of it.
    """

    key: str
    url: str
    model: str
    api_key_env: str | None


async def needs_of_run(run: Located[RunSpec]) -> list[Finding]:
    """Look whether what a run reads, asks and imports is there; nothing is loaded or sampled."""
    found = [_extra(extra) for extra in _extras(run.spec)]
    if all(each.state is State.OK for each in found):
        found += [await _engine(run)]
    found += [_extra(sink.name) for sink in run.spec.sinks]
    endpoints = {(each.url, each.model): each for each in _endpoints(run)}
    return found + [await _endpoint(each) for each in endpoints.values()]


def _endpoints(run: Located[RunSpec]) -> Iterator[Endpoint]:
    yield from endpoints_of(run.spec.model_dump())
    domain = run.resolve(run.spec.domain)
    files = [domain]
    if domain.is_file() and kind_of(domain) == "suite":
        suite = load_spec(domain, SuiteSpec)
        files = [suite.resolve(member.file) for member in suite.spec.members.values()]
    for file in filter(Path.exists, files):
        yield from endpoints_of(load_domain_spec(file).spec.model_dump(), file.name)


def endpoints_of(document: Any, key: str = "") -> Iterator[Endpoint]:
    """The chat endpoints in a spec, wherever in it they are."""
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from endpoints_of(item, f"{key}.{index}")
    elif isinstance(document, Mapping):
        url = document.get("base_url") or os.environ.get(document.get("base_url_env") or "")
        if url and isinstance(document.get("model"), str):
            yield Endpoint(key.lstrip("."), url, document["model"], document.get("api_key_env"))
        for name, value in document.items():
            yield from endpoints_of(value, f"{key}.{name}")


def _extras(spec: RunSpec) -> Iterator[str]:
    yield "train"
    hers = spec.user_model
    if spec.engine.vllm is not None or (hers is not None and hers.engine.vllm is not None):
        yield "vllm"
    if spec.model.lora is not None or (hers is not None and hers.model.lora is not None):
        yield "lora"
    if spec.kernel.optimizer_bits == 8:
        yield "bits8"


def _extra(extra: str) -> Finding:
    found = extra_finding(extra, of_extra(extra))
    state = State.OK if found.state is State.OK else State.WRONG  # this run does not do without
    return _found(extra, state, found.words, found.remedy)


async def _engine(run: Located[RunSpec]) -> Finding:
    from muarl.train.ready import require_engine  # needs the extra `train`

    spec = run.spec
    model = run.resolve(spec.model.path) if spec.model.path else None
    try:
        await require_engine(spec, model, trains=spec.grpo is not None)
    except SetupError as problem:
        return _found("engine", State.WRONG, str(problem))
    return _found("engine", State.OK, spec.engine.name)


async def _endpoint(endpoint: Endpoint) -> Finding:
    name, url = endpoint.key, endpoint.url.rstrip("/")
    try:
        key = ApiKey(endpoint.api_key_env)
        with anyio.fail_after(_SECONDS):
            body = await call(send, key, "GET", f"{url}/models")
    except SetupError as problem:
        return _found(name, State.WRONG, str(problem))
    except TimeoutError:
        return _found(name, State.WRONG, f"{url} does not answer within {_SECONDS:.0f} s")
    except PassingFailure as failure:
        remedy = f"start it, or name another with --set {name}.base_url=http://..."
        return _found(name, State.WRONG, f"{url} {failure}", remedy)
    except Refused as refusal:
        if refusal.status == 404:
            return _found(name, State.OK, f"{url} answers; it does not list its models")
        return _found(name, State.WRONG, f"{url} {refusal}")
    served = _models(body)
    if endpoint.model in served:
        return _found(name, State.OK, f"{url} has {endpoint.model}")
    if not served:
        return _found(name, State.OK, f"{url} answers; what it lists are no models")
    others = ", ".join(served[:_SHOWN]) + (", ..." if len(served) > _SHOWN else "")
    words = f"{url} has no model {endpoint.model!r}; it has {others}"
    return _found(name, State.WRONG, words, f"--set {name}.model={served[0]}")


def _models(body: bytes) -> list[str]:
    """Names in an answer to `GET /models`; none where it has another form."""
    try:
        return [each.id for each in msgspec.json.decode(body, type=_Listed).data]
    except msgspec.DecodeError:
        return []


class _Model(msgspec.Struct):
    id: str


class _Listed(msgspec.Struct):
    data: list[_Model]
