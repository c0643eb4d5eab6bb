"""From a user's copy of BFCL to domains of muarl that run on our tools: one for each category.

Nothing is downloaded, and nothing of the copy is executed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.compat.bfcl.entries import CATEGORIES, Entry, read_entries
from muarl.compat.bfcl.imported import DOCS, ENTRIES, MAX_STEPS, ORIGIN
from muarl.compat.bfcl.prompting import PROMPT, Prompt, read_prompt
from muarl.compat.bfcl.sandbox import CLASSES
from muarl.compat.bfcl.tables import LONG, TABLES, constants
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.imported_folder import domain_yaml
from muarl.compat.upstream import Upstream, as_json, data_id
from muarl.errors import SetupError
from muarl.spec.schema import schema_files

VERSIONS: tuple[Version, ...] = ("v4", "v3")


class Function(msgspec.Struct, frozen=True):
    """What is needed of a function's description; the rest is kept as it is."""

    name: str
    description: str
    parameters: Mapping[str, Any]


_PACKAGES = ("", "bfcl_eval/", "site-packages/bfcl_eval/")
_CHECKOUT = "berkeley-function-call-leaderboard/"
_LAYOUTS = tuple(
    f"{checkout}{package}{part}"
    for checkout in ("", _CHECKOUT)
    for package in _PACKAGES
    for part in (".", "data")
)
_WRITES = {
    *("cd", "cp", "echo", "mkdir", "mv", "rm", "rmdir", "touch"),
    *("add_contact", "delete_message", "message_login", "send_message"),
    *("authenticate_twitter", "comment", "follow_user", "mention", "post_tweet", "retweet"),
    *("unfollow_user", "close_ticket", "create_ticket", "edit_ticket", "logout"),
    *("resolve_ticket", "ticket_login", "add_to_watchlist", "cancel_order", "fund_account"),
    *("make_transaction", "place_order", "remove_stock_from_watchlist", "trading_login"),
    *("trading_logout", "update_market_status", "update_stock_price", "withdraw_funds"),
    *("authenticate_travel", "book_flight", "cancel_booking", "get_credit_card_balance"),
    *("purchase_insurance", "register_credit_card", "retrieve_invoice", "set_budget_limit"),
    *("activateParkingBrake", "adjustClimateControl", "fillFuelTank", "get_current_speed"),
    *("get_outside_temperature_from_google", "get_outside_temperature_from_weather_com"),
    *("lockDoors", "pressBrakePedal", "releaseBrakePedal", "setCruiseControl", "setHeadlights"),
    *("set_navigation", "startEngine"),
}
"""Functions that change anything: also where one is, whether one is logged in, what is drawn next."""
_TOOLS_PY = '''\
"""Official BFCL multi-turn entries on muarl's own tools; written by `muarl import`."""

from muarl.compat.bfcl.imported import Imported

domain = Imported(__file__{prompted})
world, tasks, expert, reward = domain.world, domain.tasks, domain.expert, domain.reward
irrelevance, official, calls = domain.irrelevance, domain.official, domain.calls
{servers}
'''
_TOOLS, _PROMPTED = "tools.py", "prompted.py"
"""The Python of `domain.yaml`, and that of `prompted.yaml`."""
_OWN_WORDS = (
    "What a prompted model is told is worded by muarl: the copy that was imported has no "
    "constants/default_prompts.py."
)


def write_domains(
    source: Path,
    target: Path,
    *,
    version: Version | None = None,
    accept_unknown: bool = False,
    official_checker: bool = False,
    overwrite: bool = False,
) -> list[tuple[Path, str]]:
    """Write a folder for each category.

    Args:
        source: The copy: a checkout, the folder of the installed package, or the one above it.
        target: Where the folders are made.
        version: Which version it must be; None takes what is there.
        accept_unknown: Go on where a file is of no known version.
        official_checker: Dialogues are to be judged by the installed package, too.
        overwrite: Replace files of folders that are there already.

    Returns:
        The folders, and what each is.

    Raises:
        SetupError: The copy lacks something, or is of another or no known version; or nothing can be
            written.
    """
    copy = Upstream(source, _LAYOUTS, {})
    version = _version(copy, version)
    tables, long = constants(copy)
    copy.note(f"bfcl/{version}/{TABLES}", data_id(tables))
    copy.note(f"bfcl/{version}/{LONG}", data_id(long))
    docs = {name: _docs(copy, version, api.MODULE) for name, api in CLASSES.items()}
    prompt = read_prompt(copy, version)
    if prompt.official:
        copy.note(f"bfcl/{version}/{PROMPT}", data_id(msgspec.to_builtins(prompt)))
    entries = {category: _entries(copy, version, category) for category in CATEGORIES}
    if not accept_unknown:
        copy.refuse_unknown()
    origin = {
        "benchmark": "bfcl",
        "version": version,
        "official_checker": official_checker,
        "files": {
            name: {"id": content_id, "version": copy.versions(name)}
            for name, content_id in sorted(copy.read.items())
        },
    }
    shared = {DOCS: docs, TABLES: tables, LONG: long, ORIGIN: origin, PROMPT: prompt}
    known = copy.versions(f"bfcl/{version}/{_file(version, 'base')}") or "no known version"
    written = []
    try:
        for category, found in entries.items():
            folder = target / category.replace("_", "-")
            if folder.exists() and not overwrite:
                raise SetupError(f"{folder} is there already; replace its files with --overwrite")
            summary = f"BFCL {version.upper()} multi-turn, {category} ({known})."
            _write(folder, version, found, docs, shared, summary)
            written.append((folder, f"{summary} Tasks: test {len(found)}"))
    except OSError as error:
        raise SetupError(f"cannot write {error.filename or target}: {error.strerror}") from error
    return written


