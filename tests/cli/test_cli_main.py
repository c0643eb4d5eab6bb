"""The command line's frame: verbs, exit codes, and errors without tracebacks."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import types
from collections.abc import Callable

import pytest

from muarl import __version__, cli
from muarl.cli._running import run_interruptibly
from muarl.errors import MuarlError, Problem, SpecError
from muarl.scheduler.rounds import StopSignal

HEAVY = {"torch", "transformers", "vllm", "mcp", "anyio", "pydantic", "rich", "aiohttp"}


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], None]:
    """Install a verb `probe` that does what it is given."""

    def install(body: Callable[[], int]) -> None:
        module = types.ModuleType("muarl.cli.probe", "Probe.")
        module.add_arguments = lambda parser: parser.add_argument("--n", type=int)  # type: ignore[attr-defined]
        module.run = lambda args: body()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "muarl.cli.probe", module)
        monkeypatch.setitem(cli.VERBS, "probe", "probe")

    return install


def raising(error: BaseException) -> Callable[[], int]:
    def body() -> int:
        raise error

    return body


def test_help_lists_every_verb_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-h"], ["--help"]):
        assert cli.main(arguments) == 0
        out = capsys.readouterr().out
        for name, summary in cli.VERBS.items():
            assert f"{name} " in out
            assert summary in out
        assert "130 interrupted" in out


def test_every_verb_has_a_module_with_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in cli.VERBS:
        assert cli.main([name, "--help"]) == 0
        assert f"usage: muarl {name}" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"muarl {__version__}\n"


def test_help_is_fast_since_it_loads_little_and_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); from muarl.cli import main; main(['--help']); "
        "print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "muarl.cli" in loaded
    assert not loaded & HEAVY
    assert len(loaded) < 100, "a hundred modules take a tenth of a second"


def test_an_unknown_verb_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["schem"]) == 2
    assert capsys.readouterr().err == "muarl: unknown verb 'schem'; did you mean 'schema'?\n"
    assert cli.main(["zzz"]) == 2
    assert capsys.readouterr().err.startswith("muarl: unknown verb 'zzz'; verbs: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["report", "RUN", "--overwrte"],
            "unrecognized arguments: --overwrte; did you mean '--overwrite'?",
        ),
        (["export", "RUN", "--out=x", "--phse=train"], "--phse=train; did you mean '--phase'?"),
        (
            ["train", "a.yaml", "--resme", "b.yaml"],
            "unrecognized arguments: --resme b.yaml; did you mean '--resume'?",
        ),
        (["report", "RUN", "--zzzzzzzz"], "unrecognized arguments: --zzzzzzzz"),
        (["play", "--hepl"], "unrecognized arguments: --hepl; did you mean '--help'?"),
        (["rollout", "r.yaml", "--expret"], "arguments: --expret; did you mean '--expert'?"),
        (["review", "R", "--pge=x"], "unrecognized arguments: --pge; did you mean '--page'?"),
        (["doctor", "--xy"], "unrecognized arguments: --xy"),  # nothing like it but the dashes
        (["play", "-x"], "unrecognized arguments: -x"),
        (["play", "--seed", "-1"], "the following arguments are required: DOMAIN[/TASK]"),
        (["top", "RUN", "another"], "unrecognized arguments: another"),
        (["view", "RUN", "--port", "x"], "--port: must be a whole number from 0 to 65535, got 'x'"),
        (
            ["serve", "D", "--http", "-1"],
            "--http: must be a whole number from 0 to 65535, got '-1'",
        ),
        (["rollout", "--expert", "--episodes", "x"], "--episodes: must be a whole number, got 'x'"),
        (["export", "RUN", "--min-reward", "x"], "--min-reward: must be a number, got 'x'"),
        (["play", "D", "--seed", "1.5"], "--seed: must be a whole number, got '1.5'"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_could(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.endswith(f"{said}\n")


def test_wrong_usage_of_a_verb_exits_with_2(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(lambda: 0)
    assert cli.main(["probe", "--n", "x"]) == 2
    assert "argument --n: invalid int value: 'x'" in capsys.readouterr().err


@pytest.mark.parametrize("code", [0, 1])
def test_a_verb_decides_its_exit_code(verb: Callable[..., None], code: int) -> None:
    verb(lambda: code)
    assert cli.main(["probe"]) == code


def test_problems_of_specs_are_printed_as_places(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(SpecError([Problem("a.yaml", 3, 4, "bad"), Problem("a.yaml", 0, 0, "worse")])))
    assert cli.main(["probe"]) == 2
    assert capsys.readouterr().err == "a.yaml:3:4: bad\na.yaml: worse\n"


def test_an_error_of_muarl_is_one_line_and_exit_1(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(MuarlError("no endpoint")))
    assert cli.main(["probe"]) == 1
    assert capsys.readouterr().err == "muarl: no endpoint\n"


def test_what_a_terminal_would_obey_is_shown_and_not_obeyed(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(MuarlError("it answered 500: bad\x1b[2J\r\u202ex")))
    assert cli.main(["probe"]) == 1
    assert capsys.readouterr().err == "muarl: it answered 500: bad\\x1b[2J\\r\\u202ex\n"


def test_errors_in_groups_are_each_said_once(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    spec = SpecError([Problem("a.yaml", 1, 1, "bad")])
    inner = ExceptionGroup("inner", [MuarlError("down"), spec])
    verb(raising(ExceptionGroup("outer", [MuarlError("down"), inner])))
    assert cli.main(["probe"]) == 2
    assert capsys.readouterr().err == "muarl: down\na.yaml:1:1: bad\n"


def test_ctrl_c_exits_with_130(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb(raising(KeyboardInterrupt()))
    assert cli.main(["probe"]) == 130
    verb(raising(BaseExceptionGroup("group", [MuarlError("x"), KeyboardInterrupt()])))
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr().err == "muarl: interrupted\n" * 2


def test_an_interrupt_that_falls_into_the_building_of_a_spec_is_one(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    from pydantic_core import SchemaError

    said = 'Error building "model" validator:\n  SchemaError: Field "type":\n  KeyboardInterrupt: '
    verb(raising(SchemaError(said)))
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr().err == "muarl: interrupted\n"
    verb(raising(SchemaError('Error building "model" validator:\n  KeyError: a')))
    with pytest.raises(SchemaError):
        cli.main(["probe"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_falls_into_a_finalizer_before_the_run_is_not_lost(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(number)

    async def work(stop: StopSignal) -> None:
        raise AssertionError("the run began")

    def body() -> int:
        Finalized()
        run_interruptibly(work)
        return 0

    verb(body)
    assert cli.main(["probe"]) == 130
    assert capsys.readouterr().err == "muarl: interrupted\n"
    verb(lambda: 0)
    assert cli.main(["probe"]) == 0, "nothing is left of it"


def test_a_bug_keeps_its_traceback(verb: Callable[..., None]) -> None:
    verb(raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["probe"])
    verb(raising(ExceptionGroup("group", [MuarlError("x"), ZeroDivisionError()])))
    with pytest.raises(ExceptionGroup):
        cli.main(["probe"])


@pytest.mark.parametrize(
    ("package", "extra"),
    [
        ("torch", "train"),
        ("transformers.models", "train"),
        ("safetensors", "train"),
        ("vllm", "vllm"),
    ],
)
def test_a_missing_extra_names_the_command_that_installs_it(
    verb: Callable[..., None], capsys: pytest.CaptureFixture[str], package: str, extra: str
) -> None:
    verb(raising(ModuleNotFoundError(f"No module named {package!r}", name=package)))
    assert cli.main(["probe"]) == 1
    name = package.partition(".")[0]
    assert capsys.readouterr().err == (
        f"muarl: muarl probe needs {name}. Install it with `pip install 'muarl[{extra}]'`\n"
    )


def test_another_missing_module_is_a_bug(verb: Callable[..., None]) -> None:
    verb(raising(ModuleNotFoundError("No module named 'x'", name="x")))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["probe"])


def test_output_into_a_closed_pipe_is_no_traceback() -> None:
    code = (
        "import sys, muarl.cli as c, muarl.cli._answer as a\n"
        "class M:\n"
        "    def add_arguments(self, p: object) -> None: ...\n"
        "    def run(self, args: object) -> int:\n"
        "        while True: a.answer('x' * 100)\n"
        "sys.modules['muarl.cli.probe'] = M()\n"
        "c.VERBS['probe'] = ''\n"
        "sys.exit(c.main(['probe']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == ""


PROBE = """
import sys, muarl.cli as c, muarl.cli._answer as a
class M:
    def add_arguments(self, p): ...
    def run(self, args):
        {body}
        return 0
