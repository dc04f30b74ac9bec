#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086  # no path or name here holds a space
#
# Process 1 of the guest: makes the machine look like a booted Debian 12 with cgroup v2, runs the suite list as the users
# it names, and after every line looks for what stayed behind: processes, mounts, cgroups. The protocol on the console:
#
#   VM-TEST: PASS|FAIL|ABSENT name who seconds passed failed skipped
#   VM-RESULT: N passed, M failed      the last word; anything else is a failure of the lane
#
# The output of a test is shown only when it failed, between VM-LOG: begin and VM-LOG: end.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
root=/opt/coffer
cg=/sys/fs/cgroup
total_passed=0
total_failed=0
total_skipped=0

finish() {
  echo "VM-NOTE: guest up for $(cut -d' ' -f1 /proc/uptime) s"
  echo "VM-RESULT: $total_passed passed, $total_failed failed"
  sync
  busybox poweroff -f
}

die() {
  echo "VM-NOTE: guest_init: $1"
  total_failed=$((total_failed + 1))
  finish
}

# --- The machine -----------------------------------------------------------------------------------------------------

mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t securityfs -o nosuid,nodev,noexec securityfs /sys/kernel/security
mount -t cgroup2 -o nosuid,nodev,noexec,nsdelegate cgroup2 $cg || die "no cgroup v2"
mount -t tmpfs -o nosuid,nodev,mode=755 run /run
mkdir -p /dev/pts /dev/shm /run/user/1000 /run/vm
mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev,mode=1777 shm /dev/shm
mkdir -p /srv/tmpfs
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs /srv/tmpfs # 6.1 has no id-mapped mounts there
ln -sfn /proc/self/fd /dev/fd
chown 1000:1000 /home/user /run/user/1000
chown 1001:1001 /home/bare
chmod 700 /home/user /home/bare /run/user/1000
hostname vmguest
busybox ip link set lo up
# A network that a boundary must not see: the controls of the network probes need one.
busybox ip link add outside type dummy && busybox ip addr add 10.99.0.1/24 dev outside && busybox ip link set outside up
ldconfig
# shellcheck source=/dev/null
. $root/vm.env

# The tree that systemd would have made: slices with controllers switched on, leaves that hold processes.
controllers=
read -r offered <$cg/cgroup.controllers
for controller in $offered; do
  case $controller in cpu | io | memory | pids) controllers="$controllers +$controller" ;; esac
done
slice() {
  mkdir -p "$cg/$1"
  echo "$controllers" >"$cg/$1/cgroup.subtree_control" || die "cannot enable$controllers in /$1"
}
slice .
for dir in user.slice user.slice/user-0.slice user.slice/user-1000.slice user.slice/user-1001.slice; do slice $dir; done
delegated=user.slice/user-1000.slice/user@1000.service
for dir in $delegated $delegated/app.slice; do slice $dir; done
for dir in $delegated $delegated/app.slice; do
  chown 1000:1000 $cg/$dir
  for file in cgroup.procs cgroup.threads cgroup.subtree_control; do chown 1000:1000 "$cg/$dir/$file"; done
done
mkdir -p $cg/init.scope && echo 1 >$cg/init.scope/cgroup.procs

# --- Running ---------------------------------------------------------------------------------------------------------

now_cs() { awk '{ printf "%d", $1 * 100 }' /proc/uptime; }

# What must be the same after a test as before it. Every test runs below user.slice, we in init.scope, kernel threads in
# the root; so whoever sits in any other cgroup stayed behind.
mounts() { cut -d' ' -f5 /proc/self/mountinfo | sort; }
cgroups() { find $cg -mindepth 1 -type d | sort; }
processes() {
  find $cg -mindepth 2 -name cgroup.procs ! -path '*/init.scope/*' -exec cat {} + 2>/dev/null |
    while read -r pid; do echo "$pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") $(cat "/proc/$pid/cgroup" 2>/dev/null)"; done
}