def _version(copy: Upstream, wanted: Version | None) -> Version:
    there = [version for version in VERSIONS if copy.has(_file(version, "base"))]
    if not there:
        raise SetupError(
            f"{copy.folder} has no {_file('v4', 'base')} and no {_file('v3', 'base')}: expected a "
            "checkout of gorilla, or the folder of the package bfcl-eval (2026.3.23 is V4, 2025.7.17 V3)"
        )
    if wanted is not None and wanted not in there:
        raise SetupError(
            f"{copy.folder} has the entries of {there[0].upper()}, not of {wanted.upper()}; "
            "name another copy, or leave --version out"
        )
    return wanted or there[0]


def _file(version: Version, category: str) -> str:
    return f"BFCL_{version}_multi_turn_{category}.json"


def _entries(copy: Upstream, version: Version, category: str) -> list[Entry]:
    file = _file(version, category)
    questions = copy.text(f"bfcl/{version}/{file}", file)
    answers = copy.text(f"bfcl/{version}/possible_answer/{file}", f"possible_answer/{file}")
    return read_entries(questions, answers, file)


def _docs(copy: Upstream, version: Version, module: str) -> list[dict[str, Any]]:
    file = f"multi_turn_func_doc/{module}.json"
    text = copy.text(f"bfcl/{version}/{file}", file)
    try:
        docs = [as_json(line, file) for line in text.splitlines() if line.strip()]
        for function in docs:
            msgspec.convert(function, Function)
        return docs
    except msgspec.ValidationError as error:
        raise SetupError(f"{file}: not a function a line: {error!r}") from None


def _write(
    folder: Path,
    version: Version,
    entries: Sequence[Entry],
    docs: Mapping[str, Any],
    shared: Mapping[str, Any],
    summary: str,
) -> None:
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (folder / "schemas" / name).write_text(text, encoding="utf-8")
    (folder / ENTRIES).write_bytes(msgspec.json.encode(entries))
    for name, value in shared.items():
        (folder / name).write_bytes(msgspec.json.encode(value))
    servers = "\n".join(f'{api.MODULE} = domain.server("{name}")' for name, api in CLASSES.items())
    for file, prompted in ((_TOOLS, ""), (_PROMPTED, ", prompted=True")):
        code = _TOOLS_PY.format(servers=servers, prompted=prompted)
        (folder / file).write_text(code, encoding="utf-8")
    spec = _spec(f"bfcl-{version}-{folder.name}", entries, docs, summary)
    (folder / "domain.yaml").write_text(domain_yaml(spec, _TOOLS), encoding="utf-8")
    (folder / "prompted.yaml").write_text(
        domain_yaml(_prompted(spec, shared[PROMPT]), _PROMPTED), encoding="utf-8"
    )


def _spec(
    name: str, entries: Sequence[Entry], docs: Mapping[str, Any], summary: str
) -> dict[str, Any]:
    """The domain's file; `{code}` stands for the name of its Python."""
    offered = [function["name"] for functions in docs.values() for function in functions]
    return {
        "version": 1,
        "id": name,
        "summary": summary,
        "rules": "",
        "tools": [
            {
                "name": class_name,
                "python": f"{{code}}:{api.MODULE}",
                "stateless": True,
                "verbatim": True,
                "max_result_chars": 200_000,
            }
            for class_name, api in CLASSES.items()
        ],
        "writes": [tool for tool in offered if tool in _WRITES],
        "max_steps": MAX_STEPS,
        "world": {"python": "{code}:world"},
        "tasks": {"python": "{code}:tasks", "splits": {"test": len(entries)}},
        "personas": {"official": {"style": "Says what the benchmark has written for her."}},
        "expert": "{code}:expert",
        "reward": [{"gold_world": True}],
        "benchmark": {
            "name": "BFCL",
            # Of one entry the user has a turn less than gold: no dialogue has as many turns.
            "unsolved": [e.id for e in entries if len(e.question) != len(e.ground_truth)],
        },
    }


def _prompted(spec: Mapping[str, Any], prompt: Prompt) -> dict[str, Any]:
    """The same for a model that writes its calls into its text."""
    differs = {} if prompt.official else {"differs": [_OWN_WORDS]}
    return {
        **spec,
        "id": f"{spec['id']}-prompted",
        "summary": f"{spec['summary']} The model writes its calls into its text.",
        "calls": {"text": {"convention": "{code}:calls"}},
        "benchmark": {**spec["benchmark"], **differs},
    }
