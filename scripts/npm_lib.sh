# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For the conformance scripts: the npm packages that a folder of tests/conformance pins.
#
# npm_install FOLDER DIRECTORY    installs them below DIRECTORY, once for each package-lock.json; sets `place`
# Without Node.js, npm or a network the test is skipped, with the reason; in CI (CI=true) that is a failure.

npm_skip() {
  if [ "${CI:-}" = true ]; then
    echo "$(basename "$0"): $1" >&2
    exit 1
  fi
  # The form in which GoogleTest says it: scripts/run_tests.sh looks for that.
  printf '%s:1: Skipped\n%s\n' "$(basename "$0")" "$1"
  exit 77
}

npm_install() {
  local folder=$1 source
  source=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../tests/conformance/$folder")
  mkdir -p "$2/$folder"
  place=$(realpath "$2/$folder")
  command -v node >/dev/null || npm_skip "Node.js is missing: scripts/setup.sh conformance"
  cp "$source"/* "$place/"
  cmp -s "$place/package-lock.json" "$place/installed.json" && return
  command -v npm >/dev/null || npm_skip "npm is missing: scripts/setup.sh conformance"
  rm -f "$place/installed.json"
  (cd "$place" && timeout 600 npm ci --ignore-scripts --no-audit --no-fund) >"$place/npm.log" 2>&1 ||
    npm_skip "npm could not install $folder (see $folder/npm.log): $(grep -m 1 'ERR' "$place/npm.log" || tail -n 1 "$place/npm.log")"
  cp "$place/package-lock.json" "$place/installed.json"
}
