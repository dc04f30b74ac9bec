#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# clang-format 19 over every C++ and C file: checks, or rewrites with --fix.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(find src tests bench cmake -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) 2>/dev/null | sort)
[ ${#files[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --fix ]; then
  printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 20 clang-format-19 -i --style=file
  exit 0
fi
wrong=$(clang-format-19 --dry-run --style=file "${files[@]}" 2>&1 |
  sed -n 's/^\([^ :]*\):\([0-9]*\):.*clang-format.*/\1:\2/p' | sort -t: -k1,1 -u)
if [ -n "$wrong" ]; then
  printf '%s\n' "$wrong"
  echo "clang-format would change $(wc -l <<<"$wrong") of ${#files[@]} files (first line of each above). Run: make format" >&2
  exit 1
fi
echo "${#files[@]} files"
