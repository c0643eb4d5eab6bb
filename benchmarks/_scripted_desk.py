"""The desk with a scripted policy: six turns, three of which call a tool. What needs no model.

Domain, MCP server, scripted user, renderer, rewards and journal are the real ones. Only the model
is not: its messages are known ahead, and it takes as long over each as a seeded draw says.
"""

from __future__ import annotations

import math
from pathlib import Path

import anyio
import anyio.lowlevel

from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.policy import GenerateRequest, Generation
from muarl.record import EpisodeKey
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler.dialogues import DialogueRunner, PolicyFor, episode_keys
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec

ROOT = Path(__file__).resolve().parent.parent
TURNS = 6
GROUP = 8
CALLS = 3


def script(order_id: str) -> list[Message]:
    """What the agent says: it asks, looks up, asks for a yes, cancels, looks again, is done."""

    def call(number: int, tool: str) -> Message:
        made = ToolCall(id=f"call_{number}", name=tool, arguments={"order_id": order_id})
        return Message(role="assistant", content="", tool_calls=(made,))

    def say(text: str) -> Message:
        return Message(role="assistant", content=text)

    return [
        say("Which order is it?"),
        call(1, "get_order"),
        say(f"Cancel {order_id}. Shall I go ahead?"),
        call(3, "cancel_order"),
        call(4, "get_order"),
        say("Done. Anything else?"),
    ]


class TimedPolicy:
    """Speaks for one dialogue; a message takes an exponential time, drawn from the request's seed.

    Attributes:
        slept_s: Seconds its messages took.
    """

    policy_version = 0

    def __init__(self, messages: list[list[int]], mean_s: float) -> None:
        self._messages = messages
        self._mean_s = mean_s
        self._said = 0
        self.slept_s = 0.0

    async def generate(self, request: GenerateRequest) -> Generation:
        ids = self._messages[self._said]
        self._said += 1
        if self._mean_s:
            # Seeds are uniform in [0, 2^63).
            seconds = -self._mean_s * math.log1p(-request.seed / 2**63)
            self.slept_s += seconds
            await anyio.sleep(seconds)
        else:
            await anyio.lowlevel.checkpoint()
        return Generation(list(ids), [-0.01 * (i + 1) for i in range(len(ids))], "stop", 0)


class ScriptedDesk:
    """The desk domain, its cancelling tasks, and a runner whose policy follows the script.

    Attributes:
        renderer: Of the policy's model.
        mean_s: Mean time of a message from now on; 0 takes none.
        policies: By episode, once its dialogue has begun.
    """

    def __init__(self, domain: Domain, renderer: Renderer) -> None:
        self.domain = domain
        self.renderer = renderer
        self.mean_s = 0.0
        self.tasks = [
            task.model_copy(update={"personas": ["terse"]})
            for task in domain.tasks("train")
            if _is_cancel(task)
        ]
        self._ids = {
            task.id: [self.renderer.encode_reply(message) for message in script(_order(task))]
            for task in self.tasks
        }
        self.policies: dict[EpisodeKey, TimedPolicy] = {}

    @classmethod
    async def load(cls) -> ScriptedDesk:
        """Load the domain, and train a tokenizer of the quickstart's size on its prompt."""
        domain = load_domain(ROOT / "domains" / "desk")
        by_bytes = Renderer(train_tokenizer([], vocab_size=300))
        opening = [Message("system", domain.spec.rules), Message("user", "hello, cancel it")]
        ids = by_bytes.start(opening, await domain.tools())
        texts = [by_bytes.tokenizer.decode(ids), *(m.content for m in script("A10"))] * 8
        return cls(domain, Renderer(train_tokenizer(texts, vocab_size=1024)))

    def keys(self, dialogues: int, *, seed: int, phase: str) -> list[EpisodeKey]:
        """Keys of so many dialogues in groups of 8; the tasks come round again as iterations."""
        groups = dialogues // GROUP
        return [
            key
            for lap, first in enumerate(range(0, groups, len(self.tasks)))
            for key in episode_keys(
                self.tasks[: groups - first],
                run_seed=seed,
                phase=phase,
                iteration=lap,
                group_size=GROUP,
            )
        ]

    def runner(self, policy_for: PolicyFor | None = None) -> DialogueRunner:
        """Runs the dialogues; `policy_for` may put something else in the policy's place."""
        return DialogueRunner(
            domain=self.domain,
            tasks=self.tasks,
            renderer=self.renderer,
            limits=RolloutSpec(max_turns=12, context_tokens=4096, deadline_s=3600),
            user=UserSpec(scripted=ScriptedUserSpec()),
            policy_for=policy_for or self.policy,
        )

    def policy(self, task: TaskSpec, key: EpisodeKey) -> TimedPolicy:
        """Who follows the script in one dialogue."""
        policy = self.policies[key] = TimedPolicy(self._ids[task.id], self.mean_s)
        return policy


def _is_cancel(task: TaskSpec) -> bool:
    """One request, to cancel an order that may be cancelled, by a user who keeps to it."""
    if task.user is None or len(task.user.requests) != 1 or len(task.gold) != 1:
        return False
    return task.user.requests[0].instead is None and task.gold[0].tool == "cancel_order"


def _order(task: TaskSpec) -> str:
    order_id: str = task.gold[0].arguments["order_id"]
    return order_id
