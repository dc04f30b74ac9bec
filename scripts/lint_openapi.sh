#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints src/gateway/openapi.json with Redocly's linter, at the version that tests/conformance/openapi_lint pins.
#   scripts/lint_openapi.sh DIRECTORY    the linter is installed below this build directory
# Without Node.js, npm or a network it is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
source=$root/tests/conformance/openapi_lint
mkdir -p "$1"
place=$(realpath "$1")/openapi_lint

skip() {
  if [ "${CI:-}" = true ]; then
    echo "lint_openapi: $1" >&2
    exit 1
  fi
  # The form in which GoogleTest says it: scripts/run_tests.sh looks for that.
  printf 'lint_openapi.sh:1: Skipped\n%s\n' "$1"
  exit 77
}

command -v node >/dev/null || skip "Node.js is missing: scripts/setup.sh conformance"
mkdir -p "$place"
cp "$source"/package.json "$source"/package-lock.json "$source"/redocly.yaml "$place/"
if ! cmp -s "$place/package-lock.json" "$place/installed.json"; then
  command -v npm >/dev/null || skip "npm is missing: scripts/setup.sh conformance"
  rm -f "$place/installed.json"
  (cd "$place" && timeout 600 npm ci --ignore-scripts --no-audit --no-fund) >"$place/npm.log" 2>&1 ||
    skip "npm could not install the linter (see openapi_lint/npm.log): $(grep -m 1 'ERR' "$place/npm.log" || tail -n 1 "$place/npm.log")"
  cp "$place/package-lock.json" "$place/installed.json"
fi
cp "$root/src/gateway/openapi.json" "$place/openapi.json"
cd "$place"
# No telemetry, no look for newer versions.
export REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true CI="${CI:-false}"
exec timeout 120 node_modules/.bin/redocly lint openapi.json --config redocly.yaml --format stylish
