#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Asks ajv and our schema validator the same thousands of questions, and fails on any disagreement.
#   scripts/schema_oracle.sh DIRECTORY    the build's tests directory: schema_answer is there, ajv is installed below it
# Environment: SEED (1), SCHEMAS (2500). Without Node.js, npm or a network the test is skipped, with the reason; in CI
# (CI=true) that is a failure.
set -euo pipefail
source=$(realpath "$(dirname "$0")/../tests/conformance/schema_oracle")
tests=$(realpath "$1")
place=$tests/schema_oracle

skip() {
  if [ "${CI:-}" = true ]; then
    echo "schema_oracle: $1" >&2
    exit 1
  fi
  # The form in which GoogleTest says it: scripts/run_tests.sh looks for that.
  printf 'schema_oracle.sh:1: Skipped\n%s\n' "$1"
  exit 77
}

command -v node >/dev/null || skip "Node.js is missing: scripts/setup.sh conformance"
mkdir -p "$place"
cp "$source"/*.mjs "$source"/*.json "$place/"
if ! cmp -s "$place/package-lock.json" "$place/installed.json"; then
  command -v npm >/dev/null || skip "npm is missing: scripts/setup.sh conformance"
  rm -f "$place/installed.json"
  (cd "$place" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$place/npm.log" 2>&1 ||
    skip "npm could not install ajv (see schema_oracle/npm.log): $(grep -m 1 'ERR' "$place/npm.log" || tail -n 1 "$place/npm.log")"
  cp "$place/package-lock.json" "$place/installed.json"
fi
cd "$place"
exec node compare.mjs --program "$tests/schema_answer" --seed "${SEED:-1}" --schemas "${SCHEMAS:-2500}"
