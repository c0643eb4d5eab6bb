#!/usr/bin/env bash
# usage: scripts/install-inspect.sh VENV
# Installs inspect_ai into VENV/inspect, an environment of its own, for it has many dependencies that muarl has
# no use for. A test lets it open the logs that `muarl export --what inspect` writes; writing them needs nothing.
set -euo pipefail
folder=$1/inspect
[ -x "$folder/bin/python" ] || "$1/bin/python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check "inspect_ai==0.3.285"
"$folder/bin/python" -c 'import inspect_ai; print("inspect_ai", inspect_ai.__version__)'
