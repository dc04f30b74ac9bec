#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that is checked without running the program. Goes on after a failure, so that one run tells all.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=()
step() {
  local title=$1 out code=0 started=$SECONDS
  shift
  out=$("$@" 2>&1) || code=$?
  if [ $code = 0 ]; then
    printf 'ok    %-28s %s (%d s)\n' "$title" "$(tail -n 1 <<<"$out")" $((SECONDS - started))
  else
    printf 'FAIL  %s\n%s\n' "$title" "$out"
    failed+=("$title")
  fi
}
shell_scripts() {
  local files
  mapfile -t files < <(grep -rlE --exclude-dir=.git --exclude-dir='build*' '^#!(/usr/bin/env bash|/bin/(ba)?sh)' . | sort)
  shellcheck -x -S warning "${files[@]}"
  echo "${#files[@]} scripts"
}
manual_page() {
  local out
  out=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
    man --warnings -E UTF-8 -l -Tutf8 -Z build/man/coffer.1 2>&1 >/dev/null)
  echo "${out:-coffer.1}"
  [ -z "$out" ]
}

step "formatting" scripts/format.sh
step "layers, self-test" python3 scripts/check_layers.py --self-test
step "layers" python3 scripts/check_layers.py
step "names, self-test" python3 scripts/check_names.py --self-test
step "names" python3 scripts/check_names.py
step "includes, self-test" python3 scripts/check_includes.py --self-test
step "includes" python3 scripts/check_includes.py
step "text, self-test" python3 scripts/check_text.py --self-test
step "text" python3 scripts/check_text.py
step "commits, self-test" scripts/check_commits.sh --self-test
step "shell scripts" shell_scripts
step "manual page" manual_page
step "AppArmor profile" scripts/check_apparmor.sh
if [ "${TIDY:-on}" != off ]; then
  step "clang-tidy" python3 scripts/tidy.py build
fi
echo
python3 scripts/file_sizes.py || failed+=("file sizes")

if [ ${#failed[@]} -gt 0 ]; then
  echo "check: failed: $(printf '%s; ' "${failed[@]}")" >&2
  exit 1
fi
echo "check: all passed"
