#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches Debian's cloud kernel and the guest's packages for one architecture. Idempotent: does nothing, and needs no
# network, when what the package list asks for is already there.
#
# usage: vm_fetch.sh [--arch ARCH] [--refresh]
#
# leaves below build/vm/ARCH:  kernel/vmlinuz, kernel/modules/*.ko, kernel/config, kernel/release, busybox, debs/*.deb

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

arch=$(vm_host_arch)
refresh=
while (($#)); do
  case $1 in
    --arch) arch=$2 && shift 2 ;;
    --refresh) refresh=1 && shift ;;
    *) vm_die "unknown option $1" ;;
  esac
done
vm_use_arch "$arch"

# virtio to reach the disks; the others so that probes of overlay, vsock, fuse and the network have something to reach, and those of
# nftables so that names can lead to the proxy. A kernel with a command line loads these itself when they are asked for.
required_modules="virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk"
optional_modules="overlay vsock fuse dummy loop quota_tree quota_v2 libcrc32c nfnetlink nf_tables nf_defrag_ipv4 nf_defrag_ipv6 nf_tproxy_ipv4 nf_tproxy_ipv6 nft_tproxy"
packages=$(vm_words "$VM_SOURCE/tests/vm/guest_packages.txt" | xargs)

wanted=$(printf '%s\n' "$packages" "$required_modules" "$optional_modules" | sha256sum | cut -c1-16)
if [[ -z $refresh ]] && vm_stamp "$VM_HOME/fetched" "$wanted"; then
  exit 0
fi

vm_need apt-get apt
vm_need dpkg-deb dpkg
vm_say "fetching kernel and packages for $VM_ARCH"
vm_apt update >"$VM_HOME/apt.log" 2>&1 || { cat "$VM_HOME/apt.log" >&2; vm_die "apt-get update failed"; }

# The metapackage names the kernel of the day.
meta=linux-image-cloud-$VM_DEB_ARCH
image=$(apt-cache -c "$VM_HOME/apt/apt.conf" depends "$meta" 2>/dev/null |
  sed -n 's/^ *Depends: \(linux-image-6\.1\.[^ ]*\)$/\1/p' | head -1)
[[ -n $image ]] || vm_die "$meta does not lead to a 6.1 kernel: the host's apt sources must be those of Debian 12"

rm -rf "$VM_HOME/debs" "$VM_HOME/kernel" "$VM_HOME/kernel.tmp" "$VM_HOME/fetched"
mkdir -p "$VM_HOME/debs" "$VM_HOME/kernel/modules" "$VM_HOME/kernel.tmp"
# shellcheck disable=SC2086
(cd "$VM_HOME/debs" && vm_apt download $packages "$image" busybox-static) >>"$VM_HOME/apt.log" 2>&1 ||
  { tail -20 "$VM_HOME/apt.log" >&2; vm_die "downloading the guest's packages failed"; }

for deb in "$VM_HOME"/debs/linux-image-*.deb "$VM_HOME"/debs/busybox-static_*.deb; do
  vm_unpack "$deb" "$VM_HOME/kernel.tmp"
  rm "$deb"
done
cp "$VM_HOME"/kernel.tmp/boot/vmlinuz-* "$VM_HOME/kernel/vmlinuz"
cp "$VM_HOME"/kernel.tmp/boot/config-* "$VM_HOME/kernel/config"
cp "$VM_HOME"/kernel.tmp/bin/busybox "$VM_HOME/busybox"
echo "${image#linux-image-}" >"$VM_HOME/kernel/release"
for module in $required_modules $optional_modules; do
  path=$(find "$VM_HOME/kernel.tmp/lib/modules" -name "$module.ko" | head -1)
  if [[ -n $path ]]; then
    cp "$path" "$VM_HOME/kernel/modules/"
  elif [[ " $required_modules " == *" $module "* ]]; then
    vm_die "$image has no module $module"
  fi
done
rm -rf "$VM_HOME/kernel.tmp"
echo "$wanted" >"$VM_HOME/fetched"
vm_say "$(du -sh "$VM_HOME/debs" | cut -f1) of packages, kernel $(<"$VM_HOME/kernel/release")"
