#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A guided tour: real commands that work inside a boundary, real attacks that do not, and after each attack what the
# host saw. It is a test as well: the status is 1 if an attack succeeded or a command failed.
#   scripts/demo.sh [PATH-TO-COFFER]     as root or as an ordinary user; nothing leaves this machine
#
# An attack is judged by the host, never by what the attacker says. Where it is harmless, the same code first runs
# outside, to show that it works when nothing stops it. Everything planted is removed at the end, also after Ctrl-C.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
coffer=$(realpath "${1:-$here/../build/coffer}")
python=$(PATH=/usr/bin:/bin:$PATH command -v python3) || { echo 'demo: there is no python3' >&2; exit 1; }
if [ ! -x "$coffer" ]; then
  echo "demo: $coffer is not there; \`make demo\` builds it first" >&2
  exit 1
fi

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' blue=$'\e[36m' plain=$'\e[0m'
else
  bold='' dim='' green='' red='' blue='' plain=''
fi

# --- what is planted, and how it is taken away again ------------------------------------------------------------------
started=$SECONDS
work=$(cd "$(mktemp -d "${TMPDIR:-/tmp}/coffer-demo.XXXXXX")" && pwd -P) || exit 1
# The daemon's gateway has a uid of its own and must be able to pass.
gate=$(mktemp -d "${TMPDIR:-/tmp}/coffer-demo-gate.XXXXXX") && chmod 711 "$gate" || exit 1
token=canary-$$-$RANDOM$RANDOM
home=${HOME:-}
if [ ! -d "$home" ] || [ ! -w "$home" ]; then home=$work/home; mkdir "$home"; fi
secret=$(cd "$home" && pwd -P)/.coffer-demo-$$
helpers=()
clean() {
  local pid
  for pid in "${helpers[@]}"; do kill -KILL "$pid" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf -- "$work" "$gate"
  rm -f -- "$secret"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
cd "$work" || exit 1
mkdir attacks invoices report shared

# --- how it is told ---------------------------------------------------------------------------------------------------
failures=0 held=0 count=0 status=0
chapter() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '   %s\n' "$*"; }
line() { printf '   %s%-9s%s%s\n' "$dim" "$1" "$plain" "$2"; }
good() { printf '   %s%-9s%s%s\n' "$green" "$1" "$2" "$plain"; }
bad() { printf '   %s%-9s%s%s\n' "$red$bold" "$1" "$2" "$plain"; failures=$((failures + 1)); }
attack() { count=$((count + 1)); printf '\n%s%2d. %s%s\n' "$bold" "$count" "$1" "$plain"; line tried "$2"; }
holds() { held=$((held + 1)); good 'held' "$1"; }
# control CONDITION-STATUS TEXT: without a working control an attack that fails proves nothing.
control() { if [ "$1" = 0 ]; then line outside "$2"; else bad 'CONTROL' "failed: $2"; fi; }
# verdict CONDITION-STATUS WHAT-THE-HOST-SAW WHAT-IT-WOULD-MEAN-OTHERWISE
verdict() { if [ "$1" = 0 ]; then holds "$2"; else bad 'BROKEN' "$3"; fi; }

quoted() {
  local word text=
  for word in "$@"; do
    case $word in *[!a-zA-Z0-9_./:=,@%+-]* | '') word="'$word'" ;; esac
    text+=" $word"
  done
  printf '%s' "${text# }"
}
# boundary ARG...: shows and runs `coffer run ARG...`; the answer is in $status, out, err and receipt.json.
boundary() {
  printf '   %s$ coffer run %s%s\n' "$blue" "$(quoted "$@" | cut -c -104)" "$plain"
  rm -f receipt.json
  "$coffer" run --receipt receipt.json "$@" >out 2>err
  status=$?
}
# field NAME...: a value of the last receipt.
field() {
  "$python" -I - receipt.json "$@" 2>/dev/null <<'PY'
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2:]:
    value = value[key] if isinstance(value, dict) else None
print("" if value is None else value)
PY
}
printable() { LC_ALL=C tr -cd '\12\40-\176' <"$1"; }
# What a person would see of the last call: its exit status, the class of the error, its last words.
happened() {
  local class words
  class=$(field error class)
  words=$(printable out | grep -v '^ *$' | tail -n 1 | cut -c -80)
  [ -n "$words" ] || words=$(printable err | grep -vE '^ *$|^coffer: |^  hint: ' | tail -n 1 | cut -c -80)
  [ -z "$class" ] || words="$class: $(field error message)"
  line happened "exit $status${words:+, $words}"
}
# The processes of this host whose command line holds a word. Words are unique to this run, and come from a file, so that
# the command that looks for them does not find itself.
running() {
  printf '%s' "$1" >word
  grep -laF -f word /proc/[0-9]*/cmdline 2>/dev/null | sed 's|^/proc/\([0-9]*\)/.*|\1|' | tr '\n' ' '
}
# gone WORD: waits until no process has the word, at most two seconds; prints how long that took.
gone() {
  local begin=${EPOCHREALTIME/./} now
  while [ -n "$(running "$1")" ]; do
    now=${EPOCHREALTIME/./}
    [ $((now - begin)) -lt 2000000 ] || return 1
    sleep 0.01
  done
  now=${EPOCHREALTIME/./}
  echo "$(((now - begin) / 1000)) ms"
}

