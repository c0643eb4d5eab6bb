"""Our reading of calls in a model's text beside that of BFCL's own decoder, text by text.

    pip install --no-deps bfcl-eval==2026.3.23
    python benchmarks/bfcl_decoder.py --json

It compares for the version that is installed. Texts are drawn: lists of calls as the benchmark asks for them,
the same spoiled (brackets that lack, quotes and fences around them, words before and after), arguments of every
form that Python has, nested and positional ones, and characters at random. Of arithmetic only constants are drawn,
since the official decoder hands it to `eval`.

- `texts`: how many; `calls`: of how many the official decoder makes calls, `none`: the others.
- `same`: share of texts of which both make the same, call by call as the text that upstream evaluates.
- `texts_per_second`: of ours.
- `differ`: the first that are not the same, if any.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from unittest.mock import MagicMock

from muarl.compat.bfcl.importer import VERSIONS
from muarl.compat.bfcl.official import installed
from muarl.compat.bfcl.text_calls import decoded, execution_text
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.python_calls import NotCalls

_NAMES = ("cd", "ls", "place_order", "a.b", "GorillaFileSystem.ls", "x", "True", "print", "größe")
_TEXTS = (
    "''",
    "'a b'",
    '"it\'s"',
    "'[x]'",
    "'f(a=1)'",
    "b'x'",
    "f'{x}'",
    "'a' 'b'",
    "r'\\d'",
    "'ß'",
)
_NUMBERS = ("0", "1", "-1", "+2", "~3", "1.5", "1e999", "007", "1_000", "1j", "0x1f", "9" * 30)
_WORDS = (
    "True",
    "None",
    "...",
    "not True",
    "x",
    "x.y",
    "x[0]",
    "x[1:2]",
    "lambda: 1",
    "a < b",
    "*x",
)
_SUMS = (
    "1 + 2",
    "2 * 3.5",
    "1 / 0",
    "2 ** 3",
    "7 // 2 - 1",
    "'a' + 'b'",
    "'ab' * 3",
    "5 % 3",
    "6 | 1",
)
_SPOILED: tuple[Callable[[str], str], ...] = (
    lambda text: text[1:],
    lambda text: text[:-1],
    lambda text: text.strip("[]"),
    lambda text: f"`{text}`",
    lambda text: f"```\n{text}\n```",
    lambda text: f"```python\n{text}\n```",
    lambda text: f"'{text}'",
    lambda text: f" {text}\n",
    lambda text: f"I call {text}",
    lambda text: f"{text} now",
    lambda text: f"[{text}]",
    lambda text: text.replace(", ", "\n"),
    lambda text: text.replace("=", ": ", 1),
    lambda text: text.replace("'", "", 1),
    lambda text: text[: len(text) // 2],
)


class Writer:
    """Draws texts."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def text(self) -> str:
        """One text."""
        if self._rng.random() < 0.05:
            return "".join(self._rng.choices("[]()='\",:{}fgab01 \n`*", k=self._rng.randint(0, 30)))
        text = f"[{', '.join(self._call(0) for _ in range(self._rng.randint(0, 3)))}]"
        while self._rng.random() < 0.3:
            text = self._rng.choice(_SPOILED)(text)
        return text

    def _call(self, depth: int) -> str:
        parts = [self._value(depth) for _ in range(self._rng.choice((0, 0, 0, 0, 1, 2)))]
        names = self._rng.sample("abcd", self._rng.randint(0, 3))
        parts += [f"{name}={self._value(depth)}" for name in names]
        if self._rng.random() < 0.03:
            parts.append("**{'k': 1}")
        return f"{self._rng.choice(_NAMES)}({', '.join(parts)})"

    def _value(self, depth: int) -> str:
        plain: Sequence[Sequence[str]] = (_TEXTS, _TEXTS, _NUMBERS, _NUMBERS, _SUMS, _WORDS)
        if depth == 3 or self._rng.random() < 0.6:
            return self._rng.choice(self._rng.choice(plain))
        items = [self._value(depth + 1) for _ in range(self._rng.randint(0, 3))]
        match self._rng.randrange(5):
            case 0:
                return self._call(depth + 1)
            case 1:
                return f"[{', '.join(items)}]"
            case 2:
                return f"({', '.join(items)},)" if items else "()"
            case 3:
                return f"{{{', '.join(items)}}}"
        keys = self._rng.choices(("'k'", "'l'", "1", "k", "None", "'it'"), k=len(items))
        pairs = (f"{key}: {item}" for key, item in zip(keys, items, strict=True))
        return f"{{{', '.join(pairs)}}}"


def ours(text: str, version: Version) -> list[str] | None:
    """The calls of a text; None if it is taken for one without."""
    try:
        return [execution_text(*call) for call in decoded(text, version)]
    except NotCalls:
        return None


def official_decoder() -> Callable[[str], list[str]]:
    """The official one, whose module also imports parsers for Java that nothing here needs."""
    for name in ("tenacity", "tree_sitter", "tree_sitter_java", "tree_sitter_javascript"):
        if find_spec(name) is None:
            sys.modules[name] = MagicMock()
    decoder: Callable[[str], list[str]] = import_module(
        "bfcl_eval.model_handler.utils"
    ).default_decode_execute_prompting
    return decoder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    there = [version for version in VERSIONS if installed(version) is not None]
    if not there:
        print("bfcl-eval is not installed, so nothing can be compared with it", file=sys.stderr)
        return 2
    version, official = there[0], official_decoder()
    writer = Writer(args.seed)
    texts = [writer.text() for _ in range(args.texts)]
    begin = time.perf_counter()
    read = [ours(text, version) for text in texts]
    seconds = time.perf_counter() - begin
    with_calls = 0
    differ = []
    for text, mine in zip(texts, read, strict=True):
        try:
            theirs: list[str] | None = official(text)
        except Exception:  # noqa: BLE001 - upstream's own boundary: whatever it is, it has no calls
            theirs = None
        with_calls += theirs is not None
        if mine != theirs:
            differ.append({"text": text, "ours": mine, "official": theirs})
    summary = {
        "version": version.upper(),
        "texts": len(texts),
        "calls": with_calls,
        "none": len(texts) - with_calls,
        "same": 1 - len(differ) / len(texts),
        "texts_per_second": round(len(texts) / seconds),
        "differ": differ[:5],
    }
    print(json.dumps(summary, indent=None if args.json else 2, ensure_ascii=False))
    return 0 if not differ else 1


if __name__ == "__main__":
    sys.exit(main())
