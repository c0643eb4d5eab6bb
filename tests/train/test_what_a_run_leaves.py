"""Folders of models that a run leaves are what transformers makes of them too."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import torch
from short_run import ready_model, write_run
from transformers import AutoModelForCausalLM, AutoTokenizer

from muarl.kernel.model import load_model
from muarl.render import TextTokenizer
from muarl.spec import load_run
from muarl.suite import load_domain_of
from muarl.train.models import open_model


def test_transformers_loads_model_and_tokenizer_as_they_are() -> None:
    folder = ready_model()["path"]
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ours = TextTokenizer.load(Path(folder))
    assert len(tokenizer) == ours.vocab_size <= model.config.vocab_size
    ids = tokenizer("Cancel order A10, please.", return_tensors="pt").input_ids
    assert ids[0].tolist() == ours.encode("Cancel order A10, please.", add_special_tokens=False)
    with torch.no_grad():
        theirs = model(ids).logits
        assert torch.equal(theirs, load_model(Path(folder))(ids).logits)
    assert tokenizer.eos_token_id == ours.eos_token_id


def test_a_model_s_chat_template_stays_with_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ready_model()["path"], source)
    template = "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}"
    (source / "chat_template.jinja").write_text(template)
    located = load_run(write_run(tmp_path, model={"path": "source"}))
    out = tmp_path / "out" / "model"
    anyio.run(open_model, load_domain_of(located), located, out)
    shutil.rmtree(source)
    tokenizer = AutoTokenizer.from_pretrained(out)
    said = [{"role": "user", "content": "hello"}]
    assert tokenizer.apply_chat_template(said, tokenize=False) == "[user: hello]"
