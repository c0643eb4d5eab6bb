"""One HTML page of our scripts, our style and data, under a policy that lets nothing else in."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from muarl.report.inline import inline_json, source_hash


def policy(script: str, style: str, *, connects: bool) -> str:
    """The content security policy of a page with this script and this style.

    Args:
        script: Its text.
        style: Its text.
        connects: Whether the script may ask the server that the page came from.
    """
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{source_hash(script)}'",
            f"style-src '{source_hash(style)}'",
            "img-src data:",
            "connect-src 'self'" if connects else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        ]
    )


def html_page(
    title: str,
    scripts: Sequence[str],
    data: Any,
    *,
    packs: Iterable[tuple[str, str]] = (),
    connects: bool = False,
) -> str:
    """The page as text.

    Args:
        title: Of the page.
        scripts: Names of assets, in the order they run.
        data: What the script draws.
        packs: Id and base64 of what it unpacks later; behind the script, so that it draws first.
        connects: Whether it may ask the server that it came from.
    """
    script = "".join(map(_asset, scripts))
    style = _asset("page.css")
    parts = {
        "title": html.escape(title),
        "policy": policy(script, style, connects=connects),
        "style": style,
        "script": script,
        "data": inline_json(data),
        "packs": "".join(
            f'<script type="application/octet-stream" id="{name}">{pack}</script>\n'
            for name, pack in packs
        ),
    }
    # One pass over the template only: what is put in is never looked at again.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return resources.files("muarl.report").joinpath("assets", name).read_text(encoding="utf-8")
