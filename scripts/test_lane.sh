#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs one test as an ordinary user whom no other test has at that moment. ctest, as root, puts this before the command of
# each test (scripts/run_tests.sh); it is of no use by hand.
#
#   test_lane.sh PLACE FIRST COMMAND...
# PLACE/UID is a lane: a uid, and a copy of the build that it owns. The command, the environment and the directory name
# paths of the lane FIRST; they are rewritten for the lane that is free.
#
# A uid of its own, because at the process level RLIMIT_NPROC counts everything that a uid runs: one test's fork bomb would
# be another's refused fork. A copy of its own, because a boundary refuses files of other users.
set -euo pipefail
place=$1 first=$1/$2
shift 2

# There are as many lanes as ctest runs tests at the same time. The lock goes with this process, however it ends.
for lane in "$place"/[0-9]*; do
  exec 9<"$lane"
  ! flock --nonblock 9 || break
  lane=
done
[ -n "$lane" ] || { echo "test_lane: every lane in $place is taken" >&2; exit 1; }
uid=${lane##*/}

words=("PATH=$PATH" "HOME=$lane/home" "TMPDIR=$lane/tmp" LANG=C.UTF-8)
for name in "${!COFFER_@}" ASAN_OPTIONS UBSAN_OPTIONS; do
  words+=("$name=${!name}")
done
words+=("$@")
code=0
# The test does not inherit the lock: a process that it leaves behind would keep the lane.
setpriv "--reuid=$uid" "--regid=$uid" --clear-groups \
  env -i -C "${PWD/#"$first"/$lane}" "${words[@]//"$first"/$lane}" 9<&- || code=$?
exit $code
