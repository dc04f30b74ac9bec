#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The VM lane: our build on Debian's 6.1 kernel with cgroup v2 and Landlock ABI 2, in QEMU's software emulation.
#
# usage: vm.sh test      everything in tests/vm/suite.list, on this machine's architecture
#        vm.sh short     the lines marked `short` (CI)
#        vm.sh all       everything, on this architecture and then, cross-compiled, on the other
# options: --arch ARCH   only that one      --build DIR   of this architecture (default build)
#          --only NAMES  lines of the suite (one word, or quoted)      --verbose   the whole console, and what passing tests said
#
# The build of this architecture must exist (`make all`); the other one is built here.

# shellcheck source=scripts/vm_lib.sh
. "$(dirname "$0")/vm_lib.sh"

usage() { vm_die "usage: vm.sh test|short|all [--arch ARCH] [--build DIR] [--only NAMES] [--verbose]"; }
verb=${1-}
[[ -n $verb ]] || usage
shift
build=$VM_SOURCE/build
archs=
export VM_ONLY=${VM_ONLY:-} VM_VERBOSE=
run_options=()
while (($#)); do
  case $1 in
    --arch) archs=${2:?} && shift 2 ;;
    --build) build=${2:?} && shift 2 ;;
    --only) VM_ONLY=${2:?} && shift 2 ;;
    --verbose) VM_VERBOSE=1 && run_options+=(--verbose) && shift ;;
    *) usage ;;
  esac
done
case $verb in
  test) VM_MODE=full limit=3600 archs=${archs:-$(vm_host_arch)} ;;
  short) VM_MODE=short limit=1150 archs=${archs:-$(vm_host_arch)} ;;
  all) VM_MODE=full limit=5400 archs=${archs:-$(vm_host_arch) $(vm_other_arch)} ;;
  *) usage ;;
esac
export VM_MODE

# One guest at a time, also between two runs of this script.
mkdir -p "$VM_DIR"
exec 9>"$VM_DIR/lock"
flock -n 9 || { vm_say "another run is going on; waiting for it" && flock 9; }

failed=
for arch in $archs; do
  began=$SECONDS
  tree=$build
  if [[ $arch != "$(vm_host_arch)" ]]; then
    "$VM_SCRIPTS/vm_cross_build.sh" --arch "$arch"
    tree=$VM_DIR/$arch/build
  fi
  "$VM_SCRIPTS/vm_fetch.sh" --arch "$arch"
  "$VM_SCRIPTS/vm_initramfs.sh" --arch "$arch"
  "$VM_SCRIPTS/vm_image.sh" --arch "$arch" --build "$tree"
  vm_say "$arch: ready to boot after $((SECONDS - began)) s"
  setpriv --pdeathsig TERM "$VM_SCRIPTS/vm_run.sh" --arch "$arch" --timeout "$limit" "${run_options[@]}" 9>&- || failed="$failed $arch"
done
[[ -z $failed ]] || vm_die "FAILED on:$failed"
