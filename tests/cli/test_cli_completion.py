"""`muarl completion`: a real shell completes by what is printed."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from bad_input import InProcess

from muarl.cli import VERBS, parser_of


def completed(script: str, *words: str) -> set[str]:
    """What bash would offer for the last of these words."""
    bash = shutil.which("bash")
    assert bash
    asking = (
        f"{script}\nCOMP_WORDS=({' '.join(map(repr, words))})\nCOMP_CWORD={len(words) - 1}\n"
        "$(complete -p muarl | sed 's/.*-F \\([^ ]*\\) .*/\\1/')\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    done = subprocess.run([bash, "-c", asking], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_verbs_options_and_choices(muarl: InProcess) -> None:
    script = muarl("completion", "bash").out
    assert completed(script, "muarl", "") >= set(VERBS)
    assert completed(script, "muarl", "re") == {"replay", "report", "review"}
    options = {
        option
        for action in parser_of("train")._actions
        for option in action.option_strings
        if option.startswith("--")
    }
    assert completed(script, "muarl", "train", "--") == options
    (template,) = [a for a in parser_of("init")._actions if "--template" in a.option_strings]
    offered = completed(script, "muarl", "init", "shop", "--template", "")
    assert offered == set(template.choices or ()) > {"python", "sql", "server"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_every_verb_is_in_every_script(muarl: InProcess, shell: str) -> None:
    said = muarl("completion", shell)
    assert said.code == 0
    assert all(verb in said.out for verb in VERBS)


def test_another_shell_is_refused_with_those_there_are(muarl: InProcess) -> None:
    said = muarl("completion", "ksh")
    assert said.code == 2
    assert "bash" in said.lines[-1]
