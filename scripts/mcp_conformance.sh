#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs MCP's official conformance suite, both eras, against the gateway with the suite's fixtures.
#   scripts/mcp_conformance.sh DIRECTORY    the build's tests directory: mcp_fixtures is there, the suite is installed below it
# What does not pass stands in tests/conformance/mcp/expected-*.yml, with the reason. One that passes after all fails too.
# Without Node.js, npm or a network it is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
program=$(realpath "$1/mcp_fixtures")
# shellcheck source=scripts/npm_lib.sh
. "$root/scripts/npm_lib.sh"
npm_install mcp "$1"
cd "$place"
node=$(find node_modules -path '*node-linux-*/bin/node' -type f | head -n 1)
[ -n "$node" ] || npm_skip "npm has no Node 22 for this machine"
exec timeout 600 "$node" run.mjs "$program" fixtures.json "expected-VERSION.yml"
