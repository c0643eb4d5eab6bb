"""What an LLM user is told: who she is, why she writes, and how."""

from __future__ import annotations

from muarl.spec import PersonaSpec

STOP = "###STOP###"

_TALKS = "You can only talk. You cannot look anything up or do the assistant's work."
_ACTS = (
    "You have a device of your own, and tools to use it. What it shows you find out with them, and "
    "never guess. Use it when the assistant asks you to, or to see whether you have what you want; "
    "else leave it alone. The assistant cannot see it: tell it what it needs to know. You cannot do "
    "the assistant's work."
)

RULES = f"""\
How you write:
- One short chat message at a time, only the words you send: no label, no quotes, no comments.
- Begin with what you want, in your own words. Do not give everything at once: a detail is told \
when you are asked for it, or when it is plainly needed.
- What stands above is all you know. Make nothing up; asked for anything else, say that you don't \
know.
- {_TALKS}
- As soon as all you want is done, or has been refused for good, say so briefly and write {STOP} \
alone on the last line. Write it nowhere else and never before."""

_ROLE = """\
You play a person who writes to a company's chat service. The other side is its assistant. Stay \
this person until the chat ends, and never write the assistant's part.

Your manner: {manner}

Why you write:
{goal}
"""

_LENGTHS = {"usual": "", "terse": "You use few words.", "talkative": "You use many words."}


ACTING_RULES = RULES.replace(_TALKS, _ACTS)
"""Of a user who has a device."""


def role_of(
    persona: PersonaSpec, goal: str, directions: tuple[str, ...] = (), *, acts: bool = False
) -> str:
    """The system prompt of an LLM user.

    Args:
        persona: How she is.
        goal: What she wants, in words.
        directions: What else holds for the whole dialogue.
        acts: She has a device.
    """
    rules = ACTING_RULES if acts else RULES
    said = _ROLE.format(manner=manner_of(persona), goal="\n".join([goal, *persona.goals]))
    return "\n".join([said, rules, *(f"- {direction}" for direction in directions)])


def manner_of(persona: PersonaSpec) -> str:
    """How a persona is, in words.

    Example:
        "Friendly. You use few words. You write in a formal tone. You write in this language: fr."
    """
    said = [persona.style, _LENGTHS[persona.verbosity]]
    if persona.tone is not None:
        said.append(f"You write in a {persona.tone} tone.")
    if persona.language is not None:
        said.append(f"You write in this language: {persona.language}.")
    if persona.knowledge:
        said.append(f"What you know of such things: {persona.knowledge}")
    return " ".join(filter(None, said))
