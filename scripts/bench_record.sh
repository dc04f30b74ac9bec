#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The record's figures: bench_record.sh BUILD. BUILD holds coffer, bench/bench_log and bench/fill_state. Wants a quiet
# machine; what it makes is removed.
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
"$build/bench/bench_log" "$place/log" 200000
python3 scripts/bench_audit_verify.py "$build/coffer" "$build/bench/fill_state"
python3 scripts/bench_audit_list.py "$build/coffer"
