"""From MCP results to the text that the policy reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import CallToolResult, EmbeddedResource, ImageContent, TextContent
from mcp_types import TextResourceContents as TextResource

from muarl.tools.results import error_text, is_crash, result_text

LONG = 10_000


def texts(*parts: str, **fields: object) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=part) for part in parts], **fields)


def test_texts_are_joined_line_by_line() -> None:
    assert result_text(texts("one", "two"), LONG) == "one\ntwo"


def test_indented_json_loses_its_white_space_and_nothing_else() -> None:
    text = '{\n  "b": 1.0,\n  "a": [1e3, 123456789012345678901],\n  "s": "a  b\\u00e9é"\n}'
    wanted = '{"b":1.0,"a":[1e3,123456789012345678901],"s":"a  b\\u00e9é"}'
    assert result_text(texts(text), LONG) == wanted


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_compact_json_means_the_same(value: object) -> None:
    assert json.loads(result_text(texts(json.dumps(value, indent=2)), 10**9)) == value


@pytest.mark.parametrize(
    "text", ["[draft] call\n  back", "{a: 1}", '{"a": 1} {"b": 2}', "  spaced  out ", "[" * 10_000]
)
def test_what_is_not_json_stays_as_it_is(text: str) -> None:
    assert result_text(texts(text), 10**9) == text


@pytest.mark.parametrize(
    ("structured", "text"),
    [
        ({"result": []}, "[]"),
        ({"result": None}, "null"),
        ({"status": "shipped", "n": 1}, '{"status":"shipped","n":1}'),
    ],
)
def test_structured_content_stands_in_where_there_is_no_text(
    structured: dict[str, object], text: str
) -> None:
    assert result_text(texts(structured_content=structured), LONG) == text
    assert result_text(texts("said", structured_content=structured), LONG) == "said"


def test_other_content_is_named_or_read_where_it_is_text() -> None:
    image = ImageContent(type="image", data="aGk=", mime_type="image/png")
    note = EmbeddedResource(type="resource", resource=TextResource(uri="file://n", text="a note"))
    assert result_text(CallToolResult(content=[image, note]), LONG) == "[image not shown]\na note"


def test_a_long_result_is_cut_and_says_so() -> None:
    assert result_text(texts("x" * 50), 50) == "x" * 50
    cut = result_text(texts("x" * 51), 50)
    assert cut == "x" * 50 + "\n[cut: the first 50 of 51 characters]"
    assert error_text("t", texts("y" * 51), 50).startswith("y" * 50 + "\n[cut")


def test_a_text_that_cannot_be_encoded_is_mended() -> None:
    assert result_text(texts("a\ud800b"), LONG) == "a?b"
    assert error_text("t", texts("a\ud800b"), LONG) == "a?b"


def test_an_error_is_the_tools_own_message() -> None:
    assert error_text("get", texts("Error executing tool get: no order W1"), LONG) == "no order W1"
    assert error_text("get", texts("no order W1"), LONG) == "no order W1"
    assert error_text("get", texts(), LONG) == "tool 'get' failed"


def test_a_crash_names_the_tool_and_is_told_from_a_message() -> None:
    crash = texts("Error executing tool get", is_error=True)
    assert is_crash("get", crash)
    assert error_text("get", crash, LONG) == "tool 'get' failed"
    assert not is_crash("get", texts("Error executing tool get: no order", is_error=True))


def test_wrong_arguments_are_listed_without_types_urls_and_input() -> None:
    text = (
        "Error executing tool set: 3 validation errors for setArguments\n"
        "order\n  Field required [type=missing, input_value={'n': 'a'}, input_type=dict]\n"
        "    For further information visit https://errors.pydantic.dev/2.13/v/missing\n"
        "n\n  Input should be a valid integer, unable to parse string as an integer "
        "[type=int_parsing, input_value='a', input_type=str]\n"
        "    For further information visit https://errors.pydantic.dev/2.13/v/int_parsing\n"
        "items.0.sku\n  Value error, no such item [type=value_error, input_value='b', "
        "input_type=str]\n"
        "    For further information visit https://errors.pydantic.dev/2.13/v/value_error"
    )
    assert error_text("set", texts(text), LONG) == (
        "wrong arguments: order: Field required; n: Input should be a valid integer, unable to "
        "parse string as an integer; items.0.sku: Value error, no such item"
    )
