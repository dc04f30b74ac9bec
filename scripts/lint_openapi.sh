#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints src/gateway/openapi.json with Redocly's linter, at the version that tests/conformance/openapi_lint pins.
#   scripts/lint_openapi.sh DIRECTORY    the linter is installed below this build directory
# Without Node.js, npm or a network it is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
# shellcheck source=scripts/npm_lib.sh
. "$root/scripts/npm_lib.sh"
npm_install openapi_lint "$1"
cp "$root/src/gateway/openapi.json" "$place/openapi.json"
cd "$place"
# No telemetry, no look for newer versions.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true CI="${CI:-false}"
exec timeout 120 node_modules/.bin/redocly lint openapi.json --config redocly.yaml --format stylish
