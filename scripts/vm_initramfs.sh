#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the guest's initramfs: busybox, the virtio modules and tests/vm/initramfs_init.sh, which mounts the root disk and
# hands over. The tests do not run from the initramfs, because rootfs cannot be left with pivot_root and tmpfs has no
# id-mapped mounts before Linux 6.3: boundaries would be tested against a host nobody has.
#
# usage: vm_initramfs.sh [--arch ARCH]      leaves build/vm/ARCH/initramfs.gz

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

arch=$(vm_host_arch)
if [[ ${1-} == --arch ]]; then arch=$2; fi
vm_use_arch "$arch"
vm_need cpio cpio

init=$VM_SOURCE/tests/vm/initramfs_init.sh
wanted=$(cat "$VM_HOME/fetched" "$init" "$0" | sha256sum | cut -c1-16)
if vm_stamp "$VM_HOME/initramfs.stamp" "$wanted" && [[ -f $VM_HOME/initramfs.gz ]]; then exit 0; fi

tree=$VM_HOME/initramfs.tmp
rm -rf "$tree"
mkdir -p "$tree"/{bin,dev,lib,proc,root,sys}
cp "$VM_HOME/busybox" "$tree/bin/busybox"
cp "$VM_HOME"/kernel/modules/*.ko "$tree/lib/"
install -m 755 "$init" "$tree/init"
(cd "$tree" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) | gzip -1 >"$VM_HOME/initramfs.gz"
rm -rf "$tree"
echo "$wanted" >"$VM_HOME/initramfs.stamp"
