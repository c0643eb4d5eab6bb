"""The tokenizer behind a renderer, and how a tiny one is trained on a domain's own text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from muarl.errors import SetupError
from muarl.record.saving import saving

# The Qwen3 family's own names. True: cut out of ordinary text unless it is encoded as plain text.
_CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_WEIGHT_OF_VALUES = 1000  # as if seen so often: their merges come first
_MARKUP_TOKENS = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)


_BESIDE = ("tokenizer_config.json", "chat_template.jinja", "special_tokens_map.json")
"""What a model's folder may hold beside `tokenizer.json` and whoever serves the model reads."""
_CONFIG = (
    b'{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", '
    b'"pad_token": "<|endoftext|>", "clean_up_tokenization_spaces": false}\n'
)

_MEND = "Copy the folder anew from where it came (of a Git repository, with `git lfs pull`)"

# The text of a system block, which the domain's author and the template itself write.
_SYSTEM = "system\n"
# A thinking block, as the template opens it. No message begins so: they follow their role's name.
_THINK, _THINK_END = "<think>", "</think>"
_THINKING = f"{_THINK}\n"

# Texts worth remembering: stock sentences, and the one system block of a run.
_REMEMBERED = 4096


class TextTokenizer:
    """A `tokenizers.Tokenizer` in the shape that `renderers` asks for.

    Control tokens written in a message stay text: a user or tool that says `<|im_end|>` or
    `</tool_response>` cannot end anything. Renderers place control tokens by id, but for the marks
    of a thinking block and those in the system block, which come as text and are control tokens.
    """

    def __init__(
        self, tokenizer: Tokenizer, name_or_path: str, beside: Mapping[str, bytes] | None = None
    ) -> None:
        """Wrap.

        Args:
            tokenizer: Text to ids and back.
            name_or_path: Where it is from.
            beside: Files that came with it, such as a chat template, to be saved with it.
        """
        self._beside = dict(beside or {"tokenizer_config.json": _CONFIG})
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.name_or_path = name_or_path
        self._settings = _settings(name_or_path, self._beside)
        self.named_tokens = {
            name: text
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
            if (text := _text_of(self._settings.get(name))) is not None
        }
        self.unk_token_id: int | None = None
        self.eos_token_id: int | None = tokenizer.token_to_id(
            self.named_tokens.get("eos_token", "<|im_end|>")
        )
        self._controls = {
            token.content: token_id
            for token_id, token in tokenizer.get_added_tokens_decoder().items()
        }
        longest_first = sorted(self._controls, key=lambda text: -len(text))
        self._marks = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")
        self._breaks = _inside_marks(tokenizer)
        self._encode = lru_cache(maxsize=_REMEMBERED)(self._encode_uncached)

    @classmethod
    def load(cls, folder: Path) -> TextTokenizer:
        """Read `tokenizer.json` from a model folder.

        Raises:
            SetupError: There is none, or it cannot be read.
        """
        path = folder / "tokenizer.json"
        try:
            tokenizer = Tokenizer.from_file(str(path))
            there = [folder / name for name in _BESIDE if (folder / name).is_file()]
            beside = {path.name: path.read_bytes() for path in there}
        except Exception as error:  # the tokenizers library raises bare Exception
            raise SetupError(
                f"no tokenizer could be read from {path}: {error}. A model folder needs tokenizer.json "
                f"beside config.json. {_MEND}"
            ) from error
        return cls(tokenizer, str(folder), beside)

    def is_like(self, other: TextTokenizer) -> bool:
        """Whether an id means the same to both."""
        return self is other or self._tokenizer.to_str() == other._tokenizer.to_str()

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and beside it what transformers and vLLM expect, or what it came with."""
        self._tokenizer.encode_special_tokens = False
        try:
            # The tokenizers library raises bare Exception.
            with saving(folder / "tokenizer.json", Exception):
                self._tokenizer.save(str(folder / "tokenizer.json"))
        finally:
            self._tokenizer.encode_special_tokens = True
        for name, content in self._beside.items():
            with saving(folder / name):
                (folder / name).write_bytes(content)

    @property
    def chat_template(self) -> str | None:
        """The model's own template, in Jinja; None where its folder has none."""
        return self._settings.get("chat_template")

    def is_control(self, token_id: int) -> bool:
        """Whether text is never cut into this token, unless it is markup."""
        return token_id in self._controls.values()

    def encode_markup(self, text: str) -> list[int]:
        """Token ids of text that a template wrote: marks in it are control tokens."""
        ids: list[int] = []
        for place, piece in enumerate(self._marks.split(text)):
            if place % 2:
                ids.append(self._controls[piece])
            elif piece:
                ids += self._tokenizer.encode(piece, add_special_tokens=False).ids
        return ids

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included."""
        return self._tokenizer.get_vocab_size()

    def _encode_uncached(self, text: str) -> tuple[int, ...]:
        text = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no tokens
        ids: list[int] = []
        for piece in self._pieces(text):
            ids += self._tokenizer.encode(piece, add_special_tokens=False).ids
        return tuple(ids)

    def _pieces(self, text: str) -> list[str]:
        r"""Cut a text so that marks are whole where they are control tokens, and nowhere else.

        The pieces of `user\n</think>` are `user\n<` and `/think>`.
        """
        if text.startswith(_SYSTEM):
            return [text]
        if text.startswith(_THINKING) and _THINK_END in text:
            thoughts, _, rest = text.removeprefix(_THINK).partition(_THINK_END)
            return [_THINK, *self._breaks.split(thoughts), _THINK_END, *self._breaks.split(rest)]
        return self._breaks.split(text)

    def encode(self, text: str, *_args: Any, **_kwargs: Any) -> list[int]:
        """Token ids of a text of the template; marks that a message holds are spelled out."""
        return list(self._encode(text))

    def decode(self, token_ids: Any, *_args: Any, **_kwargs: Any) -> str:
        """Text of token ids, control tokens included."""
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        """Id of one token, or ids of several; None for unknown ones."""
        if isinstance(tokens, str):
            return self._tokenizer.token_to_id(tokens)
        return [self._tokenizer.token_to_id(token) for token in tokens]


def _settings(name: str, beside: Mapping[str, bytes]) -> dict[str, Any]:
    """`tokenizer_config.json`, with the chat template that may stand in a file of its own.

    Raises:
        SetupError: It is no JSON object.
    """
    try:
        found = json.loads(beside.get("tokenizer_config.json", _CONFIG))
    except (ValueError, RecursionError) as error:
        raise SetupError(
            f"{name}: tokenizer_config.json cannot be read: {error}. {_MEND}"
        ) from error
    if not isinstance(found, dict):
        raise SetupError(f"{name}: tokenizer_config.json holds no JSON object. {_MEND}")
    if "chat_template.jinja" in beside:
        found["chat_template"] = beside["chat_template.jinja"].decode("utf-8", "replace")
    elif isinstance(found.get("chat_template"), list):  # several by name
        named = {t.get("name"): t.get("template") for t in found["chat_template"]}
        found["chat_template"] = named.get("default")
    return found


def _text_of(token: Any) -> str | None:
    """A token's text, which some files wrap in an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _inside_marks(tokenizer: Tokenizer) -> re.Pattern[str]:
    """Matches behind the first character of each mark that the tokenizer would cut out of text."""
    marks = [
        token.content
        for token in tokenizer.get_added_tokens_decoder().values()
        if not token.special and len(token.content) > 1
    ]
    places = [f"(?<={re.escape(mark[0])})(?={re.escape(mark[1:])})" for mark in marks]
    return re.compile("|".join(places) if places else "(?!)")