# --- the tour ---------------------------------------------------------------------------------------------------------
printf '%sCofferdam: a watertight wall around every tool call%s\n' "$bold" "$plain"
say "$("$coffer" --version), as uid $(id -u) on Linux $(uname -r), $(uname -m)"

chapter 'Real work: what a call is given'

cat >hello.py <<'PY'
import os, sys
print(f"{sys.version.split()[0]}: {' + '.join(sys.argv[1:])} = {sum(map(int, sys.argv[1:]))}, in {os.getcwd()}")
PY
boundary hello.py 17 25
sed 's/^/   /' out
if [ $status = 0 ] && grep -q ' = 42, in ' out; then :; else bad FAILED "exit $status: $(printable err | head -n 1)"; fi
say "${dim}One file came in, with the interpreter that runs it. Its neighbours and your directory stayed outside.$plain"
echo

boundary -- sh -c 'printf "%s\n" to be or not to be | sort | uniq -c | sort -rn | head -n 2'
sed 's/^/   /' out
if [ $status = 0 ] && grep -qE '2 (to|be)' out; then :; else bad FAILED "exit $status: $(printable err | head -n 1)"; fi
echo

printf 'acme,120\nglobex,80\n' >invoices/march.csv
printf 'acme,42\n' >invoices/april.csv
cat >summarise.py <<'PY'
import csv, collections, glob
totals = collections.Counter()
for name in glob.glob("/data/*.csv"):
    for customer, amount in csv.reader(open(name)):
        totals[customer] += int(amount)
with open("/out/totals.txt", "w") as out:
    for customer, amount in totals.most_common():
        print(customer, amount, file=out)
PY
boundary --ro invoices:/data --out report summarise.py
if [ $status = 0 ] && grep -qx 'acme 162' report/totals.txt 2>/dev/null; then
  sed 's/^/   report\/totals.txt: /' report/totals.txt
else
  bad FAILED "exit $status: $(printable err | head -n 1)"
fi
say "${dim}One directory to read, one to write; the result belongs to its owner, uid $(stat -c %u report/totals.txt 2>/dev/null).$plain"
level=$(field isolation level)
say "${dim}Level $level; $(field isolation layers | wc -w) layers stood, as seen from outside before it started.$plain"

chapter 'Real attacks: what a call tries to take'

# 1
(umask 077 && printf '%s\n' "$token" >"$secret")
cat >attacks/read_home.py <<'PY'
import glob, os, sys
places = [sys.argv[1], "/proc/self/root" + sys.argv[1], "/proc/1/root" + sys.argv[1], "/proc/self/cwd/../.." + sys.argv[1]]
for name in places + glob.glob("/home/*/.ssh/*") + glob.glob("/root/.*"):
    try:
        print(open(name).read())
    except OSError as error:
        last = error
print(last)
PY
attack 'Read a secret in the home directory' 'the file by its path, and around its path through /proc'
"$python" -I attacks/read_home.py "$secret" >out 2>/dev/null
grep -q "$token" out
control $? 'the same script reads it'
boundary attacks/read_home.py "$secret"
happened
! grep -q "$token" out err
verdict $? 'the secret is not in the output' 'the secret came out'

# 2
cat >listener.py <<'PY'
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
    open("connections", "a").write("x")
PY
"$python" -I listener.py >port 2>/dev/null &
helpers+=($!)
for _ in {1..500}; do [ -s port ] && break; sleep 0.01; done
port=$(cat port)
cat >attacks/connect.py <<'PY'
import socket, sys
socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=2).recv(1)
print("connected")
PY
attack 'Open a network connection' "to 127.0.0.1:$port, where a listener waits"
: >connections
"$python" -I attacks/connect.py "$port" >/dev/null 2>&1
for _ in {1..100}; do [ -s connections ] && break; sleep 0.01; done
[ "$(stat -c %s connections)" = 1 ]
control $? 'the same script connects: the listener counted 1'
boundary attacks/connect.py "$port"
happened
[ "$(stat -c %s connections)" = 1 ] && kill -0 "${helpers[0]}"
verdict $? 'the listener still counts 1' 'the listener was reached'

