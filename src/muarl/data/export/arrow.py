"""Rows as Parquet files and Hugging Face datasets; needs the extra `export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from muarl.data.export.rows import Row
from muarl.record.saving import saving

What = Literal["episodes", "samples", "dialogues", "trl", "prompts"]

_ROWS_PER_BATCH = 256
"""Rows in memory at once, and in one row group: some megabytes of tokens."""

_IDENTITY = [
    ("run_seed", pa.int64()),
    ("phase", pa.string()),
    ("iteration", pa.int64()),
    ("task_id", pa.string()),
    ("sample", pa.int64()),
    ("domain", pa.string()),
    ("persona", pa.string()),
    ("user", pa.string()),
    ("split", pa.string()),
    ("outcome", pa.string()),
]
_SAMPLE = [
    *_IDENTITY,
    ("part", pa.int64()),
    ("reward", pa.float64()),
    ("advantage", pa.float64()),
]
_EXTRA_INFO = pa.struct(
    [
        ("index", pa.int64()),
        *((name, pa.string()) for name in ("split", "task_id", "task_hash", "persona", "tools")),
    ]
)
_RESULTS = pa.list_(
    pa.struct(
        [
            ("name", pa.string()),
            ("score", pa.float64()),
            ("reason", pa.string()),
            ("evidence", pa.string()),
            ("caveat", pa.string()),
        ]
    )
)
_CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())])),
    ]
)
_MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("reasoning_content", pa.string()),
        ("tool_calls", pa.list_(_CALL)),
        ("tool_call_id", pa.string()),
        ("name", pa.string()),
    ]
)
_CHANGE = pa.struct([(name, pa.string()) for name in ("path", "kind", "before", "after")])

_PROVENANCE = pa.struct(
    [
        ("made_by", pa.string()),
        ("domain", pa.string()),
        ("content_hash", pa.string()),
        ("split", pa.string()),
        ("task_id", pa.string()),
        ("task_hash", pa.string()),
        ("run_seed", pa.int64()),
        ("sample", pa.int64()),
        ("agent", pa.string()),
        ("user", pa.string()),
        ("persona", pa.string()),
    ]
)
_RULINGS = pa.list_(
    pa.struct(
        [
            ("judge", pa.string()),
            ("family", pa.string()),
            ("criterion", pa.string()),
            ("holds", pa.bool_()),
            ("evidence", pa.string()),
            ("reason", pa.string()),
        ]
    )
)
_REVIEWS = pa.list_(
    pa.struct([("reviewer", pa.string()), ("accepts", pa.bool_()), ("comment", pa.string())])
)
_VERIFICATION = pa.struct(
    [
        ("passed", pa.list_(pa.string())),
        ("reward", pa.float64()),
        ("rulings", _RULINGS),
        ("reviews", _REVIEWS),
    ]
)

SCHEMAS: dict[What, Any] = {
    "dialogues": pa.schema(
        [
            ("messages", pa.list_(_MESSAGE)),
            ("tools", pa.string()),
            ("licence", pa.string()),
            ("provenance", _PROVENANCE),
            ("verification", _VERIFICATION),
        ]
    ),
    "trl": pa.schema(
        [
            *_SAMPLE,
            ("input_ids", pa.list_(pa.int32())),
            ("labels", pa.list_(pa.int32())),
        ]
    ),
    "prompts": pa.schema(
        [
            ("prompt", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
            ("data_source", pa.string()),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", _EXTRA_INFO),
        ]
    ),
    "samples": pa.schema(
        [
            *_SAMPLE,
            ("token_ids", pa.list_(pa.int32())),
            ("loss_mask", pa.list_(pa.bool_())),
            ("sampler_logprobs", pa.list_(pa.float64())),
            ("policy_versions", pa.list_(pa.int32())),
        ]
    ),
    "episodes": pa.schema(
        [
            *_IDENTITY,
            ("task_hash", pa.string()),
            ("content_hash", pa.string()),
            ("fault", pa.string()),
            ("breach", pa.string()),
            ("error", pa.string()),
            ("reward", pa.float64()),
            ("advantage", pa.float64()),
            ("rewards", _RESULTS),
            ("metrics", _RESULTS),
            ("messages", pa.list_(_MESSAGE)),
            ("tools", pa.string()),
            ("changes", pa.list_(_CHANGE)),
            ("num_turns", pa.int64()),
            ("num_sampled", pa.int64()),
            ("num_forks", pa.int64()),
        ]
    ),
}
"""Columns of a row of each kind; the same, whatever the rows hold."""


def write_parquet(rows: Iterable[Row], path: Path, what: What) -> int:
    """Write one Parquet file; gives the number of rows.

    Raises:
        RecordError: The disk said no.
    """
    count = 0
    schema = SCHEMAS[what]
    with saving(path), pq.ParquetWriter(path, schema, compression="zstd") as to:
        for batch in _batches(rows, schema):
            to.write_batch(batch)
            count += batch.num_rows
    return count


def write_dataset(rows: Iterable[Row], folder: Path, what: What) -> int:
    """Write a folder that `datasets.load_from_disk` reads; gives the number of rows.

    Raises:
        RecordError: The disk said no.
    """
    from datasets import Dataset, disable_progress_bars

    disable_progress_bars()
    count = 0
    schema = SCHEMAS[what]
    stream = folder.with_name(f"{folder.name}.arrow")
    with saving(folder):
        with pa.OSFile(str(stream), "wb") as file, pa.ipc.new_stream(file, schema) as to:
            for batch in _batches(rows, schema):
                to.write_batch(batch)
                count += batch.num_rows
            if not count:  # the library reads no file without a batch
                to.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        # Mapped into memory, not read into it.
        Dataset.from_file(str(stream)).save_to_disk(str(folder), num_shards=None if count else 1)
        stream.unlink()
    return count


def _batches(rows: Iterable[Row], schema: Any) -> Iterator[Any]:
    rows = iter(rows)
    while batch := list(islice(rows, _ROWS_PER_BATCH)):
        encoded = pa.RecordBatch.from_pylist(batch, schema=schema)
        batch.clear()  # or it would stay until the next one is there
        yield encoded
