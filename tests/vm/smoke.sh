#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first questions on a foreign kernel: does a boundary come up, at which level, with which layers, and do the limits
# that need cgroup v2 bite. Every check prints what it saw, because on this machine there is nothing to log in to.

passed=0
failed=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

ok() { passed=$((passed + 1)) && echo "ok   $1"; }
bad() {
  failed=$((failed + 1))
  echo "FAIL $1"
  shift
  printf '     %s\n' "$@"
}

# expect NAME STATUS COMMAND...: runs it, compares the exit status, shows both streams if it differs.
expect() {
  name=$1 want=$2
  shift 2
  "$@" >"$dir/out" 2>"$dir/err" </dev/null
  got=$?
  if [ $got = "$want" ]; then
    ok "$name"
  else
    bad "$name: exit $got instead of $want" "stdout: $(head -c 600 "$dir/out")" "stderr: $(head -c 1200 "$dir/err")"
  fi
}
# field RECEIPT EXPRESSION: a value of the receipt r.
field() {
  python3 -c 'import json,sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2" 2>&1
}
same() { if [ "$2" = "$3" ]; then ok "$1"; else bad "$1: expected '$2', found '$3'"; fi; }

r=$dir/receipt.json
expect "version" 0 "$COFFER_BIN" --version
expect "doctor" 0 "$COFFER_BIN" doctor
"$COFFER_BIN" doctor --json >"$dir/doctor.json" 2>"$dir/err" || :
if ! python3 -m json.tool "$dir/doctor.json" >/dev/null; then bad "doctor --json" "$(cat "$dir/err")"; else ok "doctor --json"; fi
sed 's/^/doctor: /' "$dir/doctor.json"

expect "true" 0 "$COFFER_BIN" run --receipt "$r" -- true
echo "layers: $(field "$r" 'r["isolation"]')"
echo "limits: $(field "$r" 'r["limits"]')"
same "level" container "$(field "$r" 'r["isolation"]["level"]')"
expect "own exit status" 7 "$COFFER_BIN" run -- sh -c 'exit 7'
expect "python" 0 "$COFFER_BIN" run -- python3 -c 'import json, hashlib, subprocess'
expect "perl" 0 "$COFFER_BIN" run -- perl -e 'exit 0'
expect "bash" 0 "$COFFER_BIN" run -- bash -c 'exit 0'

expect "process level" 0 "$COFFER_BIN" run --level process --receipt "$r" -- true
# Landlock ABI 2 keeps no signal inside; as root the uid does.
unscoped='"signal-scope" in [m["layer"] for m in r["isolation"]["missing"]]'
same "process level: signals are told not to stay inside" "$([ "$VM_WHO" = root ] && echo False || echo True)" "$(field "$r" "$unscoped")"
expect "wall time" 122 "$COFFER_BIN" run --wall 2s --receipt "$r" -- sleep 60
same "wall class" limit.wall "$(field "$r" 'r["error"]["class"]')"
expect "memory" 122 "$COFFER_BIN" run --memory 64MiB --receipt "$r" -- python3 -c 'b = bytearray(512 << 20)'
same "memory class" limit.memory "$(field "$r" 'r["error"]["class"]')"
expect "cpu time" 122 "$COFFER_BIN" run --cpu 1s --receipt "$r" -- sh -c 'while :; do :; done'
same "cpu class" limit.cpu "$(field "$r" 'r["error"]["class"]')"

if [ "$VM_WHO" = root ] || [ "$VM_WHO" = delegated ]; then
  expect "floor cgroup-memory can be met" 0 "$COFFER_BIN" run --floor cgroup-memory -- true
else
  expect "floor cgroup-memory is refused without delegation" 120 "$COFFER_BIN" run --floor cgroup-memory -- true
fi
expect "floor landlock can be met with ABI 2" 0 "$COFFER_BIN" run --floor landlock -- true

# A program that knows no proxy: the resolver inside and the tproxy rules of its network lead a name to the egress process.
cat >"$dir/redirect.py" <<'END'
import socket, subprocess, sys, threading
coffer, receipt, allowed = sys.argv[1:]
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
def serve():
    while True:
        one, _ = server.accept()
        one.sendall(b"reached")
        one.close()
threading.Thread(target=serve, daemon=True).start()
inside = f"import socket; print(socket.create_connection(('echo.test', {port}), 30).recv(100).decode())"
run = subprocess.run([coffer, "run", "--receipt", receipt, "--allow", f"tcp://{allowed}:{port}", "--resolve", f"{allowed}=127.0.0.1",
                      "--dangerously-allow-address", "127.0.0.1", "--", "python3", "-c", inside], capture_output=True, text=True)
print(run.stdout, run.stderr)
sys.exit(0 if run.stdout == "reached\n" else 3)
END
expect "a name leads to the proxy" 0 python3 "$dir/redirect.py" "$COFFER_BIN" "$r" echo.test
same "the redirect is there" "[]" "$(field "$r" '[m for m in r["isolation"]["missing"] if "egress" in m["layer"]]')"
expect "another name does not" 3 python3 "$dir/redirect.py" "$COFFER_BIN" "$r" other.test

# Writing through --rw: the file belongs to the directory's owner and to nobody else. ext4 has id-mapped mounts in 6.1.
mkdir "$dir/rw"
expect "--rw on ext4" 0 "$COFFER_BIN" run --rw "$dir/rw:/rw" -- sh -c 'echo x > /rw/f'
same "--rw owner on ext4" "$(id -u)" "$(stat -c %u "$dir/rw/f" 2>&1)"
# tmpfs has none before 6.3: working and right, or refused with the reason; never a file of a stranger.
shm=$(mktemp -d /srv/tmpfs/smoke.XXXXXX)
"$COFFER_BIN" run --rw "$shm:/rw" -- sh -c 'echo x > /rw/f' >"$dir/out" 2>"$dir/err"
status=$?
if [ $status = 0 ]; then
  same "--rw owner on tmpfs" "$(id -u)" "$(stat -c %u "$shm/f" 2>&1)"
elif { [ $status = 120 ] || [ $status = 125 ]; } && grep -q '^coffer: .*' "$dir/err"; then
  ok "--rw on tmpfs is refused with a reason: $(head -1 "$dir/err")"
else
  bad "--rw on tmpfs: exit $status" "$(cat "$dir/err")"
fi
rm -rf "$shm"

echo "$passed passed, $failed failed"
[ $failed = 0 ]
