"""What metrics look at: one dialogue, whoever held it.

The form of episodes' dialogues and of people's is the same, and it is the form of the JSON lines that
`muarl.measure.people` reads: what is measured of a simulator can be measured of the people it stands for.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from muarl.record.episode import Share
from muarl.spec.task import Disclosure


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that the user knows, or is asked for.

    Attributes:
        id: What it is, `order_id`.
        value: What she says when she tells it.
        disclose: Told unasked, only when asked for, or never.
        asked_by: Phrases of the agent that ask for it (case ignored), beside its name in a question.
        others: Other values that the slot may have: how a wrong one is known, where it is a word.
    """

    id: str
    value: str
    disclose: Disclosure = "volunteer"
    asked_by: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class ToolUse(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool that was used, or is to be.

    Attributes:
        tool: Its name.
        arguments: Its arguments.
        result: What it answered.
        failed: It answered with an error.
    """

    tool: str
    arguments: dict[str, Any] = {}
    result: str = ""
    failed: bool = False


class Goal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that she wants.

    Attributes:
        facts: What belongs to it.
        calls: What fulfils it; empty where it is to be refused.
        instead: Facts of what she may change it to, by the script.
    """

    facts: tuple[Fact, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    instead: tuple[Fact, ...] = ()


class Judgement(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a judge, a model or a person, found in a user's turn.

    Attributes:
        figure: A figure of the catalogue that is counted turn by turn, such as `role_flips`.
        turn: Which of the user's turns, from 0.
        holds: Whether it is so.
        evidence: The passage that shows it, word by word; a judgement that holds needs one.
    """

    figure: str
    turn: Annotated[int, msgspec.Meta(ge=0)]
    holds: bool
    evidence: str = ""


class Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one side said and did until the other spoke.

    Attributes:
        speaker: Whose line it is.
        text: What the other side read.
        act: What the user did, where she says it herself (the tag tier): a simulator's own word.
        stop: The user ended the dialogue with it.
        uses: Tools used since the other side spoke, in order.
        seconds: How long it took to come; None where nobody knows.
        cost: What it cost, in whatever currency the whole corpus uses; None likewise.
    """

    speaker: Literal["user", "agent"]
    text: str
    act: str = ""
    stop: bool = False
    uses: tuple[ToolUse, ...] = ()
    seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None
    cost: Annotated[float, msgspec.Meta(ge=0)] | None = None


class Transcript(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One dialogue. The user speaks first, and lines alternate.

    Attributes:
        id: Unique in its corpus.
        task: What it was about: intervals draw whole tasks.
        lines: Who said what.
        persona: As whom she speaks.
        user: Which user it was: a simulator's name, "person".
        policy: Which agent it was.
        group: Dialogues with equal groups share a baseline; "" for none.
        user_draw: Which draw of the user, where several dialogues share it; "" where none do.
        policy_draw: Likewise of the policy, where the design crosses the two.
        outcome: Why it ended, one of `muarl.record.Outcome`.
        reward: In [0, 1]; None where it was not scored.
        instruction: Her goal in words, as she was given it.
        facts: What she knows, requests apart.
        goals: What she wants, in order.
        phrases: Cue of the agent (`confirm`, `refuse`, `done`) to phrases that show it (case ignored),
            beside the patterns.
        changes_mind: Her script lets her change a request for its `instead`.
        told_to_change: How often she was made to change her mind, as a knob does it.
        sampled_tokens: Tokens of the policy's messages; None where nobody counted.
        judgements: What judges found.
    """

    id: str
    task: str
    lines: tuple[Line, ...]
    persona: str = ""
    user: str = ""
    policy: str = ""
    group: str = ""
    user_draw: str = ""
    policy_draw: str = ""
    outcome: str = "completed"
    reward: Share | None = None
    instruction: str = ""
    facts: tuple[Fact, ...] = ()
    goals: tuple[Goal, ...] = ()
    phrases: dict[str, tuple[str, ...]] = {}
    changes_mind: bool = False
    told_to_change: Annotated[int, msgspec.Meta(ge=0)] = 0
    sampled_tokens: int | None = None
    judgements: tuple[Judgement, ...] = ()