def train_tokenizer(
    texts: Iterable[str], *, vocab_size: int, values: Collection[str] = ()
) -> TextTokenizer:
    """Train a byte-level BPE whose tokens may span words, so that stock sentences become short.

    What a policy must copy rather than know is kept apart, so that unseen values are spelled like
    seen ones: digits go in pairs, a letter prefix of a number stands alone (`K41` is `K 41`),
    and each of `values` is never merged with its surroundings. A newline always stands alone:
    renderers encode `user` and the newline after it in two pieces, and the ids must agree.

    Each of `values` and each pair of digits gets a token of its own.

    Args:
        texts: Pieces of rendered dialogues, control tokens and all; no token spans two pieces.
        vocab_size: Tokens, special ones included.
        values: Words that stand for data: items, cities, names.
    """
    tokenizer = Tokenizer(models.BPE())
    words = sorted({re.escape(v) for v in values if v.isalpha()}, key=len, reverse=True)
    # One pattern, tried in order: a split by a later one would not see what stands around it.
    # Only from a word's first letter, or a word without digits is searched once for each letter:
    # one of 3 MB took hours.
    prefix = r"(?<![A-Za-z])[A-Za-z]+(?=\d)"
    apart = [r"\n", r"\d{1,2}", prefix, r"(?<=\d)[A-Za-z]+"]
    if words:
        apart.append(rf"(?<![A-Za-z])(?:{'|'.join(words)})(?![A-Za-z])")
    splits = [pre_tokenizers.Split(Regex("|".join(apart)), behavior="isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*splits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(_MARKUP_TOKENS),
        special_tokens=list(_CONTROL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
        max_token_length=48,
    )
    marks = re.compile("|".join(re.escape(t) for t in (*_CONTROL_TOKENS, *_MARKUP_TOKENS)))
    pieces = (piece for text in texts for piece in marks.split(text) if piece)
    copied = [*sorted(set(values)), *(f"{pair:02d}" for pair in range(100))]
    tokenizer.train_from_iterator(chain(pieces, copied * _WEIGHT_OF_VALUES), trainer)
    tokenizer.add_tokens(
        [AddedToken(token, special=False, normalized=False) for token in _MARKUP_TOKENS]
    )
    return TextTokenizer(tokenizer, "muarl-tiny")
