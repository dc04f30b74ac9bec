#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes calls of every kind, exports them as OTLP and holds them against OpenTelemetry's own schema.
#   scripts/otlp_oracle.sh DIRECTORY COFFER    the schema is installed below DIRECTORY, the build's tests directory
# Without Node.js, npm or a network the test is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
# shellcheck source=scripts/npm_lib.sh
. "$(dirname "$0")/npm_lib.sh"
npm_install otlp_oracle "$1"
coffer=$(realpath "$2")

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
