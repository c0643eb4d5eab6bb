"""What dialogues do, in a few lines: the same few for eight of them and for eight thousand."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.text import Text

from muarl.evaluate.removal import Removal
from muarl.evaluate.statistics import Interval
from muarl.evaluate.summary import EvalSummary
from muarl.observe import Snapshot

_KINDS = 6
_BAD = ("faults", "last fault")


def status(lines: dict[str, str]) -> Text:
    """Lines for a terminal, each cut at its width."""
    text = Text(no_wrap=True, overflow="ellipsis", end="")
    for name, line in lines.items():
        text.append(f"{name:<11}", style="dim")
        text.append(f"{line}\n", style="red" if name in _BAD else "")
    return text


def brief(phase: Snapshot) -> str:
    """A few words for a line of a log; "" where there are no dialogues."""
    t = phase.totals
    if not t.started:
        return ""
    words = [f"live {phase.live:,}", f"{phase.per_second(t.sampled_tokens):,.0f} tokens/s"]
    if t.scored:
        words.append(f"success {t.succeeded / t.scored:.3f}")
    if phase.faults:
        words.append(f"faults {sum(phase.faults.values()):,}")
    return "  ".join(words)


def in_words(figures: dict[str, Any]) -> str:
    """One line on a stretch of time that is over, from `Snapshot.figures`."""
    words = [
        f"{figures['sampled_tokens_per_s']:,.0f} tokens/s",
        f"{figures['messages_per_s']:,.1f} messages/s",
    ]
    if figures["in_flight_mean"] is not None:
        words.append(f"{figures['in_flight_mean']:,.1f} messages in flight")
    if figures["kv_use_mean"] is not None:
        words.append(f"engine memory {figures['kv_use_mean']:.0%}")
    if figures["loop_lag_p99_ms"] is not None:
        words.append(f"99th percentile of loop lag {figures['loop_lag_p99_ms']:,.1f} ms")
    faults = [f"{count:,} {kind}" for kind, count in figures["faults_by_kind"].items()]
    if faults:
        words.append(f"faults: {', '.join(faults)}; {figures['retried']:,} tried again")
    return ", ".join(words)


def endings(outcomes: dict[str, int]) -> str:
    """Why dialogues ended, the most frequent first, from `EvalSummary.outcomes`.

    Example:
        "ended: 38 completed, 2 truncated_turns"
    """
    ranked = sorted(outcomes.items(), key=lambda item: (-item[1], item[0]))
    return f"ended: {', '.join(f'{count:,} {outcome}' for outcome, count in ranked) or 'none'}"


def why_failed(failures: dict[str, int]) -> list[str]:
    """Kinds of failures, the most frequent first, from `EvalSummary.failures`; nothing for none.

    Example:
        "failed: 12 wrong_outcome, 3 rules_broken, 1 infrastructure"
    """
    kinds = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return [f"failed: {', '.join(f'{count:,} {kind}' for kind, count in kinds)}"] if kinds else []


def beside(summary: EvalSummary) -> list[str]:
    """What belongs beside a success: what it cannot say, what it leaves out, pass^k, and the means of metrics.

    Example:
        "2 of 30 tasks ever failed, too few for an interval of 95 %: ..."
        "40 of 114 scores leave something out: NL_ASSERTION was not judged"
        "pass^2 0.412 [0.330, 0.500], pass^4 0.300 [0.221, 0.389]"
        "share 0.871 [0.840, 0.902]"
    """
    lines = [summary.too_few] if summary.too_few else []
    lines += [
        f"{count:,} of {summary.n:,} scores leave something out: {caveat}"
        for caveat, count in summary.caveats.items()
    ]
    for name, shares in (("pass^", summary.pass_hat), ("pass@", summary.pass_at)):
        if shares:
            lines.append(", ".join(f"{name}{k} {share}" for k, share in shares.items()))
    return lines + [f"{name} {share}" for name, share in summary.metrics.items()]


def above(fields: dict[str, Any]) -> list[str]:
    """What stands beside a success, from `muarl.train.evaluation.beside_score`.

    Example:
        "above the floor 0.722 [0.660, 0.779]; the floor is 0.100 [0.074, 0.134]"
        "trained on: none found"
        "retail: above the floor 0.500 [0.311, 0.652]; the floor is 0.000 [0.000, 0.088]"
    """
    rows = {"": fields, **fields.get("floor_by_row", {})}
    own, *others = [[_above(name, row)] if row["floor"] else [] for name, row in rows.items()]
    return [
        *own,
        f"trained on: {fields['contamination']['says']}",
        *(each for row in others for each in row),
    ]


def _above(row: str, fields: dict[str, Any]) -> str:
    floor, share = (
        msgspec.convert(fields[name], Interval | None) for name in ("floor", "above_floor")
    )
    return f"{row}{row and ': '}above the floor {share or 'unknown'}; the floor is {floor}"


def took(summary: EvalSummary, observed: dict[str, Any]) -> str:
    """What a dialogue took, in a line.

    Example:
        "a dialogue took 4.6 turns and 88 tokens, a message 12 ms (median), 40 ms (99th percentile)"
    """
    turns, tokens = summary.turns.value, summary.sampled_tokens.value
    if turns is None or tokens is None:
        return "no dialogue was scored"
    words = f"a dialogue took {turns:.1f} turns and {tokens:,.0f} tokens"
    if (median := observed["message_p50_ms"]) is not None:
        most = observed["message_p99_ms"]
        words += f", a message {median:,.0f} ms (median), {most:,.0f} ms (99th percentile)"
    return words


def removals(removed: Removal) -> list[str]:
    """What user faults took out, from `EvalSummary.removed`; nothing where they took nothing.

    Example:
        "user faults: plain: 2 leak, 1 format; fickle: 1 early_stop"
        "  taken out: at most 0.500 of a task's dialogues (cancel-1), of 3 tasks some"
    """
    lines = []
    if removed.by_persona:
        kinds = [f"{who}: {_counts(counts)}" for who, counts in removed.by_persona.items()]
        lines.append(f"user faults: {'; '.join(kinds)}")
        worst = max(removed.by_task, key=lambda task: removed.by_task[task])
        lines.append(
            f"  taken out: at most {removed.by_task[worst]:.3f} of a task's dialogues ({worst}), "
            f"of {len(removed.by_task):,} tasks some"
        )
    if removed.resampled:
        lines.append(f"messages of users sampled again: {_counts(removed.resampled)}")
    return lines


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items())


def status_lines(phase: Snapshot, recent: Snapshot) -> dict[str, str]:
    """What dialogues do, name to line; none while there are no dialogues.

    Args:
        phase: What happened since the phase began.
        recent: What happened in the last seconds, for rates.
    """
    t = phase.totals
    if not t.started:
        return {}
    over = recent if phase.live else phase
    lines = {}
    if phase.live:
        lines["live"] = (
            f"{phase.live:,}: {phase.policy.now:,} at the policy, {phase.tools.now:,} at tools, "
            f"{phase.users.now:,} at users, {phase.between:,} between"
        )
    lines["ended"] = f"{t.final:,}, {t.groups:,} groups whole, {t.retried:,} attempts tried again"
    lines["rates"] = (
        f"{over.per_second(over.totals.sampled_tokens):,.0f} tokens/s, "
        f"{over.per_second(over.policy.done):,.1f} messages/s, "
        f"{over.per_second(over.totals.final):,.1f} dialogues/s"
    )
    if (load := phase.load) is not None:
        lines["engine"] = (
            f"{load.running:,} running, {load.waiting:,} waiting, memory {load.kv_use:.0%}, "
            f"{t.preemptions:,} preempted, window {phase.window:,}"
        )
    if len(over.loop_lag):
        median, high, most = (_ms(over.loop_lag.quantile(share)) for share in (0.5, 0.99, 1.0))
        lines["loop lag"] = f"median {median}, 99th percentile {high}, most {most}"
    if t.scored:
        lines["success"] = f"{t.succeeded / t.scored:.3f} of {t.scored:,} scored"
    if phase.faults:
        kinds = sorted(phase.faults.items(), key=lambda item: -item[1])
        said = [f"{count:,} {kind}" for kind, count in kinds[:_KINDS]]
        if len(kinds) > _KINDS:
            said.append(f"{sum(count for _, count in kinds[_KINDS:]):,} others")
        lines["faults"] = ", ".join(said)
        lines["last fault"] = phase.last_fault
    return lines


def _ms(seconds: float | None) -> str:
    return f"{1e3 * (seconds or 0.0):,.1f} ms"