sys.modules['muarl.cli.probe'] = M()
c.VERBS['probe'] = ''
sys.exit(c.main([{verb!r}]))
"""


def in_a_shell(
    body: str, redirection: str, verb: str = "probe"
) -> subprocess.CompletedProcess[str]:
    """A process whose verb `probe` does this, with its streams led elsewhere."""
    command = ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable]
    command.append(PROBE.format(body=body, verb=verb))
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_cannot_be_written_costs_nothing_but_the_remarks(redirection: str) -> None:
    body = (
        "from muarl.cli._display import PlainProgress; from muarl.cli._standing import Course; "
        "from muarl.observe import Counters; PlainProgress(Course(Counters())).note('one'); print('two'); sys.stderr.write('three'); "
        "a.answer('done')"
    )
    done = in_a_shell(body, redirection)
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_what_the_encoding_of_stdout_lacks_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = in_a_shell("a.answer('r\\xe9sum\\xe9 \\u2501 1')", "")
    assert (done.returncode, done.stdout) == (0, "r\\xe9sum\\xe9 \\u2501 1\n"), done.stderr


@pytest.mark.parametrize("verb", ["probe", "--help", "--version"])
def test_a_stdout_that_cannot_be_written_is_one_line_and_exit_1(verb: str) -> None:
    done = in_a_shell("a.answer('done'); 1/0", ">/dev/full", verb)
    assert done.returncode == 1
    assert done.stderr == (
        "muarl: cannot print the answer (No space left on device). What was saved is safe: "
        "lead stdout elsewhere\n"
    )


def test_the_parser_of_a_verb_is_named_after_it(
    monkeypatch: pytest.MonkeyPatch, verb: Callable[..., None]
) -> None:
    verb(lambda: 0)
    seen: list[argparse.ArgumentParser] = []
    monkeypatch.setattr(sys.modules["muarl.cli.probe"], "add_arguments", seen.append)
    assert cli.main(["probe"]) == 0
    assert seen[0].prog == "muarl probe"
