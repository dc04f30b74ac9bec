#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes calls of every kind, exports them as OTLP and holds them against OpenTelemetry's own schema.
#   scripts/otlp_oracle.sh DIRECTORY COFFER    the schema is installed below DIRECTORY, the build's tests directory
# Without Node.js, npm or a network the test is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
source=$(realpath "$(dirname "$0")/../tests/conformance/otlp_oracle")
tests=$(realpath "$1")
coffer=$(realpath "$2")
place=$tests/otlp_oracle

skip() {
  if [ "${CI:-}" = true ]; then
    echo "otlp_oracle: $1" >&2
    exit 1
  fi
  # The form in which GoogleTest says it: scripts/run_tests.sh looks for that.
  printf 'otlp_oracle.sh:1: Skipped\n%s\n' "$1"
  exit 77
}

command -v node >/dev/null || skip "Node.js is missing: scripts/setup.sh conformance"
mkdir -p "$place"
cp "$source"/*.mjs "$source"/*.json "$place/"
if ! cmp -s "$place/package-lock.json" "$place/installed.json"; then
  command -v npm >/dev/null || skip "npm is missing: scripts/setup.sh conformance"
  rm -f "$place/installed.json"
  (cd "$place" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund) >"$place/npm.log" 2>&1 ||
    skip "npm could not install the schema (see otlp_oracle/npm.log): $(grep -m 1 'ERR' "$place/npm.log" || tail -n 1 "$place/npm.log")"
  cp "$place/package-lock.json" "$place/installed.json"
fi

state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
run() { "$coffer" "$@" --state "$state/s" >/dev/null 2>&1 || true; }
run call python --args '{"code":"print(1)"}' --traceparent 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
run call python --args '{"code":"raise SystemExit(3)"}'
run call python --args '{"code":"import ctypes; ctypes.CDLL(None).unshare(0x10000000)"}'
run call python --args '{"code":"print(\"x\" * 3000000)"}'
run call python --args '{"code":7}'
run call no-such-tool --args '{}'
"$coffer" run --state "$state/s" -- /bin/true
"$coffer" audit export --format otlp --state "$state/s" >"$state/otlp"
cd "$place"
node check.mjs "$state/otlp"
