#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash
#
# The first process of the guest: reach the disks, mount them, hand over to guest_init.sh on the root disk.

bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs dev /dev

fail() {
  echo "VM-RESULT: 0 passed, 1 failed (initramfs: $1)"
  $bb poweroff -f
}

# Which of them needs which changes between releases of the kernel: those that lack another one are tried again.
left="virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk"
for _ in 1 2 3 4 5 6; do
  again=
  for module in $left; do
    $bb insmod /lib/$module.ko 2>/dev/null || again="$again $module"
  done
  left=$again
done
[ -z "$left" ] || fail "insmod$left"
# In the order in which they need each other.
for module in overlay vsock fuse dummy loop quota_tree quota_v2 libcrc32c nfnetlink nf_tables nf_defrag_ipv4 nf_defrag_ipv6 nf_tproxy_ipv4 nf_tproxy_ipv6 nft_tproxy; do
  [ ! -f /lib/$module.ko ] || $bb insmod /lib/$module.ko || echo "VM-NOTE: insmod $module failed"
done

# Disks may appear a moment after the driver: wait for the event, at most ten seconds.
tries=0
while [ ! -b /dev/vdb ] && [ $tries -lt 100 ]; do
  $bb usleep 100000
  tries=$((tries + 1))
done
$bb mount -t ext4 -o rw,noatime /dev/vda /root || fail "mount root disk"
$bb mount -t ext4 -o ro,noatime /dev/vdb /root/opt/coffer || fail "mount payload disk"
$bb mount --move /dev /root/dev
$bb umount /sys
$bb umount /proc
exec $bb switch_root /root /opt/coffer/tests/vm/guest_init.sh
