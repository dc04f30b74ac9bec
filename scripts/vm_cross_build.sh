#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds coffer and its tests for the other architecture with Debian's cross compiler. The libraries come from packages
# of that architecture, unpacked into a sysroot below build/vm; the host gets no foreign architecture.
#
# usage: vm_cross_build.sh --arch ARCH      leaves build/vm/ARCH/build

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

[[ ${1-} == --arch && -n ${2-} ]] || vm_die "usage: vm_cross_build.sh --arch ARCH"
vm_use_arch "$2"
vm_need "$VM_TRIPLET-g++" "g++-${VM_ARCH/_/-}-linux-gnu"
vm_need cmake cmake
vm_need ninja ninja-build

packages="libc6 libc6-dev linux-libc-dev libcrypt-dev libcrypt1 libseccomp-dev libsodium-dev libsqlite3-dev libpsl-dev libidn2-dev libunistring-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libboost1.81-dev libssl-dev libssl3 zlib1g-dev zlib1g libgtest-dev libgmock-dev librapidcheck-dev"
sysroot=$VM_HOME/sysroot
wanted="$packages, links made relative"
if ! vm_stamp "$VM_HOME/sysroot.stamp" "$wanted" || [[ ! -d $sysroot ]]; then
  vm_say "fetching libraries for $VM_ARCH"
  rm -rf "$sysroot" "$VM_HOME/sysroot.debs"
  mkdir -p "$sysroot"/usr/{lib,lib64} "$VM_HOME/sysroot.debs"
  ln -s usr/lib "$sysroot/lib"
  ln -s usr/lib64 "$sysroot/lib64"
  vm_apt update >"$VM_HOME/sysroot.log" 2>&1 || { cat "$VM_HOME/sysroot.log" >&2; vm_die "apt-get update failed"; }
  # shellcheck disable=SC2086
  (cd "$VM_HOME/sysroot.debs" && vm_apt download $packages) >>"$VM_HOME/sysroot.log" 2>&1 ||
    { tail -20 "$VM_HOME/sysroot.log" >&2; vm_die "downloading the cross libraries failed"; }
  for deb in "$VM_HOME"/sysroot.debs/*.deb; do vm_unpack "$deb" "$sysroot"; done
  # Absolute links would lead into the host.
  find "$sysroot" -type l -lname '/*' | while read -r link; do ln -sfr "$sysroot$(readlink "$link")" "$link"; done
  rm -rf "$VM_HOME/sysroot.debs"
  echo "$wanted" >"$VM_HOME/sysroot.stamp"
fi

log=$VM_HOME/configure.log
cmake -S "$VM_SOURCE" -B "$VM_HOME/build" -G Ninja \
  -DCMAKE_TOOLCHAIN_FILE="$VM_SOURCE/cmake/toolchains/$VM_ARCH.cmake" -DCOFFER_SYSROOT="$sysroot" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBUILD_TESTING=ON >"$log" 2>&1 ||
  { cat "$log" >&2; vm_die "configuring for $VM_ARCH failed"; }
cmake --build "$VM_HOME/build" -j "${JOBS:-$(nproc)}"
