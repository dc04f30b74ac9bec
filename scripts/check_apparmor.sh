#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lets apparmor_parser read deploy/apparmor/coffer, without loading anything into the kernel.
#
# Parsers before AppArmor 4 (Debian 12 has 3.0) know neither the rule `userns` nor the abi it came with. They get the
# profile without those two lines, which must be exactly these, and the message says so.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=deploy/apparmor/coffer
PATH=$PATH:/usr/sbin:/sbin
command -v apparmor_parser >/dev/null || { echo "apparmor_parser is missing: scripts/setup.sh check" >&2; exit 1; }
version=$(apparmor_parser --version | sed -n 's/.*version \([0-9][0-9.]*\).*/\1/p')
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp "$profile" "$place/coffer"
said="whole, by AppArmor $version"
if [ "${version%%.*}" -lt 4 ]; then
  for line in 'abi <abi/4.0>,' '  userns,'; do
    [ "$(grep -cFx -- "$line" "$profile")" = 1 ] || { echo "$profile must have the line '$line' once" >&2; exit 1; }
    grep -vFx -- "$line" "$place/coffer" >"$place/less" && mv "$place/less" "$place/coffer"
  done
  said="without 'userns', which AppArmor $version does not know"
fi
read_profile() { apparmor_parser --skip-kernel-load --skip-cache --skip-read-cache "$1" >"$place/out" 2>&1; }
read_profile "$place/coffer" || { cat "$place/out" >&2; exit 1; }
# The control: a profile with a mistake is noticed.
sed 's/^profile coffer/profle coffer/' "$place/coffer" >"$place/wrong"
if read_profile "$place/wrong"; then echo "apparmor_parser takes everything" >&2; exit 1; fi
echo "read $said"
