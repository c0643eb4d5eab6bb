#!/usr/bin/env bash
# usage: scripts/install-verifiers.sh VENV
# Installs verifiers 0.2 into VENV/verifiers, a folder that muarl looks into when a domain names an environment of
# theirs. With --no-deps: it asks for an older MCP SDK than muarl, and for much that no environment here needs.
set -euo pipefail
folder=$1/verifiers
rm -rf "$folder"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$folder" \
  "verifiers==0.2.1" "prime-sandboxes==0.2.31" "prime-tunnel==0.1.8" "connect-python==0.8.1" "pyqwest==0.12.0" \
  "aiofiles==25.1.0" "aiolimiter==1.3.0" "tenacity==9.2.1" "msgpack==1.2.4" "tomli-w==1.2.0" \
  "openai-agents==0.8.4" "griffe==1.15.0" "colorama==0.4.6" \
  "math-verify==0.9.0" "latex2sympy2-extended==1.11.0" "antlr4-python3-runtime==4.13.2"
PYTHONPATH=$folder "$1/bin/python" -c 'import verifiers as vf; vf.ToolEnv; print("verifiers", vf.__version__)'
