"""Where spans go: a collector that speaks OTLP over HTTP. Needs the extra `otel`.

The standard variables say where it is and what it gets: `OTEL_EXPORTER_OTLP_ENDPOINT` (default
`http://localhost:4318`), `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME` and
the rest, all read by the SDK.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import TracerProvider

from muarl.errors import SetupError
from muarl.observe.words import plain_words
from muarl.version import __version__

_QUEUE = 65_536
"""Spans that may wait for the collector; thousands of dialogues give thousands of spans a second."""

_PROBE_S = 2.0
_PATIENCE_S = 5.0
"""How long the end of a run waits for a collector that has gone away."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def require_collector() -> None:
    """Ask the collector once, before a run is built on it.

    Raises:
        SetupError: It does not answer, or refuses.
    """
    logger = logging.getLogger("opentelemetry")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # it would tell of every try
    try:
        answered = OTLPSpanExporter(timeout=_PROBE_S).export([])
    finally:
        logger.setLevel(level)
    if answered is not SpanExportResult.SUCCESS:
        named = [os.environ[name] for name in _ENDPOINTS if os.environ.get(name)]
        where = plain_words((named or ["http://localhost:4318"])[0])
        raise SetupError(
            f"--otel: no OpenTelemetry collector takes spans at {where}. Start one there, set "
            "OTEL_EXPORTER_OTLP_ENDPOINT to another one's address, or leave --otel out"
        )


@contextmanager
def collector() -> Iterator[TracerProvider]:
    """Sends spans while it is open. A collector that goes away loses some, and stops nothing."""
    ours = Resource({"service.name": "muarl", "service.version": __version__})
    provider = SdkTracerProvider(
        resource=Resource.create().merge(ours).merge(OTELResourceDetector().detect())
    )
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))
    try:
        yield provider
    finally:
        # The SDK would wait for half a minute.
        patience = threading.Timer(_PATIENCE_S, exporter.shutdown)
        patience.start()
        provider.shutdown()
        patience.cancel()
        patience.join()
