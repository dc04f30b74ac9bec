#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the guest's two disks. root.img is a small Debian userland that changes only with the package list; payload.img
# holds our build and the tests, and is made anew each time. QEMU throws away what the guest writes to either.
#
# ext4, because 6.1 has id-mapped mounts there and because /tmp of a bare Debian 12 is on the root disk. mke2fs -d fills
# an image without mounting it, so no root is needed.
#
# usage: vm_image.sh [--arch ARCH] --build DIR      leaves build/vm/ARCH/{root,payload}.img
#
# The payload mirrors the source tree: build/{coffer,cofferd,tests/...}  tests/  tools/ docs/ deploy/ sdk/python/  contract/  lib/ (what the root disk lacks)  vm.env

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

arch=$(vm_host_arch)
build=
while (($#)); do
  case $1 in
    --arch) arch=$2 && shift 2 ;;
    --build) build=$2 && shift 2 ;;
    *) vm_die "unknown option $1" ;;
  esac
done
vm_use_arch "$arch"
PATH=$PATH:/usr/sbin:/sbin
vm_need mke2fs e2fsprogs
vm_need readelf binutils
[[ $(id -u) == 0 ]] || vm_need fakeroot fakeroot
[[ -n $build ]] || vm_die "--build DIR is required"
[[ -x $build/coffer ]] || vm_die "$build/coffer is missing; build first"
build=$(cd "$build" && pwd)

# make_image TREE FILE MEBIBYTES
make_image() {
  rm -f "$2"
  truncate -s "$3M" "$2"
  vm_as_root mke2fs -q -t ext4 -O ^has_journal,^resize_inode -m 0 -E root_owner=0:0 -d "$1" "$2"
}

