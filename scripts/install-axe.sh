#!/usr/bin/env bash
# Usage: scripts/install-axe.sh VENV
# Installs axe-core, pinned, in VENV/axe: the audit of our pages' accessibility (tests/report).
set -euo pipefail

axe=$(realpath "${1:?folder of the environment}")/axe

if ! { command -v npm >/dev/null && npm install --prefix "$axe" --silent --no-audit --no-fund \
    --fetch-retries=2 axe-core@4.14.1; }; then
  echo "npm is not there or could not install: the audit of accessibility will be skipped" >&2
  [ -z "${MUARL_REQUIRE_AXE:-}" ]
fi
