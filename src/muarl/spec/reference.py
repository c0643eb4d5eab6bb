"""The reference of every spec key, as Markdown: generated from the models, committed, checked fresh."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muarl.spec.base import Spec
from muarl.spec.schema import KINDS
from muarl.spec.schema_words import default_words, type_words

HEADS = {
    "reward": "# Predicates and reward files\n\n"
    "A predicate says what a dialogue is worth; [Predicates](../predicates.md) explains them. A file "
    "of them scores stored episodes: `muarl score --reward`.",
    "tasks": "# Task files\n\n"
    "What a user wants, and how it is known that she got it.",
    "domain": "# Domain files\n\n"
    "Rules, tools, a world, personas, and where tasks come from.",
    "run": "# Run files\n\n"
    "Which domain, which model and engine, and how to roll out, train and evaluate.",
    "grid": "# Grid files\n\n"
    "Which policies are tried with which users; [Generalisation](../generalisation.md) explains what "
    "is said of them.",
    "suite": "# Suite files\n\n"
    "Which domains a run is of, where it is of several; [Spec files](../specs.md#several-domains-in-one-run) "
    "shows one.",
    "synth": "# Synthesis files\n\n"
    "Who makes dialogues of a domain, and what these have to stand to be kept; "
    "[Synthesis](../synthesis.md) explains it.",
}  # fmt: skip
"""File kind to the head of its page, in the order in which pages claim models that they share."""

_NOTICE = "<!-- Written by `muarl schema --docs docs`: change the models in muarl.spec instead. -->"
_TABLE = "| key | value | default | meaning |\n|---|---|---|---|"
_ACRONYMS = {"Sql": "SQL", "Llm": "LLM", "Vllm": "vLLM", "Grpo": "GRPO", "Url": "URL"}


@dataclass(frozen=True)
class _Section:
    """What is said of one model.

    Attributes:
        page: File kind whose page it stands on.
        keys: Its own keys, to the JSON Schemas of their values.
        required: Those that must be given.
        shared: The model whose keys it has besides: what all tool servers have, say.
    """

    model: type[Spec]
    page: str
    keys: Mapping[str, dict[str, Any]]
    required: frozenset[str]
    shared: str | None

    @property
    def title(self) -> str:
        """The model's name in words: `CommandToolsSpec` is "Command tools"."""
        first, *rest = re.findall(r"[A-Z][a-z]*", self.model.__name__.removesuffix("Spec"))
        return " ".join([_ACRONYMS.get(first, first), *(_ACRONYMS.get(w, w.lower()) for w in rest)])

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-")

    def anchor_of(self, key: str) -> str:
        return f"{self.anchor}-{key}"

    @property
    def below(self) -> list[str]:
        """Models that its keys lead to, and the one that it shares keys with."""
        return [*_references(list(self.keys.values())), *filter(None, [self.shared])]


def reference_pages() -> dict[str, str]:
    """File name to text of every page of the reference, `domain.md` and so on."""
    sections = _sections()
    return {f"{kind}.md": _page(kind, sections) for kind in HEADS}


def _sections() -> dict[str, _Section]:
    """Model name to section, in the order in which a reader of the pages meets them."""
    models = {model.__name__: model for model in _descendants(Spec)}
    sections: dict[str, _Section] = {}

    def add(name: str, page: str) -> None:
        if name in sections:
            return
        sections[name] = section = _section(models[name], page)
        for below in section.below:
            add(below, page)

    for kind in HEADS:
        add(KINDS[kind].__name__, kind)
    return sections


def _descendants(model: type[Spec]) -> Iterator[type[Spec]]:
    for below in model.__subclasses__():
        yield below
        yield from _descendants(below)


def _section(model: type[Spec], page: str) -> _Section:
    schema = model.model_json_schema()
    if "$ref" in schema:  # a model that holds itself
        schema = schema["$defs"][model.__name__]
    # One that may also be written as a word has its keys in one of two choices.
    schema = next((part for part in (schema, *schema.get("anyOf", [])) if "properties" in part), {})
    parent = model.__mro__[1]
    shared = parent if issubclass(parent, Spec) and parent.model_fields else None
    inherited = shared.model_fields if shared else {}
    return _Section(
        model=model,
        page=page,
        keys={k: v for k, v in schema.get("properties", {}).items() if k not in inherited},
        required=frozenset(schema.get("required", [])),
        shared=shared.__name__ if shared else None,
    )


def _references(schema: Any) -> Iterator[str]:
    """Names of the models that a piece of JSON Schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _page(kind: str, sections: Mapping[str, _Section]) -> str:
    parts = [_NOTICE, HEADS[kind]]
    for section in sections.values():
        if section.page == kind:
            parts += [f"## {section.title}", inspect.cleandoc(section.model.__doc__ or "")]
            parts += filter(None, [_places(section, sections), _table(section, sections)])
    return "\n\n".join(parts) + "\n"


def _link(words: str, to: _Section, anchor: str, since: _Section) -> str:
    """A link from one section to another, which may stand on another page."""
    return f"[{words}]({'' if to.page == since.page else f'{to.page}.md'}#{anchor})"


def _places(section: _Section, sections: Mapping[str, _Section]) -> str:
    """Where a model is written: links to the keys that lead to it, or to the models that share it."""
    name = section.model.__name__
    under = [
        _link(f"{other.title}: `{key}`", other, other.anchor_of(key), section)
        for other in sections.values()
        for key, schema in other.keys.items()
        if name in _references(schema)
    ]
    by = [_link(s.title, s, s.anchor, section) for s in sections.values() if s.shared == name]
    places = [("Stands under", under), ("Shared by", by)]
    return "\n\n".join(f"{how} {', '.join(links)}." for how, links in places if links)


def _table(section: _Section, sections: Mapping[str, _Section]) -> str:
    def link(name: str) -> str:
        return _link(sections[name].title, sections[name], sections[name].anchor, section)

    rows = [
        f'| <a id="{section.anchor_of(key)}"></a>`{key}` | {_cell(type_words(schema, link))} '
        f"| {_cell(default_words(schema, required=key in section.required))} "
        f"| {_cell(schema.get('description', ''))} |"
        for key, schema in section.keys.items()
    ]
    table = "\n".join([_TABLE, *rows]) if rows else "It has no keys of its own: write `{}`."
    return f"{table}\n\nAnd the keys of {link(section.shared)}." if section.shared else table


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
