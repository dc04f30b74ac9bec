#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Proves that the guest is what this lane is for: Linux 6.1 with cgroup v2 only and Landlock ABI 2. If Debian's kernel
# changes, this fails instead of the lane quietly testing something else.

passed=0
failed=0
check() {
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
    echo "ok   $1"
  else
    failed=$((failed + 1))
    echo "FAIL $1: expected '$2', found '$3'"
  fi
}

check "kernel series" 6.1 "$(uname -r | cut -d. -f1-2)"
check "cgroup v2 is the only hierarchy" "cgroup2" "$(awk '$3 ~ /^cgroup/ { print $3 }' /proc/mounts | sort -u | xargs)"
for controller in cpu io memory pids; do
  check "controller $controller" $controller "$(tr ' ' '\n' </sys/fs/cgroup/cgroup.subtree_control | grep -x $controller)"
done
# landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) is 444 on every architecture.
check "Landlock ABI" 2 "$(perl -e 'print syscall(444, 0, 0, 1)')"
check "Landlock is active" yes "$(tr ',' '\n' </sys/kernel/security/lsm | grep -qx landlock && echo yes)"
check "user namespaces" 1 "$(cat /proc/sys/kernel/unprivileged_userns_clone)"
check "/tmp is on a disk" ext2/ext3 "$(stat -f -c %T /tmp)"
check "root's own uid" 0 "$(id -u)"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
