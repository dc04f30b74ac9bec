#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target of a build directory for SECONDS_EACH seconds on its seeds, JOBS of them at a time. What it
# finds new stays in the build directory; a crash is printed with the command that repeats it, and fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
seconds=${SECONDS_EACH:-60}
jobs=${JOBS:-2}
shopt -s nullglob
targets=("$build"/fuzz/*_fuzz)
if [ ${#targets[@]} = 0 ]; then
  echo "fuzz: no targets in $build/fuzz; are there any tests/fuzz/*_fuzz.cc?" >&2
  exit 1
fi

# run_one TARGET: false if it found something, or did not really run.
run_one() {
  local target=$1 name grown crashes runs seeds=() options=()
  name=$(basename "$target" _fuzz)
  grown=$build/corpus/$name
  crashes=$build/crashes/$name
  mkdir -p "$grown" "$crashes"
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  [ -f "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
  if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
      "-artifact_prefix=$crashes/" "${options[@]}" "$grown" "${seeds[@]}" >"$build/$name.log" 2>&1; then
    tail -n 40 "$build/$name.log"
    printf '%s: FAILED; repeat with: %s %s/<file>\n' "$name" "$target" "$crashes" >&2
    return 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.log")
  if [ "${runs:-0}" -lt 10 ]; then
    echo "fuzz: $name ran fewer than 10 inputs; that is no fuzzing" >&2
    return 1
  fi
  printf '%-28s %s s, %s inputs, nothing found\n' "$name" "$seconds" "$runs"
}

failed=0
running=0
for target in "${targets[@]}"; do
  if [ $running = "$jobs" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  run_one "$target" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  wait -n || failed=1
  running=$((running - 1))
done
printf '%d targets, %d at a time, %d s\n' ${#targets[@]} "$jobs" $SECONDS
exit $failed
