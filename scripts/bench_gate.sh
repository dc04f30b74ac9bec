#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures the real daemon (bench/gateway/gate.cc) and writes docs/BENCHMARKS_GATE.md. Takes about a minute; the machine
# should have nothing else to do.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$(realpath "${BUILD:-build}")
cmake --build "$build" --target bench_gate bench_fake_warden >&2
exec "$build/bench/bench_gate" --cofferd "$build/cofferd" --fake-warden "$build/bench/bench_fake_warden" \
  --docs "${DOCS-docs/BENCHMARKS_GATE.md}" "$@"
