"""What a run did between two moments, in numbers."""

from __future__ import annotations

from typing import Any

import msgspec

from muarl.observe.durations import Durations
from muarl.policy import EngineLoad


class Activity(msgspec.Struct):
    """Something that dialogues wait for: a policy message, a tool call, a message of a user.

    Attributes:
        now: Dialogues that wait for one.
        done: How many came.
        failed: How many did not: a fault, a deadline, an end from outside.
    """

    now: int = 0
    done: int = 0
    failed: int = 0


class Totals(msgspec.Struct):
    """What only ever grows.

    Attributes:
        started: Attempts at dialogues that began.
        final: Attempts that gave an episode to keep, faults that outlasted their attempts included.
        retried: Faulty attempts that were, or will be, tried again.
        cut: Attempts that were live when the run ended.
        groups: Groups that became whole.
        scored: Final episodes with a reward.
        succeeded: Those of them that earned all of it.
        sampled_tokens: Tokens that the policy sampled, whatever became of them.
        kept_tokens: Sampled tokens in final episodes that are no faults.
        tool_errors: Tool calls that were answered with an error.
        preemptions: Messages that the engine threw out of its memory, as far as it says so.
        ticks: Samples taken of the run's state while dialogues were live.
        live_sum: Dialogues live, summed over ticks.
        in_flight_sum: Policy messages under way, likewise.
        waiting_sum: Messages waiting inside the engine, likewise.
        kv_use_sum: Share of the engine's key and value memory in use, likewise.
    """

    started: int = 0
    final: int = 0
    retried: int = 0
    cut: int = 0
    groups: int = 0
    scored: int = 0
    succeeded: int = 0
    sampled_tokens: int = 0
    kept_tokens: int = 0
    tool_errors: int = 0
    preemptions: int = 0
    ticks: int = 0
    live_sum: int = 0
    in_flight_sum: int = 0
    waiting_sum: int = 0
    kv_use_sum: float = 0.0


class Snapshot(msgspec.Struct, frozen=True):
    """The counters at one moment, or what happened between two.

    Attributes:
        seconds: Length of the stretch of time.
        live: Dialogues live at its end.
        totals: What happened in it.
        policy: Policy messages.
        tools: Tool calls.
        users: Messages of users, their first ones included.
        outcomes: Outcome to final episodes.
        faults: Kind of fault to attempts, those that were tried again included.
        message_s: How long policy messages took that came.
        loop_lag: How late the event loop woke a timer; its own grain, about 1 ms, included.
        load: What the engine last said of itself, where it says something.
        window: Dialogues that may be live, where the scheduler follows the engine.
        last_fault: Kind and words of the last fault, "" if there was none.
    """

    seconds: float
    live: int
    totals: Totals
    policy: Activity
    tools: Activity
    users: Activity
    outcomes: dict[str, int]
    faults: dict[str, int]
    message_s: Durations
    loop_lag: Durations
    load: EngineLoad | None
    window: int | None
    last_fault: str

    def since(self, earlier: Snapshot) -> Snapshot:
        """What happened after `earlier`. What is a state, not a count, is that of now."""
        return Snapshot(
            seconds=self.seconds - earlier.seconds,
            live=self.live,
            totals=_minus(self.totals, earlier.totals),
            policy=_activity(self.policy, earlier.policy),
            tools=_activity(self.tools, earlier.tools),
            users=_activity(self.users, earlier.users),
            outcomes=_fewer(self.outcomes, earlier.outcomes),
            faults=_fewer(self.faults, earlier.faults),
            message_s=self.message_s.since(earlier.message_s),
            loop_lag=self.loop_lag.since(earlier.loop_lag),
            load=self.load,
            window=self.window,
            last_fault=self.last_fault if self.faults != earlier.faults else "",
        )

    @property
    def between(self) -> int:
        """Live dialogues with nothing under way: they wait for a place, or for the event loop."""
        return max(self.live - self.policy.now - self.tools.now - self.users.now, 0)

    def per_second(self, count: int) -> float:
        """A count of this stretch of time as a rate."""
        return count / self.seconds if self.seconds > 0 else 0.0

    def figures(self) -> dict[str, Any]:
        """What is worth writing down of a stretch of time; None where nothing was measured."""
        t = self.totals
        lag = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        return {
            "attempts": t.started,
            "retried": t.retried,
            "faults_by_kind": dict(sorted(self.faults.items())),
            "messages": self.policy.done,
            "tool_calls": self.tools.done,
            "tool_errors": t.tool_errors,
            "user_replies": self.users.done,
            "sampled_tokens": t.sampled_tokens,
            "kept_tokens": t.kept_tokens,
            "sampled_tokens_per_s": self.per_second(t.sampled_tokens),
            "messages_per_s": self.per_second(self.policy.done),
            "live_mean": t.live_sum / t.ticks if t.ticks else None,
            "in_flight_mean": t.in_flight_sum / t.ticks if t.ticks else None,
            "queue_mean": t.waiting_sum / t.ticks if t.ticks and self.load else None,
            "kv_use_mean": t.kv_use_sum / t.ticks if t.ticks and self.load else None,
            "preemptions": t.preemptions if self.load else None,
            **{
                f"message_{name}_ms": _ms(self.message_s.quantile(share))
                for name, share in lag.items()
            },
            **{
                f"loop_lag_{name}_ms": _ms(self.loop_lag.quantile(share))
                for name, share in lag.items()
            },
        }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _minus(now: Totals, before: Totals) -> Totals:
    fields = Totals.__struct_fields__
    return Totals(*(getattr(now, name) - getattr(before, name) for name in fields))


def _activity(now: Activity, before: Activity) -> Activity:
    return Activity(now.now, now.done - before.done, now.failed - before.failed)


def _fewer(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    left = {name: count - before.get(name, 0) for name, count in now.items()}
    return {name: count for name, count in left.items() if count}
