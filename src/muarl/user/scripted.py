"""A scripted user: a flow over a fact ledger, with knobs and seeded wording.

What it knows is the task's ledger; what it tells unasked, on request or never is the ledger's word
unless the persona has its own. How it speaks is data: templates per act, split and persona. Same
seed and same messages, same user.
"""

from __future__ import annotations

import random
from dataclasses import replace

from muarl.errors import UserError
from muarl.record import UserReply
from muarl.spec import KnobsSpec, PersonaSpec, UserGoalSpec, UserScriptSpec
from muarl.spoken import may_say
from muarl.user.deeds import Unknown, do
from muarl.user.flow import Flow, Move
from muarl.user.knobs import BEHAVIOURS, Dice
from muarl.user.knobs.slips import slip
from muarl.user.protocol import Device
from muarl.user.words import Words


class ScriptedUser:
    """One dialogue's scripted user.

    Acts it tells apart in the policy's messages are the script's `understands`, tried in order:

    | the policy ...            | the user ...                                                   |
    |---------------------------|----------------------------------------------------------------|
    | `confirm`: asks for a yes | denies if the facts of her request are not named; changes her  |
    |                           | mind once, if persona and task say so; else confirms           |
    | `ask:<fact>`              | tells it, or says she does not know                            |
    | `do:<action>`             | does it on her device, and says what came of it                |
    | `refuse`                  | takes it (`accept_refusal`, else `next`), goes on to the next  |
    | `done`                    | goes on to her next request, or thanks and leaves              |
    | anything else             | says so; out of patience, she leaves (`abandon`)               |

    Knobs put other moves in the place of these; see `muarl.user.knobs`.
    """

    def __init__(
        self,
        script: UserScriptSpec,
        persona: PersonaSpec,
        goal: UserGoalSpec,
        split: str,
        rng: random.Random,
        *,
        knobs: KnobsSpec | None = None,
        seed: int = 0,
    ) -> None:
        """Prepare.

        Args:
            script: What she understands and how she speaks.
            persona: How she is.
            goal: What she wants and knows.
            split: Whose wordings she uses.
            rng: Draws her wordings.
            knobs: What she does beside that; default: the persona's.
            seed: What her knobs draw from, whatever her wordings draw.
        """
        script = script.heard_by(persona)
        self._dice = Dice(persona.knobs if knobs is None else knobs, seed)
        self._flow = Flow(script, persona, goal, split, self._dice, BEHAVIOURS)
        self._words = Words(script, persona, split, rng)
        self._script = script
        self._never_says = goal.never_says
        self._device: Device | None = None
        self._deeds = 0

    def take(self, device: Device) -> None:
        self._device = device

    async def open(self) -> UserReply:
        return self._reply(self._flow.open())

    async def reply(self, agent_text: str) -> UserReply:
        move = self._flow.hear(agent_text)
        if move.act.startswith("do:"):
            move = await self._done(move, move.act.removeprefix("do:"))
        return self._reply(move)

    async def _done(self, move: Move, action: str) -> Move:
        """Do what she is asked to; the move that tells of it.

        Raises:
            UserError: She has no device.
        """
        if self._device is None:
            raise UserError(f"she is to do {action!r}, and was given no device")
        self._deeds += 1
        spec = self._script.actions[action]
        try:
            well, told = await do(self._device, spec, self._flow.facts(), f"{action}_{self._deeds}")
        except Unknown:
            return self._flow.move("unknown")
        act = f"{'did' if well else 'failed'}:{action}"
        return replace(move, act=act, known={**move.known, **told})

    def _reply(self, move: Move) -> UserReply:
        text = slip(self._words.say(move), self._flow.values, self._dice)
        for never in self._never_says:
            if may_say(text, never):
                raise UserError(f"her words for {move.act!r} hold {never!r}", "forbidden")
        knobs, chances = self._dice.taken()
        return UserReply(text, move.stop, move.act, knobs, chances)
