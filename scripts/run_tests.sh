#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the suite of a build directory.
#   scripts/run_tests.sh BUILD all    as root and as an ordinary user (as yourself only, if you are not root), then
#                                     the public contract, as far as its scripts are in CONTRACT
#   scripts/run_tests.sh BUILD user   as an ordinary user only
#   scripts/run_tests.sh BUILD self   as the user who runs it
# Environment: TESTS (a regular expression for ctest -R), JOBS, CONTRACT (a directory).
#
# As root, "an ordinary user" is a uid without a name, a home or subordinate ids. It runs a copy of the build in a
# directory it can read, because the checkout may be below /root; no system user is created. Root's own tests then run
# from such a copy too: at the process level a call has another uid and the host's paths, and could not reach its program.
# Tests that run at the same time are different ordinary users (scripts/test_lane.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
source_dir=$PWD
build=$1
mode=$2
jobs=${JOBS:-2}
ordinary_uid=48213  # and those after it, one for each test that runs at the same time
# What this version keeps of the public contract; the other scripts are of later ones.
contracts=()
for name in boundary first_day egress; do
  script=${CONTRACT:-../shared/contract}/$name.py
  [ ! -f "$script" ] || contracts+=("$(realpath "$script")")
done
summary=()
unstable=""
failures=""  # what failed tests said, for the end, where it is found
status=0
costs=$build/Testing/Temporary/CTestCostData.txt  # how long each test took the last time, for ctest

section() { printf '\n== %s ==\n' "$*"; }

# once_more NUMBER BUILD-DIR CTEST-COMMAND...: true if the NUMBER tests that failed pass alone. Tests share the processors with
# their neighbours, and a machine that stands still for seconds fails them without a fault in the program. Only three of a run
# get a second chance, and each is named in the summary: it is a fault of the test to mend. If one is of the wall, each must
# pass ten times in a row: that finds a hole which is open one time in four. Unit tests get no second chance.
once_more() {
  local number=$1 dir=$2 names name times=1
  shift 2
  names=$(cut -d: -f2- "$dir/Testing/Temporary/LastTestsFailed.log" 2>/dev/null || true)
  # A ctest that ended early has counted nothing, and the list is of another run.
  if [ "$number" != "$(grep -c . <<<"$names")" ] || [ "$number" -gt 3 ] ||
    grep -qvE '^(daemon|escape|faults|gateway|integration|posture|sdk):' <<<"$names"; then
    return 1
  fi
  ! grep -qE '^(escape|faults|posture):' <<<"$names" || times=10
  section "once more, alone, $times in a row"
  "$@" --test-dir "$dir" --output-on-failure -j 1 --rerun-failed --repeat "until-fail:$times" || return 1
  while read -r name; do
    unstable=" But see UNSTABLE above."
    summary+=("$(printf '%-34s %s' "UNSTABLE" "$name failed beside another test and passed alone, $times in a row")")
  done <<<"$names"
}

# run_suite TITLE BUILD-DIR CTEST-COMMAND...
run_suite() {
  local title=$1 dir=$2 log started=$SECONDS failed=0
  shift 2
  log=$(mktemp)
  section "tests $title"
  local options=(--test-dir "$dir" --no-tests=error --output-on-failure -j "$jobs")
  [ -n "${TESTS:-}" ] && options+=(-R "$TESTS")
  # Passed and skipped tests are not worth a line each; the reasons of the latter follow.
  { "$@" "${options[@]}" 2>&1 || echo "ctest-failed" >"$log.failed"; } | tee "$log" |
    grep -vE '^ *Start +[0-9]+:|^ *[0-9]+/[0-9]+ Test .*( Passed |\*\*\*Skipped)|\(Skipped\)$|did not run:$' || true
  [ ! -e "$log.failed" ] || failed=1
  # A skip is never silent: the reason each skipped test gave.
  local reasons
  reasons=$(grep -A1 -hE '^[^ ]+:[0-9]+: Skipped$' "$dir/Testing/Temporary/LastTest.log" 2>/dev/null |
    grep -vE ': Skipped$|^--$' | sort | uniq -c || true)
  [ -n "$reasons" ] && printf 'Reasons for skipping:\n%s\n' "$reasons"
  local line
  line=$(grep -E 'tests passed|No tests were found' "$log" | tail -n 1 || true)
  local skipped
  skipped=$(grep -c '\*\*\*Skipped' "$log" || true)
  grep -qE '^100% tests passed' <<<"$line" || failed=1
  summary+=("$(printf '%-34s %s; %s skipped; %d s' "$title" "${line:-ctest ended early}" "$skipped" $((SECONDS - started)))")
  [ $failed = 0 ] || failures+=$(printf '\n%s:\n' "$title" && awk '/\*\*\*(Failed|Timeout|Exception)/; /^[^ ]+:[0-9]+: Failure$/ { more = 7 } more-- > 0' "$log" | head -n 100)
  [ $failed = 0 ] || once_more "$(sed -nE 's/.* ([0-9]+) tests failed out of .*/\1/p' <<<"$line")" "$dir" "$@" || status=1
  rm -f "$log" "$log.failed"
}

# run_contract TITLE COFFER COMMAND-PREFIX...
run_contract() {
  local title=$1 coffer=$2 script name out code
  shift 2
  for script in "${contracts[@]}"; do
    name=$(basename "$script" .py) code=0
    section "contract $name $title"
    out=$("$@" python3 "${contract_at:-$(dirname "$script")}/$name.py" "$coffer" 2>&1) || code=$?
    printf '%s\n' "$out"
    summary+=("$(printf '%-34s %s' "$name $title" "$(tail -n 1 <<<"$out")")")
    [ $code = 0 ] || status=1
  done
}

