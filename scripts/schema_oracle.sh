#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Asks ajv and our schema validator the same thousands of questions, and fails on any disagreement.
#   scripts/schema_oracle.sh DIRECTORY    the build's tests directory: schema_answer is there, ajv is installed below it
# Environment: SEED (1), SCHEMAS (2500). Without Node.js, npm or a network the test is skipped, with the reason; in CI
# (CI=true) that is a failure.
set -euo pipefail
# shellcheck source=scripts/npm_lib.sh
. "$(dirname "$0")/npm_lib.sh"
npm_install schema_oracle "$1"
tests=$(realpath "$1")
cd "$place"
exec node compare.mjs --program "$tests/schema_answer" --seed "${SEED:-1}" --schemas "${SCHEMAS:-2500}"
