"""Samples as a data set of verl's fine-tuning, token by token.

verl's own `MultiTurnSFTDataset` reads messages and tokenises them anew, so that what is learned from need
not be what was sampled. It takes another class by name, and this is one:

    data.train_files=samples.parquet
    data.custom_cls.path=pkg://muarl.data.export.verl_samples
    data.custom_cls.name=SampleDataset

for a file that `muarl export RUN --what samples --format parquet` wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from muarl.errors import SetupError


class SampleDataset(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Samples with the columns of verl's `MultiTurnSFTDataset`, which it calls with these arguments.

    Args:
        parquet_files: Files of `--what samples`, one or several.
        tokenizer: The model's; only its padding token is asked for.
        config: verl's `data`: `pad_mode` (`right` or `no_padding`), `max_length`, and `truncation`
            (`error`, `left` or `right`), as verl's own data set takes them.
        processor: None: samples are text.
        max_samples: The first so many; -1: all.

    Raises:
        SetupError: A file holds no samples, or a setting is none of these.
    """

    def __init__(
        self,
        parquet_files: Any,
        tokenizer: Any,
        config: Mapping[str, Any],
        processor: Any = None,
        max_samples: int = -1,
    ) -> None:
        del processor
        self._pad = tokenizer.pad_token_id or 0
        self._pad_mode = config.get("pad_mode", "right")
        self._max_length = config.get("max_length", 1024)
        self._truncation = config.get("truncation", "error")
        for key, value, choices in (
            ("pad_mode", self._pad_mode, ("right", "no_padding")),
            ("truncation", self._truncation, ("error", "left", "right")),
        ):
            if value not in choices:
                raise SetupError(f"data.{key} must be {' or '.join(choices)}, got {value!r}")
        files = [parquet_files] if isinstance(parquet_files, str) else list(parquet_files)
        table = pa.concat_tables([_read(str(file)) for file in files])
        self._rows = table if max_samples < 0 else table.slice(0, max_samples)

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        """One sample: `input_ids`, `loss_mask`, `position_ids`, and where padded `attention_mask`.

        Raises:
            SetupError: It is longer than `max_length`, and `truncation` is `error`.
        """
        ids = torch.tensor(self._rows["token_ids"][index].as_py(), dtype=torch.long)
        mask = torch.tensor(self._rows["loss_mask"][index].as_py(), dtype=torch.long)
        if len(ids) > self._max_length:
            if self._truncation == "error":
                raise SetupError(
                    f"sample {index} has {len(ids)} tokens, and data.max_length is "
                    f"{self._max_length}; raise it, or set data.truncation"
                )
            kept = slice(None, self._max_length)
            if self._truncation == "left":
                kept = slice(-self._max_length, None)
            ids, mask = ids[kept], mask[kept]
        length = len(ids)
        if self._pad_mode == "no_padding":
            return {"input_ids": ids, "position_ids": torch.arange(length), "loss_mask": mask}
        room = self._max_length - length
        pad = torch.nn.functional.pad
        return {
            "input_ids": pad(ids, (0, room), value=self._pad),
            "attention_mask": pad(torch.ones_like(ids), (0, room)),
            "position_ids": pad(torch.arange(length), (0, room)),
            "loss_mask": pad(mask, (0, room)),
        }


def _read(path: str) -> pa.Table:
    try:
        return pq.read_table(path, columns=["token_ids", "loss_mask"])
    except (OSError, pa.ArrowException) as error:
        raise SetupError(
            f"{path}: holds no samples ({error}); write it with `muarl export RUN --what samples "
            "--format parquet`"
        ) from error
