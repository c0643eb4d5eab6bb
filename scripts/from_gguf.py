"""Unpack a quantised GGUF file into a folder that `model.path` of a run file names.

    pip install 'muarl[train,gguf]'
    python scripts/from_gguf.py MODEL.gguf FOLDER

The weights are dequantised into float32, which is how the trainer holds them: what the quantisation lost
stays lost, and the folder is several times as large as the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel


def unpack(file: Path, folder: Path) -> None:
    """Write config.json, model.safetensors, tokenizer.json and the chat template."""
    model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype="float32"
    )
    # It is no longer quantised, but says so still, and could not be saved.
    del model.config.quantization_config
    model.is_quantized, model.hf_quantizer = False, None
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    unpack(args.file, args.folder)


if __name__ == "__main__":
    main()
