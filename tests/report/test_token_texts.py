from __future__ import annotations

import pytest
from synthetic_run import make_tokenizer

from muarl.errors import RecordError
from muarl.report.tokens import token_texts


def test_ids_become_the_text_they_stand_for(tmp_path):
    tokenizer = make_tokenizer(tmp_path / "tokenizer.json")
    ids = tokenizer.encode("<|im_start|>user order").ids
    texts = token_texts(tmp_path / "tokenizer.json", ids)
    assert "".join(texts[i] for i in ids) == "<|im_start|>user order"


def test_a_part_of_a_character_gets_the_tokenizers_name_for_it(tmp_path):
    tokenizer = make_tokenizer(tmp_path / "tokenizer.json")
    parts = tokenizer.encode("é").ids
    assert len(parts) == 2
    texts = token_texts(tmp_path / "tokenizer.json", parts)
    assert [texts[i] for i in parts] == ["Ã", "©"]


def test_ids_the_tokenizer_does_not_know_have_no_text(tmp_path):
    make_tokenizer(tmp_path / "tokenizer.json")
    assert token_texts(tmp_path / "tokenizer.json", [-1, 10**6, 2**40]) == {}


def test_a_file_that_is_no_tokenizer_is_named(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(RecordError, match=r"tokenizer\.json: not a tokenizer file"):
        token_texts(tmp_path / "tokenizer.json", [1])
