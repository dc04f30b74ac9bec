#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The places in a cgroup v2 tree where coffer may find itself, and what each must lead to: real limits, or a refusal
# that names the cause. Runs as root, because it builds the places; coffer runs in them as root or as uid 1000.

passed=0
failed=0
cg=/sys/fs/cgroup
slice=$cg/user.slice/user-1000.slice
dir=$(mktemp -d)
chmod 755 "$dir"
ok() { passed=$((passed + 1)) && echo "ok   $1"; }
bad() {
  failed=$((failed + 1))
  echo "FAIL $1"
  shift
  printf '     %s\n' "$@"
}

# inside CGROUP UID COMMAND...: the command is alone in the cgroup, as after exec by a service manager.
inside() (
  echo 0 >"$1/cgroup.procs" || exit 99
  uid=$2
  shift 2
  exec setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@" >"$dir/out" 2>"$dir/err" </dev/null
)
# expect NAME STATUS GOT
expect() {
  if [ "$2" = "$3" ]; then
    ok "$1"
  else
    bad "$1: exit $3 instead of $2" "stderr: $(head -c 1500 "$dir/err")"
  fi
}
# given CGROUP: delegated to uid 1000, as Delegate=yes does.
given() {
  mkdir -p "$1"
  chown 1000:1000 "$1" "$1/cgroup.procs" "$1/cgroup.threads" "$1/cgroup.subtree_control"
}
gone() {
  if find "$1" -mindepth 1 -type d | grep -q .; then
    bad "$2: cgroups stayed behind" "$(find "$1" -mindepth 1 -type d)"
  else
    ok "$2: no cgroup stayed behind"
  fi
}
eat='b = bytearray(512 << 20)'

# 1. Alone in a cgroup that is delegated, below one that is not: systemd-run --user --scope -p Delegate=yes. The
# supervisor moves into a leaf, which it cannot leave; whoever made the scope removes both.
lone=$slice/lone.scope
given "$lone"
inside "$lone" 1000 "$COFFER_BIN" run --floor cgroup-memory --floor cgroup-pids -- true
expect "alone in a delegated scope: limits can be had" 0 $?
rmdir "$lone"/*/ 2>/dev/null
rmdir "$lone" || bad "the scope cannot be removed" "$(find "$lone" -type d)"
given "$lone"
inside "$lone" 1000 "$COFFER_BIN" run --floor cgroup-memory --memory 64MiB -- python3 -c "$eat"
expect "alone in a delegated scope: memory bites" 122 $?
rmdir "$lone"/*/ 2>/dev/null
rmdir "$lone" || bad "the scope cannot be removed" "$(find "$lone" -type d)"

# 2. Not alone there: the rule of no inner processes forbids controllers, and saying so is all that can be done.
crowd=$slice/crowd.scope
given "$crowd"
sleep 300 &
sleeper=$!
echo $sleeper >"$crowd/cgroup.procs"
inside "$crowd" 1000 "$COFFER_BIN" run --floor cgroup-memory -- true
expect "crowded scope: the floor is refused" 120 $?
if grep -q "holds other processes\|cgroup" "$dir/err"; then ok "crowded scope: the cause is named"; else bad "crowded scope: no cause" "$(cat "$dir/err")"; fi
inside "$crowd" 1000 "$COFFER_BIN" run -- true
expect "crowded scope: without the floor it runs" 0 $?
inside "$crowd" 1000 "$COFFER_BIN" run --memory 64MiB -- python3 -c "$eat"
expect "crowded scope: memory still bites, without a cgroup" 122 $?
kill $sleeper
wait $sleeper 2>/dev/null
gone "$crowd" "crowded scope"
rmdir "$crowd"

# 3. Root in the root cgroup, which may distribute controllers although it holds processes.
inside $cg 0 "$COFFER_BIN" run --floor cgroup-memory --memory 64MiB -- python3 -c "$eat"
expect "root cgroup: memory bites" 122 $?

# 4. A container's view: own cgroup namespace, the tree mounted again, writable.
box=$cg/box.slice
mkdir "$box"
cat >"$dir/container.sh" <<EOF
umount /sys/fs/cgroup && mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /sys/fs/cgroup || exit 98
exec "$COFFER_BIN" run --floor cgroup-memory --memory 64MiB -- python3 -c '$eat'
EOF
inside "$box" 0 unshare --cgroup --mount sh "$dir/container.sh"
expect "cgroup namespace: memory bites" 122 $?
rmdir "$box"/*/ 2>/dev/null
rmdir "$box" || bad "the container's cgroup cannot be removed" "$(find "$box" -type d)"

# 5. The tree mounted read-only, as in an ordinary container; and no tree at all.
cat >"$dir/readonly.sh" <<EOF
mount -o remount,bind,ro /sys/fs/cgroup || exit 98
exec "$COFFER_BIN" run "\$@"
EOF
inside "$slice/../user-0.slice/session-1.scope" 0 unshare --mount sh "$dir/readonly.sh" --floor cgroup-memory -- true
expect "read-only tree: the floor is refused" 120 $?
inside "$slice/../user-0.slice/session-1.scope" 0 unshare --mount sh "$dir/readonly.sh" -- true
expect "read-only tree: without the floor it runs" 0 $?
cat >"$dir/none.sh" <<EOF
umount /sys/fs/cgroup || exit 98
exec "$COFFER_BIN" run "\$@"
EOF
inside "$slice/../user-0.slice/session-1.scope" 0 unshare --mount sh "$dir/none.sh" --floor cgroup-memory -- true
expect "no tree: the floor is refused" 120 $?
inside "$slice/../user-0.slice/session-1.scope" 0 unshare --mount sh "$dir/none.sh" --memory 64MiB -- python3 -c "$eat"
expect "no tree: memory still bites" 122 $?

rm -rf "$dir"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
