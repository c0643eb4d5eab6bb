"""Run in a Python that has TRL: reads what `muarl export` wrote, and says what its trainers made of it."""

from __future__ import annotations

import json
import sys
import tempfile

from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

model, samples, prompts = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(model)
tokenizer.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
with tempfile.TemporaryDirectory() as folder:
    quiet = {
        "output_dir": folder,
        "max_steps": 1,
        "use_cpu": True,
        "bf16": False,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "gradient_checkpointing": False,
    }
    sft = SFTTrainer(
        AutoModelForCausalLM.from_pretrained(model),
        SFTConfig(**quiet, max_length=None, per_device_train_batch_size=2),
        train_dataset=load_dataset("json", data_files=samples, split="train"),
        processing_class=tokenizer,
    )
    batch = sft.data_collator([sft.train_dataset[0], sft.train_dataset[1]])
    loss = sft.train().training_loss

    told: list[dict[str, list[object]]] = []

    def reward(completions: list[object], **columns: list[object]) -> list[float]:
        told.append(columns)
        return [float(i) for i in range(len(completions))]

    grpo = GRPOTrainer(
        AutoModelForCausalLM.from_pretrained(model),
        reward,
        GRPOConfig(
            **quiet, num_generations=2, per_device_train_batch_size=2, max_completion_length=3
        ),
        train_dataset=load_dataset("json", data_files=prompts, split="train"),
        processing_class=tokenizer,
    )
    grpo.train()
    sys.stdout.write(
        "\n"
        + json.dumps(
            {
                "rows": [
                    {key: row[key] for key in ("input_ids", "labels")} for row in sft.train_dataset
                ],
                "batch_labels": batch["labels"].tolist(),
                "loss": loss,
                "prompt_roles": [message["role"] for message in told[0]["prompts"][0]],
                "data_source": told[0]["data_source"][0],
                "ground_truth": told[0]["reward_model"][0]["ground_truth"],
                "steps": grpo.state.global_step,
            }
        )
    )
