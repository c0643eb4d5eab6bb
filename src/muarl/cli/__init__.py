"""The command line: one file per verb, imported only when its verb is used."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from keyword import iskeyword
from typing import Any, NoReturn, Protocol

from muarl.cli._answer import answer, answering
from muarl.cli._endings import no_early_success
from muarl.cli._printable import printable
from muarl.cli._problems import in_lines
from muarl.cli._quiet import remarks_may_fail
from muarl.cli._signals import INTERRUPTED, terminable
from muarl.cli._telling import remark
from muarl.cli._warnings import warnings_in_lines
from muarl.errors import MuarlError, SetupError, SpecError, did_you_mean, leaves
from muarl.version import __version__

VERBS = {
    "init": "write a new domain that passes check, to begin from",
    "import": "a public benchmark's tasks, from your copy of it, as domains",
    "play": "be the user, or the agent, of a domain yourself",
    "serve": "serve a domain's tools to any MCP client",
    "tasks": "make tasks of a domain's goals, and say how they are balanced",
    "check": "prove a domain sound, without any model",
    "train": "cold start, GRPO and held-out evaluation, from one run file",
    "top": "where a run stands, from another terminal",
    "rollout": "run dialogues and keep their episodes",
    "draft": "let an LLM draft a domain from a brief, or tasks for one",
    "synth": "make dialogues for a cold start, and keep those that are verified",
    "review": "let people judge what synth made",
    "eval": "held-out success of a trained policy, with intervals",
    "compare": "evaluations that were played already, task by task",
    "score": "score stored episodes by the predicates of today",
    "replay": "rebuild world, reward and metrics of stored episodes, and compare",
    "overlap": "what two sets of tasks, dialogues or texts have in common",
    "users": "what simulated users are like, measured from their dialogues",
    "export": "stored episodes as JSON lines, Parquet or a Hugging Face dataset",
    "report": "write the HTML report of a run, or of several side by side",
    "view": "read a run's episodes in a browser, on this machine",
    "doctor": "what this machine has for muarl, and the command that adds what is missing",
    "completion": "a script by which a shell completes muarl's verbs and options",
    "schema": "write the JSON Schemas of spec files, for editors",
}
"""Verb to summary; the verb `x` lives in `muarl.cli.x`, and `import` in `muarl.cli.import_`."""

USAGE = 2
"""Exit code of wrong usage; an error's own is its `exit_code`."""

EXIT_CODES = """\
exit codes: 0 good; 1 a run failed, a check found something, or what is there was not replaced;
2 wrong spec or usage, such as a folder that is no run; 130 interrupted."""

_MAX_ARGUMENT = 4096
"""Characters; no path is longer, and no setting need be."""
_SHOWN = 60

_NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM)
"""What the system says of arguments that name no file because they cannot, or none that may be read."""

_EXTRAS = {
    **dict.fromkeys(("torch", "transformers", "safetensors", "numpy"), "train"),
    "vllm": "vllm",
    **dict.fromkeys(("pyarrow", "datasets"), "export"),
    "shtab": "completion",
}


class Verb(Protocol):
    """What the module of a verb offers; its docstring is the verb's help."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. May raise MuarlError, and KeyboardInterrupt when drained."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 good, 1 findings, 2 spec or usage, 130 Ctrl-C.

    Errors of muarl are printed without a traceback; any other exception is a bug and keeps its own.
    """
    with remarks_may_fail():
        return _main(list(sys.argv[1:] if argv is None else argv))


def _main(arguments: list[str]) -> int:
    verb, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    longest = max(arguments, key=len, default="")
    if len(longest) > _MAX_ARGUMENT:
        began = f"{longest[:_SHOWN]!r}... is {len(longest):,} characters long"
        return _fail(f"{began}; an argument has at most {_MAX_ARGUMENT:,}", USAGE)
    try:
        if verb in ("-h", "--help", "help"):
            answer(_help())
            return 0
        if verb in ("-V", "--version"):
            answer(f"muarl {__version__}")
            return 0
        if verb not in VERBS:
            hint = did_you_mean(verb, VERBS) or f"; verbs: {', '.join(VERBS)}"
            return _fail(f"unknown verb {verb!r}{hint}", USAGE)
        with terminable(), warnings_in_lines():
            return _dispatch(verb, rest)
    except (MuarlError, KeyboardInterrupt, BaseExceptionGroup) as error:
        return _report(error)
    except OSError as error:
        if error.errno not in _NO_PATH or not isinstance(error.filename, str):
            raise
        return _fail(f"{error.filename[:_SHOWN]}: {error.strerror}", USAGE)
    except Exception as error:
        if not _hides_an_interrupt(error):
            raise
        return _fail("interrupted", INTERRUPTED)


def _hides_an_interrupt(error: Exception) -> bool:
    """Whether pydantic was interrupted while it built a spec's class: its own error then quotes that."""
    return type(error).__name__ == "SchemaError" and "KeyboardInterrupt" in str(error)


