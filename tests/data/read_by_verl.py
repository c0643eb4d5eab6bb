"""Run in a Python that has verl: reads what `muarl export` wrote, and says what its data sets made of it."""

from __future__ import annotations

import json
import sys

from omegaconf import OmegaConf
from torch.utils.data import DataLoader
from transformers import AutoTokenizer
from verl.utils.dataset.dataset_utils import SFTTensorCollator
from verl.utils.dataset.rl_dataset import RLHFDataset, get_dataset_class
from verl.utils.import_utils import load_extern_object

model, samples, prompts, folder = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(model)
tokenizer.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
found: dict[str, object] = {}
named = OmegaConf.create({"path": "pkg://muarl.data.export.verl_samples", "name": "SampleDataset"})
for mode in ("right", "no_padding"):
    config = OmegaConf.create({"pad_mode": mode, "max_length": 4096, "custom_cls": named})
    # As `verl.trainer.sft_trainer.create_sft_dataset` does, whose module needs what trains.
    data = load_extern_object(config.custom_cls.path, config.custom_cls.name)(
        parquet_files=samples, tokenizer=tokenizer, config=config, processor=None, max_samples=-1
    )
    batch = next(iter(DataLoader(data, batch_size=2, collate_fn=SFTTensorCollator(mode))))
    found[mode] = {
        "rows": [{key: value.tolist() for key, value in data[i].items()} for i in range(len(data))],
        "batch": list(batch["input_ids"].shape)
        if mode == "right"
        else batch["input_ids"].is_nested,
    }
config = OmegaConf.create(
    {"cache_dir": folder, "max_prompt_length": 4096, "filter_overlong_prompts_workers": 1}
)
assert get_dataset_class(config) is RLHFDataset
prompted = RLHFDataset(data_files=prompts, tokenizer=tokenizer, config=config)
rows = [prompted[i] for i in range(len(prompted))]
found["prompts"] = [
    {key: row[key] for key in ("raw_prompt", "data_source", "reward_model", "index", "extra_info")}
    for row in rows
]
sys.stdout.write("\n" + json.dumps(found))
