#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks sdk/typescript with the TypeScript compiler that tests/conformance/sdk_types pins: its sources, that the declarations
# in types/ are what the compiler makes of them, and a program that uses them, right and wrong.
#   scripts/check_sdk_types.sh DIRECTORY      the compiler is installed below this build directory
#   scripts/check_sdk_types.sh DIRECTORY --write   writes the declarations
# Without Node.js, npm or a network it is skipped, with the reason; in CI (CI=true) that is a failure.
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
# shellcheck source=scripts/npm_lib.sh
. "$root/scripts/npm_lib.sh"
npm_install sdk_types "$1"
package=$place/node_modules/cofferdam
rm -rf "$package" "$place/made"
mkdir -p "$package"
cp -r "$root/sdk/typescript/." "$package/"
tsc=("$place/node_modules/.bin/tsc")
cd "$place"
"${tsc[@]}" -p "$package" --outDir "$place/made" --typeRoots "$place/node_modules/@types"
if [ "${2:-}" = --write ]; then
  rm -rf "$root/sdk/typescript/types"
  cp -r made "$root/sdk/typescript/types"
elif ! diff -r made "$package/types"; then
  echo "sdk/typescript/types is not what the sources say: scripts/check_sdk_types.sh DIRECTORY --write" >&2
  exit 1
fi
options=(--noEmit --strict --target es2022 --module nodenext --moduleResolution nodenext --types node)
"${tsc[@]}" "${options[@]}" right.ts
# Each line of wrong.ts that says so is a mistake, and no other.
wanted=$(grep -n 'MISTAKE' wrong.ts | cut -d: -f1)
found=$({ "${tsc[@]}" "${options[@]}" wrong.ts || true; } | sed -nE 's/^wrong\.ts\(([0-9]+),.*/\1/p' | sort -un)
if [ "$wanted" != "$found" ]; then
  printf 'mistakes in wrong.ts are expected in lines %s, found in %s\n' "$(xargs <<<"$wanted")" "$(xargs <<<"$found")" >&2
  exit 1
fi
echo "types: $(find "$root/sdk/typescript/types" -name '*.d.ts' | wc -l) declarations, $(wc -w <<<"$wanted") mistakes noticed"
