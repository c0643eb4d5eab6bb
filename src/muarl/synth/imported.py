"""Dialogues of a chat file as episodes to be imitated: rendered by the very path that rollouts take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from muarl.errors import TrainError
from muarl.messages import Message, ToolResult
from muarl.policy import Generation
from muarl.record import Episode, EpisodeKey, Outcome, Turn, UserReply
from muarl.render import Renderer
from muarl.side import Side
from muarl.synth.chat_file import ChatDialogue, read_chat

SPLIT = "imported"
"""Of their tasks, which are named as their file says, or by their line."""


def imported(
    path: Path,
    renderer: Renderer,
    *,
    run_seed: int,
    phase: str,
    count: int,
    context_tokens: int,
) -> list[Episode]:
    """The first `count` dialogues of a file, as far as they fit into the context.

    Raises:
        SpecError: The file cannot be read.
        TrainError: More than one in a hundred does not fit.
    """
    kept: list[Episode] = []
    dialogues = list(islice(read_chat(path), count))
    for number, dialogue in enumerate(dialogues):
        task = str(dialogue.provenance.get("task_id") or f"line-{number + 1}")
        episode = as_episode(dialogue, renderer, EpisodeKey(run_seed, phase, 0, task, number))
        if max(len(sample.token_ids) for sample in episode.samples) <= context_tokens:
            kept.append(episode)
    lost = len(dialogues) - len(kept)
    if lost * 100 > len(dialogues):
        raise TrainError(
            f"{lost} of {len(dialogues)} dialogues of {path} are longer than rollout.context_tokens "
            f"({context_tokens}); raise it, or leave them out of the file"
        )
    return kept


def as_episode(dialogue: ChatDialogue, renderer: Renderer, key: EpisodeKey) -> Episode:
    """A dialogue as it would have been sampled, without a world and without a reward.

    P rules, tools and user, A what the agent said, E what answered it:

        messages   system  user  assistant  tool  assistant
        token_ids  [P      P     A          E     A        ]
        loss_mask  [0      0     1          0     1        ]
    """
    first = 2 if dialogue.messages[0].role == "system" else 1
    history = list(dialogue.messages[:first])
    rest = dialogue.messages[first:]
    side = Side(renderer)
    side.begin(history, dialogue.tools)
    turns: list[Turn] = []
    at = 0
    while at < len(rest):
        message = rest[at]
        ids = renderer.encode_reply(message)
        generation = Generation(ids, [0.0] * len(ids), "stop", 0)
        sample, start, end = side.keep(generation)
        turn = Turn(message, sample, start, end, "stop", 0)
        turns.append(turn)
        answers = _answers(rest[at + 1 :])
        turn.results = [_result(one) for one in answers if one.role == "tool"]
        if answers and answers[0].role == "user":
            turn.reply = UserReply(answers[0].content)
        history += [message, *answers]
        at += 1 + len(answers)
        if at < len(rest):
            side.answer(answers, history, dialogue.tools)
    return Episode(
        key=key,
        domain=str(dialogue.provenance.get("domain", "")),
        persona=str(dialogue.provenance.get("persona", "")),
        split=SPLIT,
        task_hash="",
        system=history[0].content if first == 2 else "",
        opening=UserReply(dialogue.messages[first - 1].content),
        outcome=Outcome.COMPLETED,
        tools=list(dialogue.tools),
        turns=turns,
        samples=side.samples,
        forks=side.forks,
    )


def _answers(rest: Sequence[Message]) -> list[Message]:
    """What came before the agent spoke again."""
    found: list[Message] = []
    for message in rest:
        if message.role == "assistant":
            break
        found.append(message)
    return found


def _result(message: Message) -> ToolResult:
    return ToolResult(message.tool_call_id or "", message.name or "", message.content)
