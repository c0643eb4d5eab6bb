"""Text of token ids, for people to read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer

from muarl.errors import RecordError


def token_texts(path: Path, ids: Iterable[int]) -> dict[int, str]:
    """Text of each id the tokenizer knows.

    An id that is part of a character has no text of its own; it gets the tokenizer's name for it.

    Raises:
        RecordError: The file is not a tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_buffer(path.read_bytes())  # a path need not be text
    except Exception as error:  # the library raises bare Exception for every kind of bad file
        raise RecordError(f"{path}: not a tokenizer file: {error}") from error
    texts: dict[int, str] = {}
    for token_id in ids:
        if not 0 <= token_id < 2**32:
            continue
        name = tokenizer.id_to_token(token_id)
        if name is not None:
            text = tokenizer.decode([token_id], skip_special_tokens=False)
            texts[token_id] = name if not text or "\ufffd" in text else text
    return texts
