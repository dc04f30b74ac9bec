#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures build/coffer against its peers. `bench.sh` writes docs/BENCHMARKS.md, docs/bench/ and
# build/bench/results.json; `bench.sh short` takes under a minute and writes the JSON only. Further arguments go to
# bench_coffer (see bench/main.cc).
set -euo pipefail
cd "$(dirname "$0")/.."

build=${BUILD:-build}
args=(--coffer "$build/coffer" --probe "$build/bench/bench_probe" --floor "$build/bench/bench_floor" --json "$build/bench/results.json")
if [ "${1:-}" = short ]; then
  shift
  args+=(--short)
else
  args+=(--docs docs)
fi

for program in bwrap crun; do
  if ! PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null; then
    echo "bench: $program is not installed and will be left out (scripts/setup.sh bench installs it)" >&2
  fi
done
cmake --build "$build" --target bench_coffer bench_probe bench_floor >&2
exec "$build/bench/bench_coffer" "${args[@]}" "$@"