# 3
env "SECRET_OF_ANOTHER=$token" sleep "86399.$$" &
victim=$!
helpers+=("$victim")
cat >attacks/look_around.py <<'PY'
import glob
seen = [p for p in glob.glob("/proc/[0-9]*")]
for process in seen:
    for name in ("cmdline", "environ"):
        try:
            print(process, name, open(f"{process}/{name}").read().replace("\0", " "))
        except OSError:
            pass
print(f"{len(seen)} process in sight")
PY
attack 'See other processes, their arguments and environments' 'every /proc/PID/cmdline and environ'
"$python" -I attacks/look_around.py >out 2>/dev/null
grep -qa "$token" out
control $? 'the same script finds the secret of another process'
boundary attacks/look_around.py
happened
! grep -qE "$token|86399\.$$" out
verdict $? "none of the host's $(find /proc -maxdepth 1 -name '[0-9]*' | wc -l) processes was visible" 'a process of the host was visible'

# 4
attack 'Kill everything it can' 'SIGKILL to init and to every process'
boundary -- bash -c 'kill -9 1; kill -9 -1; echo "sent to all: init lives, I am alone"'
happened
kill -0 "$victim" 2>/dev/null
verdict $? 'a process of the same user outside lives on, and so did coffer' 'a process outside was killed'

# 5
attack 'Fork bomb' 'a function that starts itself twice, for ever'
boundary --wall 2s -- bash -c 'bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 60' "bomb-$token"
happened
peak=$(field limits processes used)
left=$(running "bomb-$token" | wc -w)
[ $status = 122 ] && [ "${peak:-99}" -le 34 ] && [ "$left" = 0 ]
verdict $? "at most ${peak:-?} processes at once (the cap is 32, and init); none is left" "exit $status, $peak processes, $left left"

# 6
attack 'Memory bomb' 'as much memory as there is, 10 MiB at a time'
boundary -- python3 -c 'hoard = [bytearray(10 << 20) for _ in range(100000)]'
happened
[ $status = 122 ] && [ "$(field error class)" = limit.memory ]
verdict $? "it ended at its own cap of 256 MiB, nobody else was touched" "exit $status"

# 7
attack 'Endless loop' 'while True: pass'
boundary --cpu 1s -- python3 -c 'while True: pass'
happened
[ $status = 122 ] && [ "$(field error class)" = limit.cpu ]
verdict $? 'ended when its processor time was spent' "exit $status"

# 8
attack 'Output flood' '200 MB of text'
boundary --output 64KiB -- sh -c 'yes | head -c 200000000'
line happened "exit $status, $(printable out | tail -n 1)"
[ "$(stat -c %s out)" -lt 70000 ] && [ "$(field output truncated)" = True ]
verdict $? "$(stat -c %s out) bytes arrived; the other $(($(field output produced) / 1000000)) MB were drained, not kept" 'the flood came through'

# 9
printf 'original\n' >shared/original.txt
cat >attacks/write_outside.py <<'PY'
import sys
for name in [sys.argv[1], "/data/original.txt", "/data/new.txt", "/usr/bin/ls", "/etc/passwd", "/in/write_outside.py", "/proc/sys/kernel/core_pattern"]:
    try:
        open(name, "a").write("owned\n")
        print("WROTE", name)
    except OSError as error:
        print(error)
PY
attack 'Write outside' 'a host path, a read-only mount, /usr, /etc, its own source, a kernel setting'
mark=$(sha256sum /usr/bin/ls /etc/passwd attacks/write_outside.py shared/original.txt /proc/sys/kernel/core_pattern)
boundary --ro shared:/data attacks/write_outside.py "$work/planted.txt"
happened
! grep -q WROTE out && [ ! -e planted.txt ] && [ ! -e shared/new.txt ] &&
  [ "$mark" = "$(sha256sum /usr/bin/ls /etc/passwd attacks/write_outside.py shared/original.txt /proc/sys/kernel/core_pattern)" ]
verdict $? 'no new file, and every checksum is what it was' 'something outside was written'

# 10
attack 'Plant a setuid program for later' 'a shell in the output directory, chmod 4755'
cp /bin/sh control.sh && chmod 4755 control.sh && [ -u control.sh ]
control $? 'the same chmod works'
rm -f control.sh
boundary --out report -- sh -c 'cp /bin/sh /out/backdoor && chmod 4755 /out/backdoor'
happened
[ -e report/backdoor ] && [ -z "$(find report -perm /6000)" ]
verdict $? "the file arrived as $(stat -c %A report/backdoor 2>/dev/null): a copy without the bit" 'a setuid file arrived'

