"""The perturbations of one dialogue: what lies around its user and its tool server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec import structs

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.perturb.catalogue import Catalogue
from muarl.perturb.dice import Dice
from muarl.perturb.failures import failure
from muarl.perturb.message import needed, perturbed
from muarl.record import Perturbed, UserReply
from muarl.spec import TaskSpec
from muarl.spec.perturb import PerturbSpec
from muarl.tools import ToolServer, ToolSession, sharing
from muarl.user import Device, User, hand_over
from muarl.world import World


class Perturbations:
    """What disturbs one dialogue. Use for one attempt.

    What the policy is offered is drawn from `offer_seed`, what happens to it from `seed`: the
    dialogues of a group may share the first, and with it their prompt.

    Args:
        spec: Rates.
        task: Of the dialogue; what it needs to the letter is left as it is.
        offer_seed: Of the list of tools.
        seed: Of messages and calls.
    """

    def __init__(self, spec: PerturbSpec, task: TaskSpec, *, offer_seed: int, seed: int) -> None:
        # A list that grows in a dialogue is left as it is: what came later would not fit into it.
        self._offer = Dice(spec if task.tools is None else PerturbSpec(), offer_seed)
        self._dice = Dice(spec, seed)
        self._needed = needed(task)
        self._catalogue: Catalogue | None = None

    @property
    def offered(self) -> list[Perturbed]:
        """What acted on the list of tools; nothing before there is one."""
        return [] if self._catalogue is None else self._catalogue.acted

    def true_name(self, name: str) -> str:
        """The server's name of a tool that the policy calls by `name`."""
        return name if self._catalogue is None else self._catalogue.true_name(name)

    def user(self, user: User) -> User:
        """A user whose messages reach the policy perturbed."""
        return _PerturbedUser(user, self._needed, self._dice)

    def server(self, server: ToolServer) -> ToolServer:
        """A server whose tools are shown and answer perturbed."""
        return _PerturbedServer(server, self)

    def catalogue(self, tools: tuple[ToolSpec, ...]) -> Catalogue:
        """The list of tools, drawn once the server's are known."""
        self._catalogue = Catalogue(tools, self._offer)
        return self._catalogue

    def failure(self, call: ToolCall, number: int) -> ToolResult | None:
        """What answers a call that fails on its way; None for one that does not."""
        return failure(call, number, self._dice)


class _PerturbedUser:
    """A `User` between whom and the policy something gets lost; she herself hears everything."""

    def __init__(self, user: User, kept: frozenset[str], dice: Dice) -> None:
        self._user = user
        self._kept = kept
        self._dice = dice
        self._said = 0

    def take(self, device: Device) -> None:
        """Have a device, if she knows how to use one."""
        hand_over(self._user, device)

    async def open(self) -> UserReply:
        return self._perturbed(await self._user.open())

    async def reply(self, agent_text: str) -> UserReply:
        return self._perturbed(await self._user.reply(agent_text))

    def _perturbed(self, reply: UserReply) -> UserReply:
        text, acted = perturbed(reply.text, self._said, self._kept, self._dice)
        self._said += 1
        if not acted:
            return reply
        return structs.replace(reply, text=text, perturbed=tuple(acted), meant=reply.text)


class _PerturbedServer:
    """A `ToolServer` whose sessions are perturbed."""

    def __init__(self, server: ToolServer, perturbations: Perturbations) -> None:
        self._server = server
        self._perturbations = perturbations

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _PerturbedSession(session, self._perturbations)

    def shared(self) -> AbstractAsyncContextManager[None]:
        """As of the server."""
        return sharing(self._server)


class _PerturbedSession:
    """A `ToolSession` that shows other tools than the server has, and loses calls on the way.

    Results bear the server's name of a tool, whatever the policy called it.
    """

    def __init__(self, session: ToolSession, perturbations: Perturbations) -> None:
        self._session = session
        self._perturbations = perturbations
        self._catalogue = perturbations.catalogue(session.tools)
        self.tools = self._catalogue.tools
        self._calls = 0

    async def call(self, call: ToolCall) -> ToolResult:
        number, self._calls = self._calls, self._calls + 1
        result = self._catalogue.refusal(call)
        if result is not None:
            return result
        meant = structs.replace(call, name=self._catalogue.true_name(call.name))
        failed = None if call.error is not None else self._perturbations.failure(meant, number)
        return await self._session.call(meant) if failed is None else failed
