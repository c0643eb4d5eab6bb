"""Users that an installed package provides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from msgspec import MsgspecError, msgpack, to_builtins

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import MuarlError, PluginError, UserError
from muarl.json_values import json_problem
from muarl.record import UserReply
from muarl.spec import DomainSpec, PersonaSpec, TaskSpec
from muarl.spec.plugged import PluggedUser
from muarl.spec.plugin import O, Plugin
from muarl.user.protocol import Device, User, hand_over


@dataclass(frozen=True)
class Scene:
    """What a user of one dialogue is made for.

    Attributes:
        task: What she wants.
        persona: How she is.
        persona_name: What the domain calls that.
        seed: Of her draws: the same seed, the same user.
        domain: The domain's file, with the language of its scripted users.
    """

    task: TaskSpec
    persona: PersonaSpec
    persona_name: str
    seed: int
    domain: DomainSpec


@dataclass(frozen=True)
class UserPlugin(Plugin[O]):
    """A kind of user, registered in the group `muarl.users`.

    Attributes:
        options: The model of what a spec may say to her.
        make: Makes the user of one dialogue, of options and scene. What is costly and shared, such as
            a client, should be held by the package, not by her. A user who can use a device has
            `take(device)` as well (`ActingUser`).
    """

    make: Callable[[O, Scene], User]

    group = "muarl.users"


def plugged_user(spec: PluggedUser, scene: Scene) -> User:
    """The user of one dialogue.

    Raises:
        PluginError: Her package raised, or made what is no user.
    """
    plugin = spec.registered(UserPlugin)
    whose = str(spec.provided)
    try:
        made = plugin.make(spec.options, scene)
    except RAISED as error:  # boundary: the package raises anything
        let_others_pass(error)
        of = f"task {scene.task.id!r} as {scene.persona_name!r}"
        raise PluginError(f"{whose} raised for {of}: {blame(error)}") from error
    lacking = [name for name in ("open", "reply") if not callable(getattr(made, name, None))]
    if lacking:
        raise PluginError(
            f"{whose} made a {type(made).__name__}, which is no user: it lacks "
            f"{' and '.join(f'`async def {name}`' for name in lacking)} (muarl.plugins.User)"
        )
    return _Hers(made, whose)


class _Hers:
    """A user whose code is another author's: what it raises is its fault, and said of it."""

    def __init__(self, user: User, whose: str) -> None:
        self._user = user
        self._whose = whose

    def take(self, device: Device) -> None:
        try:
            hand_over(self._user, device)
        except RAISED as error:
            raise self._fault("take", error) from error

    async def open(self) -> UserReply:
        return await self._said("open", self._user.open)

    async def reply(self, agent_text: str) -> UserReply:
        return await self._said("reply", lambda: self._user.reply(agent_text))

    async def _said(self, method: str, speak: Callable[[], Awaitable[UserReply]]) -> UserReply:
        try:
            reply = await speak()
        except MuarlError:
            raise
        except RAISED as error:  # boundary: the package raises anything
            raise self._fault(method, error) from error
        if not isinstance(reply, UserReply):
            got = type(reply).__name__
            raise UserError(
                f"{self._whose}: {method} returned a {got}, not a muarl.plugins.UserReply"
            )
        if not (isinstance(reply.text, str) and isinstance(reply.act, str)):
            raise UserError(f"{self._whose}: text and act of what {method} returned must be text")
        if problem := json_problem({"text": reply.text, "act": reply.act}):
            raise UserError(f"{self._whose}: what {method} returned is no text: {problem}")
        try:  # a record with another in it would be read by nobody
            msgpack.decode(msgpack.encode(reply), type=UserReply)
            problem = json_problem(to_builtins(reply))
        except (MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise UserError(
                f"{self._whose}: what {method} returned is no UserReply: {error}"
            ) from error
        if problem:
            raise UserError(f"{self._whose}: what {method} returned is no UserReply: {problem}")
        return reply

    def _fault(self, method: str, error: BaseException) -> UserError:
        let_others_pass(error)
        return UserError(f"{self._whose} raised in {method}: {blame(error)}")