# 11
cat >attacks/new_walls.py <<'PY'
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, *arguments):
    answer = libc[name](*arguments)
    print(name, "SUCCEEDED" if answer >= 0 else os.strerror(ctypes.get_errno()))
attempt("unshare", 0x10000000)
attempt("mount", b"none", b"/tmp", b"tmpfs", 0, None)
attempt("ptrace", 16, os.getppid(), 0, 0)
attempt("setns", 0, 0)
PY
attack 'Build or enter other walls' 'unshare, mount, ptrace and setns'
boundary attacks/new_walls.py
happened
! grep -q SUCCEEDED out && grep -q 'unshare Operation not permitted' out && field syscalls denied | grep -q unshare
verdict $? "refused and recorded: $(field syscalls denied | tr -d "{}'")" 'a call succeeded, or was not recorded'

# 12
cat >attacks/daemon.py <<'PY'
import os, signal, sys, time
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        os.write(told, b"x")
        while True:
            with open(sys.argv[1], "a") as heart:
                heart.write("beat\n")
            time.sleep(0.02)
    os._exit(0)
os.wait()
os.read(ready, 1)
time.sleep(0.2)
print("the daemon beats; its parent leaves")
PY
attack 'Stay behind' 'a daemon: double fork, own session, every signal ignored, a heartbeat in the output'
boundary --out report attacks/daemon.py /out/heartbeat "daemon-$token"
happened
left=$(running "daemon-$token")
beats=$(stat -c %s report/heartbeat 2>/dev/null || echo 0)
sleep 0.3
[ $status = 0 ] && [ "$beats" -gt 0 ] && [ -z "$left" ] && [ "$beats" = "$(stat -c %s report/heartbeat)" ]
verdict $? "$((beats / 5)) heartbeats while it ran, none since; no process is left" "still running: ${left:-?}, $beats bytes"

# 13
attack 'Outlive the supervisor' 'coffer itself gets SIGKILL while a call runs'
printf '   %s$ coffer run -- sleep 86397.%s & kill -KILL $!%s\n' "$blue" "$$" "$plain"
"$coffer" run --wall 60s -- sleep "86397.$$" >/dev/null 2>&1 &
supervisor=$!
helpers+=("$supervisor")
for _ in {1..500}; do
  [ "$(running "86397.$$" | wc -w)" -ge 2 ] && break
  sleep 0.01
done
alive=$(running "86397.$$" | wc -w)
{ kill -KILL "$supervisor" && wait "$supervisor"; } 2>/dev/null
if took=$(gone "86397.$$") && [ "$alive" -ge 2 ]; then
  line happened "$alive processes carried its name (coffer and the command), now none does"
  holds "the kernel took the whole boundary down with it, within $took"
else
  bad BROKEN "still running: $(running "86397.$$") ($alive before)"
fi

chapter 'The receipt: what stood, what was used, what was refused'
boundary attacks/new_walls.py
"$python" -I - <<'PY'
import json
receipt = json.load(open("receipt.json"))
show = {key: receipt[key] for key in ("schema", "outcome", "exit", "duration_ms", "blast_radius")}
show["isolation"] = {"level": receipt["isolation"]["level"], "layers": len(receipt["isolation"]["layers"]),
                     "missing": [entry["layer"] for entry in receipt["isolation"]["missing"]]}
show["limits"] = {name: f"{use['used']} of {use['cap']} {use['unit']}" for name, use in receipt["limits"].items()
                  if name in ("cpu", "memory", "processes")}
show["denials"] = [f"{denial['count']} x {denial['target']}" for denial in receipt["denials"]]
for key, value in show.items():
    print(f"   {key + ':':13} {json.dumps(value)}")
PY
[ $status = 0 ] || bad FAILED "exit $status"

chapter 'The gate and the record: declared tools over HTTP, a denial with its fix, fourteen retries that run once, the proof'
"$python" -I "$here/demo_gate.py" "$coffer" "$gate/state" || bad FAILED 'the gate is not as told'

chapter 'coffer doctor: what this host can enforce'
if "$coffer" doctor >out 2>&1; then
  sed 's/^/   /' out
else
  sed 's/^/   /' out
  [ "$level" != container ] || bad FAILED 'doctor says that the default level cannot be reached, yet it was'
fi

echo
if [ $failures = 0 ]; then
  printf '%s%d attacks, %d held; every command did its work. %d s.%s\n' "$green$bold" "$count" "$held" $((SECONDS - started)) "$plain"
  say "Next: README.md; \`coffer run --help\`; \`make test\` runs the whole suite."
else
  printf '%s%d of the checks above FAILED.%s\n' "$red$bold" "$failures" "$plain"
  exit 1
fi
