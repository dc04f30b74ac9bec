#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Boots the guest in software emulation, follows its console and judges its last word. Exit 0 only if the guest said
# "VM-RESULT: N passed, 0 failed" with N > 0; a panic, a hang or silence is a failure. Ctrl-C ends QEMU.
#
# usage: vm_run.sh [--arch ARCH] [--timeout SECONDS] [--verbose]      console log: build/vm/ARCH/serial.log

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

arch=$(vm_host_arch)
limit=1500
verbose=
while (($#)); do
  case $1 in
    --arch) arch=$2 && shift 2 ;;
    --timeout) limit=$2 && shift 2 ;;
    --verbose) verbose=1 && shift ;;
    *) vm_die "unknown option $1" ;;
  esac
done
vm_use_arch "$arch"

case $VM_ARCH in
  aarch64)
    vm_need qemu-system-aarch64 qemu-system-arm
    # Pointer authentication costs QEMU more than everything else together, and no test asks for it.
    machine=(qemu-system-aarch64 -M virt -cpu "max,pauth=off")
    console=ttyAMA0
    ;;
  x86_64)
    vm_need qemu-system-x86_64 qemu-system-x86
    machine=(qemu-system-x86_64 -M q35 -cpu max)
    console=ttyS0
    ;;
esac

log=$VM_HOME/serial.log
: >"$log"
began=$SECONDS
# If this script is killed outright, QEMU goes with it.
setpriv --pdeathsig KILL "${machine[@]}" -accel tcg -smp 2 -m 4096 -display none -nodefaults -no-reboot -serial "file:$log" \
  -kernel "$VM_HOME/kernel/vmlinuz" -initrd "$VM_HOME/initramfs.gz" \
  -append "console=$console quiet panic=-1 oops=panic" \
  -drive "file=$VM_HOME/root.img,format=raw,if=none,id=root,snapshot=on,cache=unsafe" \
  -device virtio-blk-pci,drive=root \
  -drive "file=$VM_HOME/payload.img,format=raw,if=none,id=payload,readonly=on" \
  -device virtio-blk-pci,drive=payload </dev/null &
qemu=$!
follow=
stop() {
  kill "$qemu" 2>/dev/null || true
  [[ -z $follow ]] || kill "$follow" 2>/dev/null || true
}
trap 'stop; exit 130' INT TERM
trap stop EXIT

# Progress, as it happens. Without --verbose only our own lines and the logs of what failed.
filter=(-e '/^VM-LOG: begin/,/^VM-LOG: end/{p;b}' -e '/^VM-/p' -e '/Kernel panic\|BUG:\|Oops/p')
[[ -z $verbose ]] || filter=(-e p)
tail -n +1 -f --pid="$qemu" "$log" | sed -un -e 's/\r$//' "${filter[@]}" &
follow=$!

hung=
while kill -0 "$qemu" 2>/dev/null; do
  if ((SECONDS - began >= limit)); then
    hung=1
    kill "$qemu" 2>/dev/null || true
    break
  fi
  read -rt 1 <> <(:) || true
done
status=0
wait "$qemu" || status=$?
wait "$follow" 2>/dev/null || true
follow=
trap - EXIT

took=$((SECONDS - began))
result=$(tr -d '\r' <"$log" | sed -n 's/^VM-RESULT: //p' | tail -1)
if [[ -n $hung ]]; then
  tail -n 30 "$log" >&2
  vm_die "$VM_ARCH guest did not finish within $limit s; console in $log"
fi
if [[ -z $result ]]; then
  tail -n 40 "$log" >&2
  vm_die "$VM_ARCH guest ended without a result (QEMU exit $status); console in $log"
fi
vm_say "$VM_ARCH: $result in $took s"
[[ $result =~ ^[1-9][0-9]*\ passed,\ 0\ failed$ ]] || vm_die "$VM_ARCH guest reports failures; console in $log"