def _dispatch(verb: str, rest: list[str]) -> int:
    try:
        module = _module(verb)
        try:
            args = _parsed(parser_of(verb), rest)
        except SystemExit as usage:  # argparse has printed the help, or what is wrong
            return USAGE if usage.code else 0
        with answering(), no_early_success():
            return module.run(args)
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise SetupError(
            f"muarl {verb} needs {package}. "
            f"Install it with `pip install 'muarl[{_EXTRAS[package]}]'`"
        ) from missing


def _parsed(parser: VerbParser, rest: list[str]) -> argparse.Namespace:
    """The arguments of a verb; several files may stand before, between and after its options."""
    # Intermixed, argparse forgets what `--` says of the words after it.
    intermixed = parser.get_default("files_anywhere") and "--" not in rest
    parse = parser.parse_known_intermixed_args if intermixed else parser.parse_known_args
    parser.typed = rest
    args, unknown = parse(rest)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{parser.option_like(unknown)}")
    given = vars(args)
    if given.get("resume") and given.get("overwrite"):
        parser.error("--resume goes on with what --overwrite removes; give one of them")
    return args


def _module(verb: str) -> Verb:
    name = f"{verb}_" if iskeyword(verb) else verb
    module: Verb = import_module(f"muarl.cli.{name}")
    return module


def parser_of(verb: str) -> VerbParser:
    """What reads a verb's arguments."""
    module = _module(verb)
    parser = VerbParser(
        prog=f"muarl {verb}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return parser


def parser_of_all() -> argparse.ArgumentParser:
    """One parser with every verb in it, for what describes the whole command line."""
    whole = argparse.ArgumentParser(prog="muarl", description="Train agents in conversations.")
    whole.add_argument("-V", "--version", action="store_true", help="print the version")
    verbs = whole.add_subparsers(parser_class=VerbParser)
    for verb, summary in VERBS.items():
        _module(verb).add_arguments(verbs.add_parser(verb, help=summary))
    return whole


class VerbParser(argparse.ArgumentParser):
    """Prints so that a terminal obeys nothing of what was typed, and knows its options.

    Attributes:
        typed: What is being parsed.
    """

    typed: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit; what is missing counts less than an option that there is not."""
        if "required" in message and (strange := self._strange()):
            message = f"unrecognized arguments: {' '.join(strange)}{self.option_like(strange)}"
        super().error(message)

    def _strange(self) -> list[str]:
        """What was typed that looks like an option and is none, nor the beginning of one."""
        words = [
            word.partition("=")[0] for word in takewhile(lambda word: word != "--", self.typed)
        ]
        known = tuple(self._option_string_actions)
        return [
            word
            for word in words
            if re.match(r"-[^\W\d]|--\w", word)
            and not any(option.startswith(word) for option in known)
            and (word.startswith("--") or word[:2] not in known)
        ]

    def _print_message(self, message: str, file: Any = None) -> None:
        super()._print_message(printable(message), file)

    def option_like(self, words: Sequence[str]) -> str:
        """What the first of `words` that looks like an option may have meant, for a message."""
        word = next((word for word in words if word.startswith("--")), "")
        named = {option.lstrip("-"): option for option in self._option_string_actions}
        # Without what all of them begin with, which says nothing.
        near = get_close_matches(word.partition("=")[0].lstrip("-"), named, n=1)
        return f"; did you mean {named[near[0]]!r}?" if near else ""


def _report(error: BaseException) -> int:
    """Print errors that are no bugs, in groups or not; re-raise if there is a bug among them."""
    found = list(dict.fromkeys(leaves(error)))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in found):
        return _fail("interrupted", INTERRUPTED)
    known = [leaf for leaf in found if isinstance(leaf, MuarlError)]
    if len(known) < len(found):
        raise error
    said = [leaf for leaf in known if not (isinstance(leaf, SpecError) and _is_said_beside())]
    for message in dict.fromkeys(map(_line, filter(str, said))):
        remark(message)
    return max(leaf.exit_code for leaf in known)


def _is_said_beside() -> bool:
    """Whether torchrun started this process beside another one, which finds the same in the same files."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("LOCAL_RANK", "0") != "0"


def _line(error: MuarlError) -> str:
    """Problems of specs begin with path:line:column, which terminals and editors can follow."""
    if isinstance(error, SpecError):
        return "\n".join(in_lines(error.problems, " (`muarl check --json` prints all)"))
    return f"muarl: {error}"


def _fail(message: str, code: int) -> int:
    remark(f"muarl: {message}")
    return code


def _help() -> str:
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items())
    return (
        "usage: muarl VERB ...\n\n"
        "Train language-model agents in conversations with simulated users and real tools.\n\n"
        f"verbs:\n{verbs}\n\n"
        "`muarl VERB --help` explains a verb; `muarl --version` prints the version.\n"
        f"{EXIT_CODES}"
    )
