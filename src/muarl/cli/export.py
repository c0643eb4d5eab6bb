"""`muarl export RUN`: stored episodes as JSON lines, Parquet or a Hugging Face dataset.

`--what episodes` gives a row for each episode, with its conversation as chat messages; `--what
samples` a row for each token sequence, with loss mask, sampler log-probs, advantage and policy
versions, for trainers; of a synthesis only of what was kept. `--what dialogues` gives those that
`muarl synth` kept, as trainers of chat models read them: `messages` and `tools`, with provenance, licence and what each stood. `--what trl` gives
samples as TRL's SFTTrainer reads them, `--what prompts` the beginnings of dialogues as TRL's GRPOTrainer
and verl read prompts. `--what inspect` writes a log of inspect_ai, of one phase, which `inspect view`
shows. docs/records.md, docs/bridges.md and docs/synthesis.md describe every column. Parquet and datasets need the extra
`export`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import get_args

from muarl.cli._answer import answer
from muarl.cli._arguments import finite
from muarl.cli._stored import add_runs, files_of, spec_of, stored_episodes
from muarl.data.export.for_trainers import prompt_rows, trl_rows
from muarl.data.export.rows import Row, advantages, episode_rows, sample_rows
from muarl.errors import UsageError
from muarl.record import Episode, EpisodeKey, StoredEpisodes
from muarl.record.placing import placed
from muarl.spec.grpo import Baseline

_MARKERS = {"jsonl": None, "parquet": None, "hf": "dataset_info.json"}
"""Form to the file by which its folder is known; None: the form is one file."""

_ROWS: Mapping[str, Callable[[Iterable[Episode], Mapping[EpisodeKey, float]], Iterator[Row]]] = {
    "episodes": episode_rows,
    "samples": sample_rows,
    "trl": trl_rows,
    "prompts": prompt_rows,
}
"""What is exported to what makes its rows of episodes and advantages."""

_OF_TOKENS = ("samples", "trl")
"""Rows of token sequences: there is none of a fault, nor of what a synthesis refused."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_runs(parser)
    parser.add_argument(
        "--format", choices=_MARKERS, help="default: parquet for a file of that name, else jsonl"
    )
    parser.add_argument(
        "--what",
        choices=(*_ROWS, "dialogues", "inspect"),
        default="episodes",
        help="default: episodes",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="file to write; a folder for hf"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what is there already")
    parser.add_argument(
        "--min-reward", type=finite, metavar="R", help="leave out episodes that earned less"
    )
    parser.add_argument(
        "--baseline",
        choices=get_args(Baseline),
        help="what a reward is measured by, for advantages (default: as the run did)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Export, and say how much."""
    if args.format is None:
        args.format = "parquet" if args.out.suffix == ".parquet" else "jsonl"
    episodes = stored_episodes(args)
    if args.what == "inspect":
        return _export_inspect(args, episodes)
    write = _writer(args)  # a library that is missing is said before anything is read
    refused = _refused(args.runs) if args.what in _OF_TOKENS else set()
    chosen = _Chosen(episodes, args.min_reward, refused)
    rows = _dialogues(args, chosen) if args.what == "dialogues" else _rows(args, episodes, chosen)
    reads = files_of(args.runs)
    with placed(
        args.out, overwrite=args.overwrite, marker=_MARKERS[args.format], reads=reads
    ) as fresh:
        count = write(rows, fresh)
    credit = "" if args.what in ("dialogues", "prompts") else _credit(args.runs[0])
    left_out = chosen.left_out(args.what)
    if args.json:
        _answer_json(args, count, left_out=left_out, note=credit)
        return 0
    counted = "samples" if args.what in _OF_TOKENS else args.what
    answer("; ".join(filter(None, [f"{count} {counted} in {args.out}", _words(left_out), credit])))
    return 0


def _answer_json(args: argparse.Namespace, count: int, **more: object) -> None:
    about = {"out": str(args.out), "what": args.what, "format": args.format, "rows": count}
    answer(json.dumps(about | more))


def _words(left_out: Mapping[str, int]) -> str:
    parts = [f"{count} {why}" for why, count in left_out.items()]
    return f"left out: {', '.join(parts)}" if parts else ""


def _export_inspect(args: argparse.Namespace, episodes: StoredEpisodes) -> int:
    """Write one phase as a log of inspect_ai.

    Raises:
        UsageError: Another form was asked for, or there are several phases to choose from.
    """
    from muarl.data.export.inspect_log import inspect_header, inspect_samples, write_inspect

    if args.format != "jsonl" or args.min_reward is not None:
        raise UsageError("a log of inspect_ai is one JSON file of all episodes of a phase")
    heads = list(episodes.heads())
    phases = sorted({head.key.phase for head in heads})
    if len(phases) > 1:
        raise UsageError(
            f"a log of inspect_ai is of one model: choose with --phase; phases: {', '.join(phases)}"
        )
    elsewhere = next((episode.elsewhere for episode in episodes), "")
    created = datetime.fromtimestamp((args.runs[0] / "episodes.journal").stat().st_mtime, UTC)
    header = inspect_header(
        heads, phase=phases[0], model=elsewhere or f"muarl/{args.runs[0].name}", created=created
    )
    with placed(
        args.out, overwrite=args.overwrite, marker=None, reads=files_of(args.runs)
    ) as fresh:
        count = write_inspect(header, inspect_samples(episodes), fresh)
    if args.json:
        _answer_json(args, count, phase=phases[0])
    else:
        answer(f"{count} episodes of {phases[0]} in {args.out}")
    return 0


def _rows(args: argparse.Namespace, episodes: StoredEpisodes, chosen: _Chosen) -> Iterator[Row]:
    advantage = advantages(episodes.heads(), args.baseline or _baseline(args.runs[0]))
    return _ROWS[args.what](chosen, advantage)


def _dialogues(args: argparse.Namespace, chosen: _Chosen) -> Iterator[Row]:
    """Rows of one synthesis' folder.

    Raises:
        UsageError: Several folders were given.
        RecordError: The folder holds no verdicts.
    """
    from muarl.spec import SynthSpec, load_spec
    from muarl.synth.chat_rows import as_line, dialogue_rows
    from muarl.synth.verdicts import read_verdicts

    if len(args.runs) > 1:
        raise UsageError(
            "--what dialogues reads one folder, which says how its dialogues were made"
        )
    (run,) = args.runs
    verdicts = read_verdicts(run)
    spec = load_spec(run / "synth.yaml", SynthSpec).spec
    rows = dialogue_rows(chosen, verdicts, spec)
    return map(as_line, rows) if args.format == "jsonl" else rows


def _writer(args: argparse.Namespace) -> Callable[[Iterable[Row], Path], int]:
    if args.format == "jsonl":
        from muarl.data.export.jsonl import write_jsonl

        return write_jsonl
    from muarl.data.export.arrow import write_dataset, write_parquet

    if args.format == "parquet":
        return partial(write_parquet, what=args.what)
    import datasets  # noqa: F401

    return partial(write_dataset, what=args.what)


def _baseline(run: Path) -> Baseline:
    grpo = spec_of(run).spec.grpo
    return "std" if grpo is None else grpo.baseline


def _credit(run: Path) -> str:
    """That what an episode earned is not what its turns were trained with, in words."""
    grpo = spec_of(run).spec.grpo
    if grpo is None or not grpo.credit.weight:
        return ""
    return (
        f"advantages are those of the outcome, and not what the run's credit "
        f"({grpo.credit.name}) made of them for each turn"
    )


def _refused(runs: Iterable[Path]) -> set[EpisodeKey]:
    """What the verification of a synthesis left out, and nobody is to learn from."""
    from muarl.synth.verdicts import known_verdicts

    found = (verdict for run in runs for verdict in known_verdicts(run).values())
    return {verdict.key for verdict in found if not verdict.kept}


class _Chosen:
    """The episodes that earned enough, and were not refused; counts the others."""

    def __init__(
        self, episodes: StoredEpisodes, min_reward: float | None, refused: AbstractSet[EpisodeKey]
    ) -> None:
        self._episodes = episodes
        self._min_reward = min_reward
        self._refused = refused
        self._unkept = 0
        self._below = 0
        self._faults = 0

    def __iter__(self) -> Iterator[Episode]:
        for episode in self._episodes:
            if episode.key in self._refused:
                self._unkept += 1
                continue
            if self._min_reward is not None and (episode.reward or 0.0) < self._min_reward:
                self._below += 1
                continue
            self._faults += episode.outcome.is_fault
            yield episode

    def left_out(self, what: str) -> dict[str, int]:
        """Why something is not in the rows, in words, to how many."""
        counts = {
            "dialogues that were not kept": self._unkept,
            f"episodes earned less than {self._min_reward or 0:g}": self._below,
            "faults have nothing to learn from": self._faults if what in _OF_TOKENS else 0,
        }
        return {why: count for why, count in counts.items() if count}
