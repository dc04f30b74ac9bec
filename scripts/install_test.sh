#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Debian package on a Debian 12 that has nothing of ours: debootstrap's smallest with systemd, the .deb is put in with apt,
# and then what a newcomer does. As root only.
#   the unit     names a program that is installed, and systemd-analyze finds nothing wrong with it
#   help         manual pages, completions and the documents that messages name are there
#   coffer run   as root and as a user
#   coffer serve with the words of the unit's ExecStart: ready, one call, SIGTERM, and it ends by itself
#
# usage: install_test.sh PACKAGE.deb
# Environment: INSTALL_DIR (a new one in /var/tmp; 1 GB, removed at the end), INSTALL_BASE (a root that debootstrap made
# before, to be copied instead of making one). Packages come from where this host's apt gets
# them. Not chroot: the kernel gives no user namespace to a process in one (user_namespaces(7)); see fresh.sh.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "install_test: only root can make a root" >&2; exit 1; }
deb=$(realpath "$1")
place=${INSTALL_DIR:-$(mktemp -d /var/tmp/coffer-install.XXXXXX)}
mkdir -p "$place"
place=$(realpath "$place")
trap 'rm -rf --one-file-system "$place"' EXIT
root=$place/debian
release=bookworm

# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | sed -n "s/ $release\$//p" | head -n 1)
[ -n "$mirror" ] || { echo "install_test: this host's apt knows no Debian $release" >&2; exit 1; }
echo "== a new Debian in $root =="
if [ -n "${INSTALL_BASE:-}" ]; then
  cp -a "$INSTALL_BASE" "$root"
else
  debootstrap --variant=minbase --include=ca-certificates,systemd,curl "$release" "$root" "$mirror" >"$place/log" ||
    { tail -n 30 "$place/log" >&2; exit 1; }
fi
rm -f "$root/etc/apt/sources.list"
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$root/etc/apt/"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
useradd --root "$root" --create-home --shell /bin/bash newcomer
cp "$deb" "$root/root/"

cat >"$root/root/inside.sh" <<'INSIDE'
set -euo pipefail
cd /root
say() { printf '== %s ==\n' "$*"; }
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
say "apt: ./$1"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "./$1" python3 >/tmp/apt.log 2>&1 || { tail -n 30 /tmp/apt.log; exit 1; }

unit=/usr/lib/systemd/system/coffer.service
[ -f $unit ] || unit=/lib/systemd/system/coffer.service
[ -f $unit ] || fail "the unit is not installed"
program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' $unit)
say "the unit starts $program"
[ -x "$program" ] || fail "the unit names $program, which is not installed"
dpkg -S "$program" >/dev/null || fail "$program is not of a package"
said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify $unit 2>&1) || fail "systemd-analyze verify: $said"
[ -z "$said" ] || fail "systemd-analyze verify: $said"
! systemctl is-enabled coffer >/dev/null 2>&1 || fail "installing it enabled it"

say "help names what is installed"
coffer help manifest | grep -q 'tool.name' || fail "coffer help manifest"
coffer help config | grep -q 'quotas.tenant' || fail "coffer help config"
for page in man1/coffer.1 man1/coffer-sessions.1 man5/coffer-manifest.5 man5/manifest.5 man5/coffer.toml.5; do
  dpkg -L coffer | grep -qx "/usr/share/man/$page.gz" || fail "the package has no $page"
done
for file in /usr/share/doc/coffer/OPERATIONS.md /usr/share/bash-completion/completions/coffer; do
  # The smallest Debian may leave documents out; the package must have them.
  dpkg -L coffer | grep -qx "$file\(.gz\)\?" || fail "the package has no $file"
done
for verb in $(coffer --help | sed -n 's/^  coffer \([a-z]*\) .*/\1/p' | sort -u); do
  coffer help "$verb" >/dev/null || fail "coffer help $verb"
  grep -qw "$verb" /usr/share/bash-completion/completions/coffer || fail "bash completes no $verb"
done

say "coffer run, as root and as a user"
[ "$(coffer run -- echo inside)" = inside ] || fail "coffer run as root"
[ "$(runuser -u newcomer -- sh -c 'cd && coffer run -- echo inside')" = inside ] || fail "coffer run as a user"

say "coffer serve, as the unit starts it"
words=$(sed -n 's/^ExecStart=//p' $unit)
port=$(printf '%s' "$words" | sed -n 's/.*--listen 127.0.0.1:\([0-9]*\).*/\1/p')
(umask 0077; exec $words --json >/tmp/serve.json 2>/tmp/serve.err) &
served=$!
for _ in $(seq 150); do
  curl -sf "http://127.0.0.1:$port/readyz" >/dev/null && break
  kill -0 $served 2>/dev/null || { cat /tmp/serve.err >&2; fail "coffer serve ended"; }
  sleep 0.2
done
key=$(sed -n 's/.*"key":"\([^"]*\)".*/\1/p' /tmp/serve.json)
answer=$(curl -sf "http://127.0.0.1:$port/v1/calls" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' \
  -d '{"tool": "python", "args": {"code": "print(6 * 7)"}}') || { cat /tmp/serve.err >&2; fail "no answer to a call"; }
case $answer in *'"stdout":"42\n"'*) ;; *) fail "the call answered $answer" ;; esac
kill -TERM $served
wait $served || fail "coffer serve ended with $? after SIGTERM"

say "apt remove"
DEBIAN_FRONTEND=noninteractive apt-get remove -y -qq coffer >/tmp/apt.log 2>&1 || { tail /tmp/apt.log; exit 1; }
[ ! -e "$program" ] || fail "$program is still there"
say "all of it works"
INSIDE

# /dev and /sys (cgroups too) are the host's, /proc is its own. The network is the host's, for apt; the daemon listens on
# loopback.
# shellcheck disable=SC2016
ROOT=$root unshare --mount --pid --fork --kill-child --propagation private bash -euc '
  mount --bind "$ROOT" "$ROOT"
  mount --rbind /dev "$ROOT/dev"
  mount --rbind /sys "$ROOT/sys"
  mount -t proc proc "$ROOT/proc"
  mkdir "$ROOT/outside"
  cd "$ROOT"
  pivot_root . outside
  umount -l /outside
  rmdir /outside
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
' enter bash /root/inside.sh "$(basename "$deb")"