# copy_build PLACE UID: a copy of the build that any uid can read. CTest's files name absolute paths: rewritten.
copy_build() {
  local place=$1 owner=$2 name
  mkdir "$place/home" "$place/tmp" "$place/checkout" "$place/checkout/build"
  for name in tests docs deploy scripts sdk tools; do
    [ -d "$name" ] && cp -r "$name" "$place/checkout/"
  done
  cp README.md "$place/checkout/"
  mkdir -p "$place/checkout/src/gateway" && cp src/gateway/openapi.json "$place/checkout/src/gateway/"
  # Executables, and CTest's files; objects stay behind.
  (cd "$build" && find . \( -name CMakeFiles -o -name vm -o -name packages -o -name Testing -o -name openapi_lint -o -name mcp_clients -o -path ./tests/mcp \) -prune -o -type f \
    \( -executable -o -name '*.cmake' -o -path './tests/*' \) ! -name '*.a' -print0) |
    tar -C "$build" --null -T - -cf - | tar -C "$place/checkout/build" -xf -
  find "$place/checkout/build" -name '*.cmake' -exec \
    sed -i -e "s|$(realpath "$build")|$place/checkout/build|g" -e "s|$source_dir|$place/checkout|g" {} +
  [ ${#contracts[@]} = 0 ] || cp "${contracts[@]}" "$place/"
  chmod -R a+rX "$place"
  chown -R "$owner:$owner" "$place"
}

as_ordinary() { setpriv --reuid=$ordinary_uid --regid=$ordinary_uid --clear-groups "$@"; }

# Sets `place`: a new directory that the ordinary user may run programs from. It is removed at the end.
places=()
trap 'rm -rf "${places[@]}"' EXIT
make_place() {
  local base
  for base in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
    place=$(mktemp -d "$base/coffer-test-user.XXXXXX")
    chmod 755 "$place"
    printf '#!/bin/sh\n' >"$place/exec" && chmod 755 "$place/exec"
    if as_ordinary "$place/exec" 2>/dev/null; then
      places+=("$place")
      return
    fi
    rm -rf "$place"
  done
  echo "run_tests: no temporary directory that another user may run programs from" >&2
  exit 1
}

run_as_root() {
  local place dir=$build coffer=$build/coffer
  if ! as_ordinary test -x "$(realpath "$build")"; then
    echo "Other users cannot enter $source_dir: root's tests run from a copy."
    make_place
    copy_build "$place" 0
    dir=$place/checkout/build coffer=$place/checkout/build/coffer
  fi
  run_suite "as root" "$dir" ctest
  costs=$dir/Testing/Temporary/CTestCostData.txt
  [ "$mode" = self ] || run_contract "as root" "$coffer" env
}

run_as_ordinary_user() {
  local place uid uids=() first
  make_place
  for ((uid = ordinary_uid; uid < ordinary_uid + jobs; ++uid)); do
    mkdir "$place/$uid"
    copy_build "$place/$uid" $uid
    uids+=("$uid")
  done
  first=$place/$ordinary_uid
  # ctest stays root and each test becomes a user. How long the tests took as root says which come first.
  cp scripts/test_lane.sh "$place/"
  find "$first/checkout/build" -name '*.cmake' -exec \
    sed -i -E "s|^(add_test\(\[=\[.*\]=\]) |\1 \"$place/test_lane.sh\" \"$place\" $ordinary_uid |" {} +
  mkdir -p "$first/checkout/build/Testing/Temporary"
  [ ! -f "$costs" ] || cp "$costs" "$first/checkout/build/Testing/Temporary/"
  # What does not depend on the uid: root's run has had it.
  local once=()
  [ "$mode" = user ] || once=(-LE '^once$')
  run_suite "as an ordinary user (uid ${uids[*]})" "$first/checkout/build" env -C "$first/checkout" ctest "${once[@]}"
  local as=(setpriv "--reuid=$ordinary_uid" "--regid=$ordinary_uid" --clear-groups
    env -i -C "$first/checkout" "PATH=/usr/local/bin:/usr/bin:/bin" "HOME=$first/home" "TMPDIR=$first/tmp" LANG=C.UTF-8)
  contract_at=$first run_contract "as an ordinary user" "$first/checkout/build/coffer" "${as[@]}"
  # Anything of those uids that goes on running was left behind by a boundary or a test. The host's init reaps the dead ones,
  # which may take it a moment.
  local left tries
  for ((tries = 0; tries < 40; ++tries)); do
    left=$(ps -o pid=,stat=,args= -U "$(IFS=, && echo "${uids[*]}")" 2>/dev/null | awk '$2 !~ /^Z/' || true)
    [ -n "$left" ] || break
    sleep 0.25
  done
  if [ -n "$left" ]; then
    printf 'Processes left behind:\n%s\n' "$left"
    summary+=("ordinary user: processes were left behind")
    status=1
  fi
}

if [ "$(id -u)" != 0 ]; then
  [ "$mode" = all ] && echo "You are uid $(id -u): the tests run as you. Run \`make test\` as root for the other half."
  run_suite "as uid $(id -u)" "$build" ctest
  [ "$mode" = self ] || run_contract "as uid $(id -u)" "$build/coffer" env
else
  if [ "$mode" != user ]; then run_as_root; fi
  if [ "$mode" != self ]; then run_as_ordinary_user; fi
fi

[ -z "$failures" ] || { section "what failed tests said" && printf '%s\n' "$failures"; }
section summary
printf '%s\n' "${summary[@]}"
[ $status = 0 ] && echo "All passed.$unstable" || echo "FAILED."
exit $status
