#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Uses coffer mcp with the official TypeScript clients and the Inspector, and wraps the reference servers.
#   scripts/mcp_clients.sh DIRECTORY COFFER    the packages are installed below DIRECTORY
# Without Node.js, npm or a network it is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
program=$(realpath "$2")
# shellcheck source=scripts/npm_lib.sh
. "$root/scripts/npm_lib.sh"
npm_install mcp_clients "$1"
cd "$place"
node=$(find node_modules -path '*node-linux-*/bin/node' -type f | head -n 1)
[ -n "$node" ] || npm_skip "npm has no Node 22 for this machine"
exec timeout 300 "$node" run.mjs "$program"
