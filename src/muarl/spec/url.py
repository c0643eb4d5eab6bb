"""Addresses that spec files name: of chat endpoints, of servers, of MCP servers."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import AfterValidator

from muarl.spec.base import SECRET_KEY

_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")


def _http_url(url: str) -> str:
    _split(url, "https://example.org/mcp")
    return url


def _endpoint_url(url: str) -> str:
    example = "http://127.0.0.1:8000/v1"
    parts = _split(url, example)
    if parts.query or parts.fragment or parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValueError(
            f"expected the URL before `/chat/completions`, which is put after it, such as {example}, "
            f"got {url!r}"
        )
    return url


def _server_url(url: str) -> str:
    parts = _split(url, "http://127.0.0.1:8000")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(
            f"expected a server's base URL, without a path: {parts.scheme}://{parts.netloc}, "
            f"got {url!r}"
        )
    return url.rstrip("/")


def _split(url: str, example: str) -> SplitResult:
    """The parts of a URL that can be asked and may be recorded."""
    refuse_userinfo(url)
    try:
        parts = urlsplit(url)
        is_url = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not _BLANK.search(url)
        )
    except ValueError:  # a port that is none, half an IPv6 address
        is_url = False
    if not is_url:
        raise ValueError(f"expected a URL such as {example}, got {url!r}")
    return parts


def refuse_userinfo(url: str) -> None:
    """A URL with a password in it would be recorded wherever the URL is."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError(
            "a URL with a user or password in it, which would be recorded; name an environment "
            "variable instead (`api_key_env`, or `secrets` of a tool server)"
        )
    for name, _ in parse_qsl(url.partition("?")[2]):
        if SECRET_KEY.search(name):
            raise ValueError(
                f"a URL with a value for {name!r} in it, which would be recorded; send it in a "
                "header, whose value an environment variable holds (`secrets` of a tool server)"
            )


HttpUrl = Annotated[str, AfterValidator(_http_url)]
"""Any address over HTTP."""

EndpointUrl = Annotated[str, AfterValidator(_endpoint_url)]
"""An OpenAI-compatible endpoint: what comes before `/chat/completions`."""

ServerUrl = Annotated[str, AfterValidator(_server_url)]
"""Scheme, host and port of a server."""
