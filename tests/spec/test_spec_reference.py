"""The reference of spec keys is what the models say, leaves nothing out, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_spec_schema import all_models

from muarl.spec.base import Spec
from muarl.spec.reference import reference_pages
from muarl.spec.schema import KINDS
from muarl.spec.schema_words import default_words, type_words

COMMITTED = Path(__file__).parents[2] / "docs" / "reference"
PAGES = reference_pages()


def test_the_committed_reference_is_fresh() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in COMMITTED.iterdir()}
    assert committed == PAGES, "run `muarl schema --docs docs`"


def test_every_file_kind_has_a_page() -> None:
    assert set(PAGES) == {f"{kind}.md" for kind in KINDS}


@pytest.mark.parametrize("model", list(all_models()), ids=lambda model: model.__name__)
def test_every_key_of_a_model_is_explained_once(model: type[Spec]) -> None:
    text = "\n".join(PAGES.values())
    inherited = model.__mro__[1].model_fields if model.__mro__[1] is not Spec else {}
    for name, field in model.model_fields.items():
        if name not in inherited:
            key, meaning = field.alias or name, " ".join((field.description or "").split())
            rows = re.findall(
                rf'<a id="[\w-]+-{key}"></a>`{key}` \|.*\| (.*) \|$', text, re.MULTILINE
            )
            assert meaning.replace("|", "\\|") in rows


def test_links_lead_to_sections_and_keys_that_exist() -> None:
    anchors = {
        name: re.findall(r'<a id="([^"]+)">', text)
        + [
            title.lower().replace(" ", "-")
            for title in re.findall(r"^## (.*)$", text, re.MULTILINE)
        ]
        for name, text in PAGES.items()
    }
    for name, text in PAGES.items():
        assert len(set(anchors[name])) == len(anchors[name])
        links = re.findall(r"\]\(([\w.-]*)#([^)]+)\)", text)
        assert links
        for page, anchor in links:
            assert anchor in anchors[page or name], (name, page, anchor)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "number", "minimum": 0, "maximum": 1}, "number from 0 to 1"),
        ({"type": "number", "exclusiveMinimum": 0}, "number above 0"),
        (
            {"type": "integer", "minimum": 0, "multipleOf": 2},
            "whole number at least 0 in steps of 2",
        ),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, "list of text, not empty"),
        ({"enum": ["a", "b", "c"]}, "`a`, `b` or `c`"),
        ({"$ref": "#/$defs/Fact"}, "[Fact]"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, "text"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"}, "text or null"),
        (
            {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "boolean"}}]},
            "true or false; one, or a list",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            "mapping of text to whole number",
        ),
        ({}, "any value"),
    ],
)
def test_what_a_value_must_be_is_said_in_words(schema: dict[str, object], words: str) -> None:
    assert type_words(schema, lambda name: f"[{name}]") == words


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "optional"),
        ({"default": None}, "optional"),
        ({"default": "std"}, "`std`"),
        ({"default": ""}, '`""`'),
        ({"default": False}, "`false`"),
        ({"default": {"a": {"b": 1}, "c": None}}, "`{a: {b: 1}}`"),
    ],
)
def test_what_stands_for_a_key_left_out_is_said(schema: dict[str, object], words: str) -> None:
    assert default_words(schema, required=False) == words
    assert default_words(schema, required=True) == "required"
