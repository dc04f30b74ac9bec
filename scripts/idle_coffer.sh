#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the escape and posture suites with a coffer that runs nothing and prints nothing. An attack that was never tried leaves no trace
# either, so a test that passes here asserts only that something is absent. It needs ExpectRan (tests/support/verdicts.h), or an
# assertion on what the command printed.
#
#   idle_coffer.sh BUILD
set -euo pipefail
build=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nexit 125\n' >"$work/coffer"
chmod 755 "$work" "$work/coffer"
export COFFER=$work/coffer COFFER_BIN=$work/coffer

# They return at once at the level where there is nothing to attack.
cat >"$work/known" <<'END'
Level/JavaHome.AnOwnJavaRuns/process
Level/ProcfsEscape.InitCannotBeTouchedThroughProc/process
END

cd "$build/tests"
bad=0
for suite in escape_*_test posture_*_test; do
  code=0
  timeout 900 "./$suite" --gtest_brief=0 >"$work/out" 2>&1 </dev/null || code=$?
  if [ "$code" -gt 1 ]; then
    echo "$suite ends with $code: $(grep -a '^\[ RUN' "$work/out" | tail -n 1)"
    bad=1
  fi
  # "[       OK ] NAME (12 ms)"
  if sed -n 's/^\[ *OK \] \([^ ,]*\).*/\1/p' "$work/out" | grep -Fxv -f "$work/known"; then
    echo "$suite: these pass although nothing ran"
    bad=1
  fi
done
exit $bad
