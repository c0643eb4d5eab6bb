#!/usr/bin/env bash
# usage: scripts/install-inspect.sh [FOLDER]
# Installs inspect_ai into an environment of its own, by default `.venv-inspect`: a test lets it open the logs
# that `muarl export --what inspect` writes. Writing them does not need it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.venv-inspect}
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet "inspect_ai==0.3.285"
"$folder/bin/python" -c 'import inspect_ai; print("inspect_ai", inspect_ai.__version__)'
