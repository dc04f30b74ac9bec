#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs each fuzz target of a build directory for SECONDS_EACH seconds on its seeds. What it finds new stays in the
# build directory; a crash is printed with the command that repeats it, and fails the run.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
seconds=${SECONDS_EACH:-60}
shopt -s nullglob
targets=("$build"/fuzz/*_fuzz)
if [ ${#targets[@]} = 0 ]; then
  echo "fuzz: no targets in $build/fuzz; are there any tests/fuzz/*_fuzz.cc?" >&2
  exit 1
fi
failed=0
for target in "${targets[@]}"; do
  name=$(basename "$target" _fuzz)
  grown=$build/corpus/$name
  crashes=$build/crashes/$name
  mkdir -p "$grown" "$crashes"
  seeds=()
  [ -d "tests/fuzz/corpus/$name" ] && seeds=("tests/fuzz/corpus/$name")
  options=()
  [ -f "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
  if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
      "-artifact_prefix=$crashes/" "${options[@]}" "$grown" "${seeds[@]}" >"$build/$name.log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.log")
    printf '%-28s %s s, %s inputs, nothing found\n' "$name" "$seconds" "${runs:-?}"
    if [ "${runs:-0}" -lt 10 ]; then
      echo "fuzz: $name ran fewer than 10 inputs; that is no fuzzing" >&2
      failed=1
    fi
  else
    failed=1
    tail -n 40 "$build/$name.log"
    printf '%s: FAILED; repeat with: %s %s/<file>\n' "$name" "$target" "$crashes" >&2
  fi
done
exit $failed
