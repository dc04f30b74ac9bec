#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the .deb of a build directory, shows what is in it, and lets lintian read it if it is here.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
umask 022
rm -rf "$build/packages"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
(cd "$build" && cpack -G DEB) >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
deb=$(echo "$build"/packages/*.deb)
dpkg-deb --info "$deb" | sed -n 's/^ \(Package\|Version\|Architecture\|Installed-Size\|Depends\|Recommends\):/  &/p'
dpkg-deb --contents "$deb" | awk '$1 !~ /^d/ {printf "  %s %9d %s\n", $1, $3, $6}'
dpkg-deb --fsys-tarfile "$deb" | tar -xO ./usr/share/coffer/apparmor/coffer | cmp - deploy/apparmor/coffer
if command -v lintian >/dev/null; then
  # statically-linked-binary: the point. initial-upload-closes-no-bugs: this is no upload to Debian.
  lintian --fail-on error --suppress-tags statically-linked-binary,initial-upload-closes-no-bugs,no-manual-page "$deb"
fi
echo "$deb"