# excuse_of TEST WHO: prints the reason why it may be skipped here; false if there is none.
excuse_of() {
  while read -r pattern whos reason; do
    case $pattern in '' | '#'*) continue ;; esac
    # shellcheck disable=SC2254  # a pattern on purpose
    case $1 in $pattern) ;; *) continue ;; esac
    case ,$whos, in *",$2,"* | ,all,) echo "$reason" && return 0 ;; esac
  done <$root/tests/vm/skips.list
  return 1
}

# as_who COMMAND...: as the user and in the scope that run_one chose.
as_who() {
  (
    echo 0 >$cg/$scope/cgroup.procs || exit 125
    cd $root || exit 125
    # A login has none of init's descriptors, and no controlling terminal here.
    exec setsid setpriv --reuid $uid --regid $uid --init-groups \
      env -i PATH="$PATH" HOME=$home USER=$who LC_ALL=C.UTF-8 TMPDIR=/tmp \
      COFFER_BIN=$root/build/coffer COFFER_FAULTS_BIN=$root/build/coffer-faults \
      COFFER_PROBES=$root/build/tests/probes COFFER_SOURCE=$root COFFER_VM=1 VM_WHO=$who \
      "$@"
  )
}

# run_one NAME WHO SECONDS COMMAND...
run_one() {
  name=$1 who=$2 seconds=$3
  shift 3
  case $who in
    root) uid=0 home=/root scope=user.slice/user-0.slice/session-1.scope ;;
    user) uid=1000 home=/home/user scope=user.slice/user-1000.slice/session-2.scope ;;
    bare) uid=1001 home=/home/bare scope=user.slice/user-1001.slice/session-3.scope ;;
    delegated) uid=1000 home=/home/user scope=$delegated/app.slice/run-4.scope ;;
    *) die "suite.list: unknown user '$who'" ;;
  esac
  mounts >/run/vm/mounts.before
  mkdir -p $cg/$scope
  [ $who != delegated ] || chown -R 1000:1000 $cg/$scope
  cgroups >/run/vm/cgroups.before
  out=/run/vm/out
  began=$(now_cs)
  as_who timeout -k 5 "$seconds" "$@" >$out 2>&1 </dev/null
  status=$?
  took=$(($(now_cs) - began))

  # Counts: GoogleTest's own, or a last line "N passed, M failed", or the exit status.
  counts=$(awk '
    /^\[  PASSED  \] [0-9]+ test/ { p = $4; g = 1 }
    /^\[  FAILED  \] [0-9]+ test/ { f = $4; g = 1 }
    /^\[  SKIPPED \] [0-9]+ test/ { s = $4 }
    /^[0-9]+ passed, [0-9]+ failed/ { p = $1; f = $3; g = 1 }
    END { if (g) print p + 0, f + 0, s + 0 }' $out)
  if [ -z "$counts" ]; then
    if [ $status = 0 ]; then counts="1 0 0"; else counts="0 1 0"; fi
  fi
  passed=${counts%% *}
  failed=${counts#* } && failed=${failed%% *}
  skipped=${counts##* }
  [ $status = 0 ] || [ "$failed" != 0 ] || failed=1
  [ $status != 124 ] && [ $status != 137 ] || echo "VM-NOTE: $name as $who was stopped after $seconds s" >>$out

  # What stayed behind. A scope that still holds processes is killed, after it was reported.
  # Two seconds of grace are for tests that SIGKILL coffer and do not wait for what follows.
  tries=0
  while processes >/run/vm/processes.after && [ -s /run/vm/processes.after ] && [ $tries -lt 20 ]; do
    busybox usleep 100000
    tries=$((tries + 1))
  done
  if [ -s /run/vm/processes.after ]; then
    { echo "VM-NOTE: processes stayed behind:"; cat /run/vm/processes.after; } >>$out
    failed=$((failed + 1))
    # Not by cgroup.kill: afterwards the kernel kills at birth whatever CLONE_INTO_CGROUP makes from inside that cgroup,
    # seen in this guest; probably it compares how often the parent's cgroup was killed with the child's.
    while read -r pid _; do kill -9 "$pid"; done </run/vm/processes.after
  fi
  # These kill Cofferdam itself, and what that leaves is for the next start to remove.
  case $name in
    daemon_tests | faults_*) as_who build/coffer doctor --sweep >>$out 2>&1 </dev/null || failed=$((failed + 1)) ;;
  esac
  cgroups >/run/vm/cgroups.after
  mounts >/run/vm/mounts.after
  for kind in cgroups mounts; do
    if ! cmp -s /run/vm/$kind.before /run/vm/$kind.after; then
      { echo "VM-NOTE: $kind differ afterwards:"; diff /run/vm/$kind.before /run/vm/$kind.after; } >>$out
      failed=$((failed + 1))
    fi
  done

  # A skip counts as a failure unless skips.list says why this guest cannot run that test.
  sed -n 's/^\[  SKIPPED \] \([A-Za-z][^ ,]*\).*$/\1/p' $out | sort -u >/run/vm/skipped
  while read -r test; do
    if excuse=$(excuse_of "$test" "$who"); then
      echo "VM-SKIP: $test as $who: $excuse"
    else
      echo "VM-NOTE: $test was skipped, and tests/vm/skips.list has no reason for it" >>$out
      failed=$((failed + 1))
    fi
  done </run/vm/skipped

  verdict=PASS
  [ "$failed" = 0 ] || verdict=FAIL
  if [ $verdict = FAIL ] || [ -n "$VM_VERBOSE" ]; then
    echo "VM-LOG: begin $name $who (exit $status)"
    # Of GoogleTest, what it says about tests that passed is left out.
    grep -v '^\[ RUN  \|^\[       OK \]\|^\[-----' $out | tail -n 400
    echo "VM-LOG: end $name $who"
  fi
  echo "VM-TEST: $verdict $name $who $((took / 100)).$((took % 100 / 10)) s, $passed passed, $failed failed, $skipped skipped"
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
  total_skipped=$((total_skipped + skipped))
}

# run_line NAME WHOS SECONDS COMMAND...: as each of them, if every word that names a file of ours exists.
run_line() {
  line_name=$1 line_whos=$2 line_seconds=$3
  shift 3
  absent=
  for word in "$@"; do
    case $word in build/* | tests/* | contract/*) [ -e "$root/$word" ] || absent=$word ;; esac
  done
  for line_who in $(echo "$line_whos" | tr ',' ' '); do
    if [ -n "$absent" ]; then
      echo "VM-TEST: ABSENT $line_name $line_who ($absent)"
      [ -n "$optional" ] || total_failed=$((total_failed + 1))
    else
      run_one "$line_name" "$line_who" "$line_seconds" "$@" </dev/null
    fi
  done
}

echo "VM-NOTE: $(uname -srm), user space after $(cut -d' ' -f1 /proc/uptime) s, mode $VM_MODE, controllers$controllers"
while read -r name whos when seconds command; do
  case $name in '' | '#'*) continue ;; esac
  optional=
  case $name in *'?') optional=1 name=${name%?} ;; esac
  [ "$VM_MODE" = full ] || [ "$when" = short ] || continue
  if [ -n "$VM_ONLY" ]; then case " $VM_ONLY " in *" $name "*) ;; *) continue ;; esac; fi
  # `gtest PATTERN [FILTER]`: one line for every executable that matches.
  cd $root || die "no $root"
  case $command in
    'gtest '*)
      filter=${command#gtest }
      pattern=${filter%% *}
      filter=${filter#"$pattern"}
      for file in build/tests/$pattern; do
        command="$file${filter:+ --gtest_filter=${filter# }}"
        run_line "${file##*/}" "$whos" "$seconds" $command
      done
      ;;
    *) run_line "$name" "$whos" "$seconds" $command ;;
  esac
done <$root/tests/vm/suite.list
finish
