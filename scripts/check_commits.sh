#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Commits read as CONTRIBUTING says: the subject is `area: Change`, with at most 72 columns, and a body says why.
#   scripts/check_commits.sh BASE          those in BASE..HEAD of this repository; merges are passed over
#   scripts/check_commits.sh --self-test   shows, on a repository of its own, that each rule can fail
# What is in BASE is not looked at.
set -euo pipefail
export LC_ALL=C.UTF-8  # columns are characters

# An area is a folder, a document, or several of them. The change is not looked at: it may begin with a program's name (npm).
subject='^[A-Za-z0-9_./-]+(, [A-Za-z0-9_./-]+)*: [^ ]'
columns=72

# check REPOSITORY BASE: a line for each rule that a commit breaks.
check() {
  local commit line wrong=0 number=0
  git -C "$1" rev-parse -q --verify "$2^{commit}" >/dev/null || { echo "check_commits: there is no commit '$2'" >&2 && return 1; }
  for commit in $(git -C "$1" rev-list --no-merges --reverse "$2..HEAD"); do
    number=$((number + 1))
    line=$(git -C "$1" log -1 --format=%s "$commit")
    complain() { wrong=1 && echo "${commit:0:10} $line: $1"; }
    [[ $line =~ $subject ]] || complain "write the subject as 'area: Change'"
    [ ${#line} -le $columns ] || complain "the subject has ${#line} columns, more than $columns"
    [ -n "$(git -C "$1" log -1 --format=%b "$commit" | grep -vE '^[A-Z][A-Za-z-]*-by: ' | tr -d '[:space:]')" ] ||
      complain "write a body that says why"
  done
  [ $wrong = 0 ] && echo "$number commits since ${2:0:10}"
}

# Each case: a subject, a body, and a word of the complaint, or "good".
self_test() {
  local base said failed=0 case subject_of body wanted count=0
  place=$(mktemp -d)  # not local: the trap needs it
  trap 'rm -rf "$place"' EXIT
  commit() { git -C "$place" -c user.name=test -c user.email=test@localhost commit -q --allow-empty --cleanup=verbatim -F - <<<"$1"; }
  git -C "$place" init -q
  commit 'no area and no body, before the base'
  base=$(git -C "$place" rev-parse HEAD)
  local cases=(
    'call: A rung is added|It says why.|good'
    'call, egress, sdk/python: Three areas|It says why.|good'
    'README: Seven tools|It says why.|good'
    'A rung is added|It says why.|area: Change'
    'tests: git is tried|It says why.|good'
    'more words: A rung|It says why.|area: Change'
    'call:A rung|It says why.|area: Change'
    'fixup! call: A rung|It says why.|area: Change'
    "call: $(printf 'A%.0s' {1..66})|It says why.|good"
    "call: $(printf 'A%.0s' {1..67})|It says why.|columns"
    "call: $(printf 'Ä%.0s' {1..66})|It says why.|good"
    'call: A rung is added||body'
    'call: A rung is added|Signed-off-by: A Person <person@localhost>|body'
  )
  for case in "${cases[@]}"; do
    IFS='|' read -r subject_of body wanted <<<"$case"
    git -C "$place" reset -q --hard "$base"
    commit "$subject_of"$'\n\n'"$body"
    said=$(check "$place" "$base" || true)
    count=$((count + 1))
    if { [ "$wanted" = good ] && [ "$said" != "1 commits since ${base:0:10}" ]; } || { [ "$wanted" != good ] && [[ $said != *"$wanted"* ]]; }; then
      failed=1 && echo "self-test: '$case': $said"
    fi
  done
  # A merge is passed over, what it brings is not.
  git -C "$place" reset -q --hard "$base"
  commit $'call: One side\n\nIt says why.'
  git -C "$place" checkout -q -b side "$base"
  commit $'call: Another side\n\nIt says why.'
  git -C "$place" -c user.name=test -c user.email=test@localhost merge -q -s ours -m 'a merge without a body' - >/dev/null
  said=$(check "$place" "$base" || true)
  [ "$said" = "2 commits since ${base:0:10}" ] || { failed=1 && echo "self-test: a merge: $said"; }
  said=$(check "$place" HEAD || true)
  [ "$said" = "0 commits since HEAD" ] || { failed=1 && echo "self-test: nothing new: $said"; }
  ! check "$place" nowhere 2>/dev/null || { failed=1 && echo "self-test: a base that is not there passes"; }
  [ $failed = 0 ] && echo "self-test: $((count + 3)) cases"
}

if [ "${1:-}" = --self-test ]; then
  self_test
elif [ $# = 1 ] && [ -n "$1" ]; then
  check "$(dirname "$0")/.." "$1"
else
  echo "usage: scripts/check_commits.sh BASE | --self-test" >&2
  exit 2
fi
