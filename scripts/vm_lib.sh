# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
#
# What the VM scripts share: names of architectures, where things are kept, and an apt that cannot touch the host.
#
# Everything lives below $VM_DIR/<arch> (default build/vm/<arch>), so `rm -rf build/vm` undoes all of it. Nothing is
# installed on the host and the host's dpkg architectures stay as they are: packages of the guest are downloaded through
# a private apt state and unpacked with tar. Neither root nor KVM is needed.
#
# Sourced, never run.

set -euo pipefail

VM_SCRIPTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VM_SOURCE=$(dirname "$VM_SCRIPTS")
VM_DIR=${COFFER_VM_DIR:-$VM_SOURCE/build/vm}

vm_say() { printf 'vm: %s\n' "$*"; }
vm_die() {
  printf 'vm: %s\n' "$*" >&2
  exit 1
}

vm_host_arch() { uname -m; }

vm_other_arch() {
  case $(vm_host_arch) in
    aarch64) echo x86_64 ;;
    x86_64) echo aarch64 ;;
    *) vm_die "no other architecture is known for $(vm_host_arch)" ;;
  esac
}

# vm_use_arch ARCH: sets VM_ARCH (uname's word), VM_DEB_ARCH (Debian's word), VM_TRIPLET and VM_HOME.
vm_use_arch() {
  VM_ARCH=$1
  case $VM_ARCH in
    aarch64) VM_DEB_ARCH=arm64 ;;
    x86_64) VM_DEB_ARCH=amd64 ;;
    *) vm_die "unknown architecture '$VM_ARCH': use aarch64 or x86_64" ;;
  esac
  VM_TRIPLET=$VM_ARCH-linux-gnu
  VM_HOME=$VM_DIR/$VM_ARCH
  mkdir -p "$VM_HOME"
}

# vm_need PROGRAM PACKAGE
vm_need() {
  command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ||
    vm_die "$1 is missing (Debian package $2). Run: scripts/setup.sh vm vm-cross"
}

# vm_apt COMMAND...: apt-get for the guest's architecture with its own lists, cache and (empty) status. The host's
# sources and proxy settings are used; its hooks are not, because they would act on the host.
vm_apt() {
  local home=$VM_HOME/apt
  mkdir -p "$home/lists/partial" "$home/archives/partial"
  : >>"$home/status"
  cat >"$home/apt.conf" <<EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear APT::Architectures;
APT::Architecture "$VM_DEB_ARCH";
APT::Architectures { "$VM_DEB_ARCH"; };
APT::Sandbox::User "$(id -un)";
APT::Get::List-Cleanup "true";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$home";
Dir::State::lists "$home/lists";
Dir::State::status "$home/status";
Dir::Cache "$home";
Dir::Cache::archives "$home/archives";
EOF
  apt-get -c "$home/apt.conf" -q "$@"
}

# vm_words FILE: the words of a list file, comments removed.
vm_words() { sed -e 's/#.*//' "$1" | tr -s ' \t' '\n' | sed '/^$/d'; }

# vm_unpack DEB ROOT: like dpkg -x, but keeps the merged-/usr symlinks of ROOT and leaves out what no test reads.
vm_unpack() {
  dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --no-same-owner --keep-directory-symlink \
    --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' \
    --exclude='./usr/share/info' --exclude='./usr/share/lintian' --exclude='./usr/share/bash-completion'
}

# vm_as_root COMMAND...: runs COMMAND seeing its own files as root's, so that images hold root's files.
vm_as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else fakeroot -- "$@"; fi
}

# vm_stamp FILE TEXT: true if FILE already holds TEXT.
vm_stamp() { [[ -f $1 && $(<"$1") == "$2" ]]; }
