"""The finished, immutable record of a dialogue."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec

from muarl.errors import RecordError
from muarl.messages import ToolSpec
from muarl.record.key import EpisodeKey, Outcome
from muarl.record.sample import Sample
from muarl.record.turn import NOT_MADE, UNLISTED, Perturbed, Turn, UserReply
from muarl.world import Change

RECORD_VERSION = 6
"""2: what a user called on a device of her own. 3: perturbations. 4: tokens of a user who is a
model. 5: agents with loops of their own; agents behind an endpoint, whose tokens are unknown. 6: which of
several calls changed what. What reads 6 reads all before."""

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0 + 1e-6)]
"""In [0, 1], which a sum of weights may miss by its rounding; checked as a record is read."""


class EpisodeHead(msgspec.Struct, frozen=True):
    """What of a stored episode can be read without reading its dialogue.

    Attributes:
        key: Identity.
        outcome: Why it ended.
        reward: In [0, 1]; None for faults.
        effect: What it changed outside its own world, if anything.
        domain: Domain id.
        split: Split of the task.
        task_hash: Hash of the task's situation.
        system: The system prompt's text.
    """

    key: EpisodeKey
    outcome: Outcome
    reward: Share | None = None
    effect: str | None = None
    domain: str = ""
    split: str = ""
    task_hash: str = ""
    system: str = ""


class PredicateResult(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What one predicate found.

    Attributes:
        name: The predicate, as written in the spec.
        score: In [0, 1]; None where a metric does not apply to this episode.
        reason: Why, in words a person can check.
        evidence: The passage of the dialogue that it was decided by, word by word; "" for none.
        caveat: What the score leaves out, such as a part that nobody judged; "" for nothing.
    """

    name: str
    score: Share | None
    reason: str
    evidence: str = ""
    caveat: str = ""


class Episode(msgspec.Struct, omit_defaults=True):
    """A dialogue from first to last, with its tokens and its reward.

    Nothing of the clock and nothing of the machine is in it: the same seed on a deterministic
    engine gives the same bytes (law L5).

    Attributes:
        key: Identity and seed.
        domain: Domain id.
        persona: Persona id the user spoke as.
        user: Which of the run's users she was, where the run has several.
        split: Split of the task.
        task_hash: Hash of the task's situation: same id, other text shows.
        content_hash: Hash of all that the dialogue and its reward followed from in the domain:
            rules, users, world, code, predicates, and the whole task.
        system: The system prompt's text.
        tools: Tools the policy was offered, those included that were shown on the way (`UserReply.shows`).
        perturbed: What acted on them. What acted on messages and calls is in these.
        user_tools: Tools the user had on her own device.
        opening: The user's first message.
        turns: In order.
        samples: Training samples, one per unbroken prefix.
        outcome: Why it ended.
        fault: Kind of fault: the error's name in `muarl.errors`, such as "PolicyError".
        breach: Of a user fault: which part of her contract the user broke, where that is known.
        error: What failed, for faults, and in parentheses of which dialogue and which wait.
        effect: The first call that changed something outside the dialogue's own world, if any:
            with it, a fault is not tried again.
        reward: In [0, 1]; None for faults.
        rewards: Results of the reward's predicates.
        metrics: Results of predicates that are only observed.
        axes: Where its task lies among the tasks, as far as the task says (`TaskSpec.axes`).
        start: What the tool servers' own state was before the dialogue, as changes of the task's world.
        changes: The final world against the initial one.
        forks: How often a prefix broke (0 for an append-only template and one conversation).
        notes: What an agent's own loop noted.
        user_samples: Of a user who is a model: what she was sent and what she sampled and said, as
            `samples` for the policy; see `muarl.model_user`.
        user_rejected: What she sampled and her guards threw away: prompt and message, a sample each.
        user_forks: As `forks`, of hers.
        record_version: Version of this record's form.
    """

    key: EpisodeKey
    domain: str
    persona: str
    split: str
    task_hash: str
    system: str
    opening: UserReply
    outcome: Outcome
    tools: list[ToolSpec] = []
    user_tools: list[ToolSpec] = []
    turns: list[Turn] = []
    samples: list[Sample] = []
    fault: str | None = None
    breach: str | None = None
    error: str | None = None
    effect: str | None = None
    reward: Share | None = None
    rewards: list[PredicateResult] = []
    metrics: list[PredicateResult] = []
    start: list[Change] = []
    changes: list[Change] = []
    forks: int = 0
    content_hash: str = ""
    user: str = ""
    perturbed: list[Perturbed] = []
    user_samples: list[Sample] = []
    user_rejected: list[Sample] = []
    user_forks: int = 0
    axes: dict[str, int] = {}
    notes: dict[str, Any] = {}
    # A factory, because `omit_defaults` would leave a plain default out of the record, and a later
    # muarl would then take every old record for one of its own version.
    record_version: int = msgspec.field(default_factory=lambda: RECORD_VERSION)

    @property
    def num_sampled(self) -> int:
        """Tokens the policy sampled in the whole episode."""
        return sum(sample.num_sampled for sample in self.samples)

    @property
    def elsewhere(self) -> str:
        """The model behind an endpoint that played the agent: nothing in the episode can be trained on.

        "" where the agent was sampled here, or is rules.
        """
        return next((turn.usage.model for turn in self.turns if turn.usage is not None), "")

    def require_tokens(self) -> None:
        """Refuse to be trained on where there is nothing to train on.

        Raises:
            RecordError: A model behind an endpoint played the agent.
        """
        if self.elsewhere:
            raise RecordError(
                f"{self.key} was played by {self.elsewhere!r} behind a chat endpoint: its tokens and "
                "log-probs are unknown, so it cannot be trained on. Its dialogue can be exported with "
                "--what episodes"
            )

    @property
    def cause(self) -> str:
        """Of a fault: `error` without its place, the same for all dialogues that fail alike."""
        return (self.error or self.outcome.value).partition(f" (in {self.key}")[0]

    def calls(self) -> list[tuple[str, dict[str, Any], bool]]:
        """The policy's tool calls in order: tool, arguments, whether the answer was an error."""
        return [
            (result.name, call.arguments, result.is_error)
            for turn in self.turns
            for call, result in zip(turn.calls, turn.results, strict=False)
        ]

    def replies(self) -> list[UserReply]:
        """All that the user said and did, in order."""
        return [self.opening, *(turn.reply for turn in self.turns if turn.reply is not None)]

    def perturbations(self) -> Counter[str]:
        """Kinds of perturbation that acted, and how often: on a tool, a message or a call."""
        found = Counter(perturbed.kind for perturbed in self.perturbed)
        # What answers for a decoy, or for a name that is not listed, acted on the list already.
        of_list = {"", UNLISTED, NOT_MADE, *found}
        found.update(kind for reply in self.replies() for kind in reply.perturbed)
        answers = (result.instead for turn in self.turns for result in turn.results)
        found.update(kind for kind in answers if kind not in of_list)
        return found

    def user_calls(self) -> list[tuple[str, dict[str, Any], bool]]:
        """As `calls`, of the user's own calls."""
        return [
            (call.name, call.arguments, result.is_error)
            for reply in self.replies()
            for call, result in zip(reply.calls, reply.results, strict=False)
        ]