make_root() {
  local tree=$VM_HOME/root.tmp link deb
  rm -rf "$tree"
  mkdir -p "$tree"/usr/{bin,sbin,lib,lib64} "$tree"/{dev,proc,sys,run,tmp,var/tmp,root,home/user,home/bare,opt/coffer,etc}
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$tree/$link"; done
  for deb in "$VM_HOME"/debs/*.deb; do vm_unpack "$deb" "$tree"; done
  install -m 755 "$VM_HOME/busybox" "$tree/bin/busybox"
  ln -s mawk "$tree/usr/bin/awk"  # Debian makes it when a package is configured
  chmod 1777 "$tree/tmp" "$tree/var/tmp"
  chmod 700 "$tree/root"
  chmod u+s "$tree"/usr/bin/{newuidmap,newgidmap,mount,umount}
  # python's byte code is not packaged, and compiling it on every start would dominate the guest's time.
  if command -v python3.11 >/dev/null; then
    python3.11 -m compileall -q --invalidation-mode unchecked-hash -s "$tree" "$tree/usr/lib/python3.11" >/dev/null || true
  fi
  cat >"$tree/etc/passwd" <<EOF
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
user:x:1000:1000:an ordinary user:/home/user:/bin/sh
bare:x:1001:1001:an ordinary user without subordinate ids:/home/bare:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
EOF
  cat >"$tree/etc/group" <<EOF
root:x:0:
daemon:x:1:
tty:x:5:
audio:x:29:user
user:x:1000:
bare:x:1001:
nogroup:x:65534:
EOF
  echo 'user:100000:65536' | tee "$tree/etc/subuid" >"$tree/etc/subgid"
  echo 'root:*:19000:0:99999:7:::' >"$tree/etc/shadow" && chmod 600 "$tree/etc/shadow"
  echo 'vmguest' >"$tree/etc/hostname"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"
  printf 'passwd: files\ngroup: files\nhosts: files\n' >"$tree/etc/nsswitch.conf"
  printf '%s\n' "/lib/$VM_TRIPLET" "/usr/lib/$VM_TRIPLET" /opt/coffer/lib >"$tree/etc/ld.so.conf"
  ln -sf /usr/share/zoneinfo/Etc/UTC "$tree/etc/localtime"
  echo '0123456789abcdef0123456789abcdef' >"$tree/etc/machine-id"
  make_image "$tree" "$VM_HOME/root.img.tmp" 1024
  mv "$VM_HOME/root.img.tmp" "$VM_HOME/root.img"
  # Names only: what the guest can resolve by itself, so that the payload brings the other libraries.
  (cd "$tree" && find usr/lib -name '*.so*' -printf '%f\n' | sort -u) >"$VM_HOME/root.libs"
  rm -rf "$tree"
}

# Shared libraries of FILE that the root image lacks are copied to the payload.
add_libraries() {
  local file=$1 lib=$2 name path
  while read -r name; do
    grep -qxF -- "$name" "$VM_HOME/root.libs" && continue
    [[ -e $lib/$name ]] && continue
    path=
    for path in "/usr/lib/$VM_TRIPLET/$name" "/lib/$VM_TRIPLET/$name" "$VM_HOME/sysroot/usr/lib/$VM_TRIPLET/$name"; do
      [[ -e $path ]] && break
    done
    [[ -e $path ]] || vm_die "$(basename "$file") needs $name, which is neither in the guest nor on this host"
    cp -L "$path" "$lib/$name"
    add_libraries "$lib/$name" "$lib"
  done < <(LC_ALL=C readelf -d "$file" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
}

# copy_build TREE: coffer, coffer-faults, cofferd and the tests, at their place in the build, because tests find each other there.
copy_build() {
  local to=$1 file machine
  case $VM_ARCH in aarch64) machine=AArch64 ;; x86_64) machine=X86-64 ;; esac
  (cd "$build" && find coffer coffer-faults cofferd tests -type f -perm -u+x 2>/dev/null || true) | while read -r file; do
    [[ $(head -c4 "$build/$file" | tail -c3) == ELF ]] || continue
    readelf -h "$build/$file" | grep -q "Machine:.*$machine" || vm_die "$build/$file is not for $VM_ARCH"
    mkdir -p "$to/$(dirname "$file")"
    cp "$build/$file" "$to/$file"
    # Symbols stay (a backtrace needs names), debug information goes.
    "$(vm_tool strip)" --strip-debug "$to/$file"
  done
}

# vm_tool NAME: binutils that understand the guest's architecture.
vm_tool() {
  if command -v "$VM_TRIPLET-$1" >/dev/null; then echo "$VM_TRIPLET-$1"; else echo "$1"; fi
}

make_payload() {
  local tree=$VM_HOME/payload.tmp file size
  rm -rf "$tree"
  mkdir -p "$tree/build" "$tree/lib" "$tree/tests" "$tree/contract"
  copy_build "$tree/build"
  # The program in own_tree finds its library beside itself.
  find "$tree/build" -type f -perm -u+x ! -path '*/own_tree/*' |
    while read -r file; do add_libraries "$file" "$tree/lib"; done
  cp -r "$VM_SOURCE/tests/." "$tree/tests/"
  cp -r "$VM_SOURCE"/{tools,docs,deploy} "$tree/"
  mkdir "$tree/sdk" && cp -r "$VM_SOURCE/sdk/python" "$tree/sdk/"  # the second verifier of the log
  if [[ -f $VM_SOURCE/../shared/contract/boundary.py ]]; then
    cp "$VM_SOURCE/../shared/contract/boundary.py" "$tree/contract/"
  fi
  find "$tree" -name '*.cc' -delete
  {
    echo "VM_MODE=${VM_MODE:-full}"
    echo "VM_ONLY='${VM_ONLY:-}'"
    echo "VM_VERBOSE=${VM_VERBOSE:-}"
  } >"$tree/vm.env"
  chmod -R u+rwX,go+rX "$tree"
  size=$(du -sm "$tree" | cut -f1)
  make_image "$tree" "$VM_HOME/payload.img" $((size + size / 5 + 8))
  rm -rf "$tree"
  vm_say "payload $(du -h --apparent-size "$VM_HOME/payload.img" | cut -f1)"
}

wanted=$({ cat "$VM_HOME/fetched" && declare -f make_root make_image vm_unpack; } | sha256sum | cut -c1-16)
if ! vm_stamp "$VM_HOME/root.stamp" "$wanted" || [[ ! -f $VM_HOME/root.img ]]; then
  make_root
  echo "$wanted" >"$VM_HOME/root.stamp"
fi
make_payload
