#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The README's promise, on a Debian 12 that has nothing: a new root (debootstrap's smallest, and make, sudo, git and
# ca-certificates), what is committed here in it, and there
#   root   make demo, then make test
#   user   make demo as a user who has sudo
# each in a root of its own, so that each installs everything itself, from deploy/packages.txt.
#
# usage: fresh.sh [root|user]...                  both, if none is named; as root only
# Environment: FRESH_DIR (a new one in /var/tmp; 6 GB, removed at the end), TESTS (as for make test). Packages come from where this
# host's apt gets them; nothing is taken from its compiler cache, so it takes as long as it takes a newcomer.
#
# Not chroot: the kernel gives no user namespace to a process in a chroot (user_namespaces(7)). A mount and a pid namespace
# and pivot_root make a root that is one.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "fresh: only root can make a root" >&2; exit 1; }
place=${FRESH_DIR:-$(mktemp -d /var/tmp/coffer-fresh.XXXXXX)}
release=bookworm
phases=("$@")
[ ${#phases[@]} -gt 0 ] || phases=(root user)
mkdir -p "$place"
place=$(realpath "$place")
trap 'rm -rf --one-file-system "$place"' EXIT

# What every phase begins with.
make_base() {
  local base=$1 mirror
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    sed -n "s/ $release\$//p" | head -n 1)
  [ -n "$mirror" ] || { echo "fresh: this host's apt knows no Debian $release" >&2; exit 1; }
  debootstrap --variant=minbase --include=make,ca-certificates,sudo,git "$release" "$base" "$mirror" >"$place/log" ||
    { tail -n 30 "$place/log" >&2; exit 1; }
  rm -f "$base/etc/apt/sources.list"
  cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$base/etc/apt/"
  cp -L /etc/resolv.conf /etc/hosts "$base/etc/"
  useradd --root "$base" --create-home --shell /bin/bash builder
  echo 'builder ALL=(ALL) NOPASSWD:ALL' >"$base/etc/sudoers.d/builder"
  mkdir "$base/home/builder/cofferdam"
  git archive HEAD | tar -C "$base/home/builder/cofferdam" -xf -
}

# enter ROOT COMMAND...: /dev and /sys (cgroups too) are the host's, /proc is its own.
enter() {
  local root=$1
  shift
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
  ' enter "$@"
}

timings=()
run() {
  local title=$1 started=$SECONDS
  shift
  printf '\n== fresh, %s ==\n' "$title"
  "$@"
  timings+=("$(printf '%-24s %5d s' "$title" $((SECONDS - started)))")
}

run "debootstrap" make_base "$place/base"
for phase in "${phases[@]}"; do
  root=$place/debian-$phase  # no directory called root: a test looks for /root among the paths that a boundary can see
  cp -a "$place/base" "$root"
  case $phase in
    root)
      mv "$root/home/builder/cofferdam" "$root/root/cofferdam"
      chown -R 0:0 "$root/root/cofferdam"
      run "root: make demo" enter "$root" make -C /root/cofferdam demo
      run "root: make test" enter "$root" make -C /root/cofferdam test "TESTS=${TESTS:-}"
      ;;
    user)
      chroot "$root" chown -R builder:builder /home/builder
      run "user: make demo" enter "$root" runuser -u builder -- env HOME=/home/builder make -C /home/builder/cofferdam demo
      ;;
    *) echo "fresh: what is $phase? root or user" >&2; exit 2 ;;
  esac
  rm -rf --one-file-system "$root"
done
printf '\n== fresh ==\n'
printf '%s\n' "${timings[@]}"
