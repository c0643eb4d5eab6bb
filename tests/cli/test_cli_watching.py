"""What a run's folder and its last words say of how it went."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from bad_input import InProcess
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from spec_files import spoil

from muarl.record import read_journal


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_rollout_leaves_a_log_and_its_figures(
    muarl: InProcess, run_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ending = muarl(
        "rollout", run_file, "--expert", "--episodes", 5, "--group-size", 5, "--out", out, "--json"
    )
    assert ending.code == 0, ending.lines
    episodes = list(read_journal(out / "episodes.journal"))
    found = json.loads(ending.out)
    observed = found.pop("observed")
    assert observed["sampled_tokens"] == sum(e.num_sampled for e in episodes) > 0
    assert observed["messages"] == sum(len(e.turns) for e in episodes)
    assert observed["tool_calls"] == sum(len(e.calls()) for e in episodes)
    assert observed["attempts"] == len(episodes) == 5
    assert observed["faults_by_kind"] == {}

    log = lines(out / "log.jsonl")
    assert [line["event"] for line in log] == ["run_begins", "group", "run_ends"]
    assert log[1]["episodes"] == [str(e.key) for e in sorted(episodes, key=lambda e: e.key.sample)]
    assert log[1]["policy_version"] == 0
    assert log[2]["kept_tokens"] == observed["sampled_tokens"]
    metrics, users = lines(out / "metrics.jsonl")
    assert metrics.pop("observed") == observed
    assert metrics == {"kind": "rollout", "phase": "rollout", "temperature": 1.0, **found}
    assert (users["kind"], users["phase"], users["dialogues"]) == ("users", "rollout", 5)
    assert users["figures"]["contract"]["value"] == 1.0
    assert (out / "tokenizer" / "tokenizer.json").is_file(), "whoever reads the tokens needs it"


def test_a_run_that_fails_says_so_in_its_log_with_each_fault(
    muarl: InProcess, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "very-secret-key")
    monkeypatch.setattr("muarl.http.chat_client._TRIES", 1)
    user = "base_url: 'http://127.0.0.1:9/very-secret-key/v1', model: m, api_key_env: SHOP_KEY"
    run_file.write_text(run_file.read_text() + f"user: {{llm: {{{user}}}}}\n")
    out = tmp_path / "out"
    ending = muarl("rollout", run_file, "--expert", "--episodes", 1, "--out", out)
    assert ending.code == 1
    log = lines(out / "log.jsonl")
    assert [line["event"] for line in log] == ["run_begins", "fault", "fault", "group", "run_fails"]
    assert [line["kind"] for line in log[1:3]] == ["EndpointError"] * 2
    assert [line["attempt"] for line in log[1:3]] == [1, 2]
    assert log[3]["rewards"] == [None]
    assert log[4]["kind"] == "FaultRateError"
    assert log[4]["faults_by_kind"] == {"EndpointError": 2}
    assert "cannot be reached" in log[1]["words"]
    assert "very-secret-key" not in (out / "log.jsonl").read_text()


def test_a_tool_that_crashes_is_in_the_log_and_on_the_screen_once(
    muarl: InProcess, run_file: Path, tmp_path: Path
) -> None:
    spoil(
        run_file.parent / "tools.py",
        "    async def cancel(order_id: str) -> str:\n",
        "    async def cancel(order_id: str) -> str:\n        raise KeyError('the till')\n",
    )
    domain = run_file.parent / "domain.yaml"
    spoil(domain, "  python: tools.py:serve\n", "  python: tools.py:serve\n  on_crash: answer\n")
    out = tmp_path / "out"
    ending = muarl("rollout", run_file, "--expert", "--episodes", 3, "--out", out)
    said = [line for line in ending.lines if "its next crashes are not logged" in line]
    assert said == [], "it goes through the display, not across it"
    (warning,) = [line for line in lines(out / "log.jsonl") if line["event"] == "warning"]
    assert "tool 'cancel' crashed: KeyError: 'the till'" in warning["words"]
    assert warning["logger"] == "muarl.tools"


def test_spans_without_what_makes_them_is_one_message_and_no_folder(
    muarl: InProcess, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "muarl.observe.collector", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    out = tmp_path / "out"
    for verb in (["train"], ["eval", "--model", out], ["rollout", "--expert"]):
        ending = muarl(verb[0], run_file, *verb[1:], "--otel", "--out", out)
        ending.refuses(
            1,
            "muarl: --otel needs opentelemetry.sdk.resources. "
            "Install it with `pip install 'muarl[otel]'`",
        )
    assert not out.exists()


def test_a_collector_that_does_not_answer_is_one_message_and_no_folder(
    muarl: InProcess, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{held.getsockname()[1]}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        out = tmp_path / "out"
        ending = muarl("rollout", run_file, "--expert", "--otel", "--out", out)
    ending.refuses(1, f"muarl: --otel: no OpenTelemetry collector takes spans at {address}. ")
    assert not out.exists()


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """A collector of spans: its address, and what it was sent."""
    sent: list[ExportTraceServiceRequest] = []

    class Collect(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/traces"
            sent.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Collect) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", sent
        finally:
            server.shutdown()
            thread.join()


def test_spans_reach_a_collector(
    muarl: InProcess,
    run_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    collector: tuple[str, list[ExportTraceServiceRequest]],
) -> None:
    address, sent = collector
    monkeypatch.setattr("muarl.observe.collector._PROBE_S", 60.0)
    monkeypatch.setattr("muarl.observe.collector._PATIENCE_S", 60.0)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    out = tmp_path / "out"
    ending = muarl(
        "rollout", run_file, "--expert", "--episodes", 2, "--group-size", 2, "--otel", "--out", out
    )
    assert (ending.code, ending.lines) == (0, [])
    resources = [resource for request in sent for resource in request.resource_spans]
    (name,) = {
        attribute.value.string_value
        for resource in resources
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    }
    assert name == "muarl"
    names = [
        span.name
        for resource in resources
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    episodes = list(read_journal(out / "episodes.journal"))
    assert names.count("group") == 1
    assert names.count("dialogue") == 2
    assert names.count("policy message") == sum(len(e.turns) for e in episodes)
    assert names.count("tool call") == sum(len(e.calls()) for e in episodes)
    assert names.count("user reply") == 2 + sum(
        t.reply is not None for e in episodes for t in e.turns
    )
