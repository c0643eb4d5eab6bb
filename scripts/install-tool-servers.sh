#!/usr/bin/env bash
# Usage: scripts/install-tool-servers.sh VENV
# Installs the published tool servers of domains/contacts and domains/tickets, pinned, in VENV/servers:
# they need another version of the MCP SDK than muarl. VENV/bin gets links to their programs.
set -euo pipefail

venv=$(realpath "${1:?folder of the environment}")
here=$(realpath "$(dirname "$0")/..")
servers=$venv/servers

"$venv/bin/python" -m venv "$servers"
"$servers/bin/python" -m pip install --quiet --disable-pip-version-check \
  --constraint <(grep -v '^mcp' "$here/constraints.txt") \
  mcp-server-sqlite==2025.4.25 mcp==1.30.0
ln -sf "$servers/bin/mcp-server-sqlite" "$venv/bin/"

if command -v npm >/dev/null; then
  npm install --prefix "$servers" --silent --no-audit --no-fund \
    @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/sdk@1.30.0
  ln -sf "$servers/node_modules/.bin/mcp-server-memory" "$venv/bin/"
else
  echo "npm is not installed: the tests of domains/contacts will be skipped" >&2
fi
