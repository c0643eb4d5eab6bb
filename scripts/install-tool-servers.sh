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

install_npm() {
  command -v npm >/dev/null && npm install --prefix "$servers" --silent --no-audit --no-fund \
    --fetch-retries=2 @modelcontextprotocol/server-memory@2026.8.31 @modelcontextprotocol/sdk@1.30.0
}

if install_npm; then
  ln -sf "$servers/node_modules/.bin/mcp-server-memory" "$venv/bin/"
else
  echo "npm is not there or could not install: the tests of domains/contacts will be skipped" >&2
  echo "(to try again: remove $venv/.servers)" >&2
  [ -z "${MUARL_REQUIRE_TOOL_SERVERS:-}" ]
fi
