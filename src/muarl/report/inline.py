"""What a page that fetches nothing holds: its own script and style by hash, and data that is only data."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import msgspec


def source_hash(source: str) -> str:
    """What a content security policy calls this inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def inline_json(data: Any) -> str:
    """JSON that may stand in a `<script>` element: no markup can begin or end in it."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
