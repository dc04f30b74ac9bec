#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Eight tenants on one daemon, one of them hostile, for a while; then everything is looked at.

The hostile tenant floods with requests whose clients leave, does not read large answers (of MCP neither), never finishes bodies and heads,
watches event streams by the hundred, prints megabytes, burns CPU, makes deep trees of many files, uploads in parallel, goes on with an
operator who is stopped and with keys that are revoked, and makes files with odd names and modes; another one fills its store, and one
its session. Meanwhile each role of the daemon is killed once, and this script starts the daemon again, as a service manager would.

Fails if: an honest tenant was refused or got a wrong answer while the daemon was up, /healthz failed, a trick was never played to
its end or was let through (soak_tricks.py), the gateway used more than 256 MiB, descriptors, processes, mounts or loop devices are
left, the state directory grew past its bound, or the record does not verify. Times are shown, not judged.

Usage: scripts/soak.py [--seconds 300] [--build build] [--as-user]
"""
import argparse
import collections
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from soak_daemon import ROLES, Daemon, field, kinds, loop_devices, read, size_of
from soak_mcp import mcp_call
from soak_tricks import CONFIG, FILLER, LARGE, PACKER, AnsweredTricks, NotPlayed, call

MEMORY_KIB = 256 * 1024
DISK = 4 * 2**30
REST_SECONDS = 90
SETTLE_SECONDS = 30  # calls that were admitted end, and clients that left are noticed
SPARE_DESCRIPTORS = 8
USER = 48213
HONEST = ["t1", "t2", "t3", "t4", "t5", "t6", "t7"]


class Soak(AnsweredTricks):
    def __init__(self, daemon, seconds):
        self.daemon, self.end = daemon, time.monotonic() + seconds
        self.seconds = seconds
        self.keys = {name: daemon.new_key(name, "a-" + name) for name in HONEST}
        # Each trick has an agent and a key of its own, all but one of one tenant: keys take turns, so no trick drowns the others.
        self.tricks_known = [name for name in dir(self) if name.startswith("trick_")]
        self.keys.update({name: daemon.new_key("hostile", name.replace("_", "-")) for name in self.tricks_known})
        self.keys["trick_fill_store"] = daemon.new_key(FILLER, "filler")
        self.keys["trick_overfill_session"] = daemon.new_key(PACKER, "packer")
        self.make_operators()
        self.mine = threading.local()
        self.good = collections.Counter()
        self.wrong = []
        self.times = []
        self.health = []
        self.peak = collections.Counter()
        self.tricks = collections.Counter()  # played to the end
        self.tried = collections.Counter()
        self.large_call = None
        self.lock = threading.Lock()

    def running(self):
        return time.monotonic() < self.end

    # An honest tenant: what it is answered must be right, as long as no kill came between.
    def honest(self, name):
        key = self.keys[name]
        while self.running():
            self.daemon.up.wait(30)
            epoch, began = self.daemon.epoch, time.monotonic()
            number = random.randrange(10**9)
            problem = None
            try:
                status, text = self.daemon.ask("POST", "/v1/calls", key, call(f"print({number})"))
                if status != 200 or json.loads(text)["result"]["stdout"] != f"{number}\n":
                    problem = f"call {status} {text[:200]}"
                else:
                    took = time.monotonic() - began
                    status, text = self.daemon.ask("GET", "/v1/tools", key)
                    if status != 200 or b"python" not in text:
                        problem = f"tools {status} {text[:200]}"
            except (OSError, http.client.HTTPException, ValueError) as error:
                problem = repr(error)
            with self.lock:
                if problem is None:
                    self.good[name] += 1
                    self.times.append(took)
                elif epoch == self.daemon.epoch and self.daemon.up.is_set() and epoch % 2 == 0:
                    self.wrong.append(f"{name}: {problem}")
            time.sleep(0.2)

    # A process of its own, where it may with real-time priority: a prober runs on another machine, so what it waits for
    # this script's threads or a processor is not the daemon's.
    def probe(self):
        prober = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak_probe.py")],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        while self.running():
            self.daemon.up.wait(30)
            epoch = self.daemon.epoch
            prober.stdin.write(f"{self.daemon.port}\n")
            prober.stdin.flush()
            status, took = prober.stdout.readline().split()
            with self.lock:
                if status == "200":
                    self.health.append(float(took))
                elif epoch == self.daemon.epoch and epoch % 2 == 0:
                    self.wrong.append(f"/healthz: {status}")
            time.sleep(0.1)
        prober.stdin.close()
        prober.wait(timeout=30)

    def watch(self):
        while self.running():
            if self.daemon.up.is_set():
                self.look()
            time.sleep(1)

    def look(self):
        pid = self.daemon.roles().get("gateway", 0)
        self.peak["memory_kib"] = max(self.peak["memory_kib"], field(pid, "VmHWM"))
        self.peak["descriptors"] = max(self.peak["descriptors"], self.daemon.descriptors())
        self.peak["disk"] = max(self.peak["disk"], size_of(self.daemon.state))

    def killer(self):
        for number, role in enumerate(ROLES):
            due = self.end - self.seconds * (1 - (number + 1) / (len(ROLES) + 1))
            time.sleep(max(0, due - time.monotonic()))
            self.daemon.kill(role)

    def fault(self, what):
        with self.lock:
            self.wrong.append(what)

    # Hostile from here on. A trick counts when it was played to its end: one that the daemon cut short, by a refusal in
    # the middle or by a kill, raises and is tried again.
    def key(self):
        return self.keys[self.mine.trick]

    def attack(self, method, path, key, body=None, fields=()):
        return self.daemon.ask(method, path, key, body, timeout=10, fields=fields)

    def raw(self, text):
        one = socket.create_connection(("127.0.0.1", self.daemon.port), timeout=5)
        one.sendall(text)
        return one

    # Holds connections for a while and leaves. At least one must have got an answer of this kind.
    def hold(self, held, seconds, wanted=None):
        time.sleep(seconds)
        got = 0
        for one in held:
            one.setblocking(False)
            try:
                got += 1 if wanted and one.recv(12) == wanted else 0
            except OSError:
                pass
            one.close()
        if wanted and got == 0:
            raise NotPlayed("no answer")

    def head(self, method, path, more=""):
        return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self.key()}\r\n{more}\r\n").encode()

    # A call with a large answer; while the tenant is refused, one that it made before.
    def large(self):
        # Not twice the same: what failed because of a kill may not be tried again at once.
        status, text = self.attack("POST", "/v1/calls", self.key(), call(f"{LARGE}  # {random.randrange(10**9)}"))
        if status == 200 and len(text) > 1_000_000:
            self.large_call = json.loads(text)["call_id"]
        if self.large_call is None:
            raise NotPlayed(f"no large call: {status}")
        return self.large_call

    def trick_leave(self):
        path = "/v1/calls/" + self.large()
        for _ in range(400):
            self.raw(self.head("GET", path)).close()

    def trick_do_not_read(self):
        path = "/v1/calls/" + self.large()
        self.hold([self.raw(self.head("GET", path)) for _ in range(100)], 3, b"HTTP/1.1 200")

    def trick_do_not_read_mcp(self):
        requests = [mcp_call(self.key(), LARGE, random.randrange(10**9), time.time() + 3) for _ in range(20)]
        self.hold([self.raw(one) for one in requests], 9, b"HTTP/1.1 200")

    def trick_unfinished_bodies(self):
        head = self.head("POST", "/v1/calls", "Content-Type: application/json\r\nContent-Length: 1048576\r\n")
        held = []
        for _ in range(100):
            one = self.raw(head)
            one.setblocking(False)
            try:
                one.send(b"x" * 900_000)
            except OSError:
                pass
            held.append(one)
        self.hold(held, 3)

    def trick_slow_heads(self):
        self.hold([self.raw(b"GET /v1/tools HTTP/1.1\r\nHost: loc") for _ in range(200)], 3)

    def trick_watchers(self):
        path = "/v1/calls/" + self.large() + "/events"
        self.hold([self.raw(self.head("GET", path)) for _ in range(100)], 2, b"HTTP/1.1 200")

    def trick_parse(self):
        body = json.dumps(call("#" + "x" * 900_000)).encode()
        for _ in range(10):
            self.raw(self.head("POST", "/v1/calls", "Content-Type: application/json\r\n"
                               f"Content-Length: {len(body)}\r\n") + body).close()

    def trick_files(self):
        status, text = self.attack("POST", "/v1/sessions", self.key(), {})
        if status != 201:
            raise NotPlayed(f"no session: {status}")
        session = json.loads(text)["session_id"]
        code = "import os\nfor i in range(20):\n  d = '/'.join(['d%d' % i] + ['x'] * 50)\n  os.makedirs(d)\n" \
               "  for n in range(50): open(d + '/%d' % n, 'w')"
        status, _ = self.attack("POST", "/v1/calls", self.key(), call(code, session))
        if status != 200:
            self.attack("DELETE", f"/v1/sessions/{session}", self.key())
            raise NotPlayed(f"no files: {status}")
        path = f"/v1/sessions/{session}/files"
        key = self.key()
        uploads = [threading.Thread(target=self.quiet, args=(
            lambda: self.attack("PUT", path + "/f", key, b"x" * 1_000_000),)) for _ in range(4)]
        for one in uploads:
            one.start()
        for one in uploads:
            one.join()
        self.attack("GET", path, self.key())
        self.attack("DELETE", f"/v1/sessions/{session}", self.key())

    def trick_strangers(self):
        for number in range(200):
            self.raw(f"GET /v1/tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer coffer_{number}\r\n\r\n"
                     .encode()).close()

    def quiet(self, what):
        try:
            what()
            return True
        except (OSError, http.client.HTTPException, ValueError, NotPlayed):
            return False

    def hostile(self, trick):
        self.mine.trick = trick
        while self.running():
            self.daemon.up.wait(30)
            played = self.quiet(getattr(self, trick))
            with self.lock:
                self.tried[trick] += 1
                self.tricks[trick] += 1 if played else 0
            if not played:
                time.sleep(0.5)

    # On a slow machine the time between two kills is too short for some: they are played when all else has ended.
    def play_the_rest(self):
        until = time.monotonic() + REST_SECONDS
        for trick in self.tricks_known:
            while self.tricks[trick] == 0 and time.monotonic() < until:
                self.mine.trick = trick
                self.tried[trick] += 1
                self.tricks[trick] += 1 if self.quiet(getattr(self, trick)) else 0

    def run(self):
        work = [(self.honest, (name,)) for name in HONEST] + [(self.hostile, (name,)) for name in self.tricks_known]
        work += [(self.probe, ()), (self.watch, ()), (self.killer, ())]
        started = [threading.Thread(target=one, args=given) for one, given in work]
        for one in started:
            one.start()
        for one in started:
            one.join()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


# Again, as a user who has nothing, with copies of the programs and of this script.
def run_as_user(build, seconds):
    with tempfile.TemporaryDirectory(prefix="coffer-soak-user-") as place:
        here = os.path.dirname(os.path.abspath(__file__))
        scripts = [here + "/" + name for name in ("soak.py", "soak_daemon.py", "soak_mcp.py", "soak_probe.py", "soak_tricks.py")]
        for path in [build + "/coffer", build + "/cofferd"] + scripts:
            shutil.copy2(path, place)
        for name in [place] + [os.path.join(place, one) for one in os.listdir(place)]:
            os.chown(name, USER, USER)
        os.chmod(place, 0o755)
        return subprocess.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin",
             "HOME=" + place, "TMPDIR=" + place, "python3", place + "/soak.py", "--seconds", str(seconds), "--build", place],
            check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--build", default="build")
    parser.add_argument("--as-user", action="store_true", help="as root: everything as an ordinary user")
    options = parser.parse_args()
    build = os.path.realpath(options.build)
    if options.as_user and os.geteuid() == 0:
        return run_as_user(build, options.seconds)
    directory = tempfile.mkdtemp(prefix="coffer-soak-")
    os.chmod(directory, 0o755)
    problems = []

    def must(holds, what):
        print(("  ok    " if holds else "  FAIL  ") + what)
        if not holds:
            problems.append(what)

    with open(directory + "/coffer.toml", "w", encoding="utf-8") as file:
        file.write(CONFIG)
    daemon = Daemon(build, directory, ["--config", directory + "/coffer.toml"])
    base = daemon.descriptors()
    soak = Soak(daemon, options.seconds)
    soak.run()
    soak.play_the_rest()
    soak.look()

    # The rest ends by itself: connections that were left, calls that still run.
    pid = daemon.roles()["gateway"]
    settling = time.monotonic()
    while True:
        left = daemon.descriptors()
        if 0 < left <= base + SPARE_DESCRIPTORS or time.monotonic() - settling > SETTLE_SECONDS:
            break
        time.sleep(0.25)
    settled = time.monotonic() - settling
    print(f"soak: {options.seconds} s, {sum(soak.good.values())} honest rounds, tricks {dict(soak.tricks)}")
    print(f"soak: a call of an honest tenant: p50 {percentile(soak.times, .5) * 1000:.0f} ms, "
          f"p99 {percentile(soak.times, .99) * 1000:.0f} ms; /healthz p50 {1000 * percentile(soak.health, 0.5):.1f} ms, p99 {percentile(soak.health, .99) * 1000:.1f} ms, "
          f"worst {max(soak.health, default=0) * 1000:.1f} ms")
    print(f"soak: peak memory of the gateway {soak.peak['memory_kib'] / 1024:.0f} MiB, descriptors "
          f"{soak.peak['descriptors']}, state directory {soak.peak['disk'] / 2**20:.0f} MiB")
    for name in HONEST:
        must(soak.good[name] > 0, f"tenant {name} was served ({soak.good[name]} rounds)")
    for name in soak.tricks_known:
        must(soak.tricks[name] > 0, f"{name} was played to its end ({soak.tricks[name]} of {soak.tried[name]} times)")
    must(not soak.wrong, f"honest tenants and probes got right answers, and tricks were refused ({len(soak.wrong)} wrong: {soak.wrong[:3]})")
    must(soak.peak["disk"] < DISK, "the state directory stayed below 4 GiB")
    must(0 < soak.peak["memory_kib"] < MEMORY_KIB, "the gateway stayed below 256 MiB")
    must(daemon.epoch == 2 * len(ROLES), "each role was killed once, and the daemon came back")
    must(0 < left <= base + SPARE_DESCRIPTORS,
         f"descriptors are given back ({base} at the start, {left} after {settled:.1f} s of {SETTLE_SECONDS})")
    if left > base + SPARE_DESCRIPTORS and os.geteuid() == 0:
        print(f"        they are: {kinds(pid)}")
    status, _ = daemon.ask("GET", "/readyz")
    must(status == 200, "it is ready at the end")
    family = [daemon.process.pid] + list(daemon.roles().values())
    daemon.process.send_signal(signal.SIGTERM)
    must(daemon.process.wait(timeout=30) == 0, "it ends when asked")
    must(not [one for one in family if os.path.exists(f"/proc/{one}")], "no role is left")
    must(daemon.state not in read("/proc/self/mountinfo"), "nothing of it is mounted")
    for _ in range(50):  # the kernel ends the devices a moment after the last process
        if not loop_devices(daemon.state):
            break
        time.sleep(0.1)
    must(not loop_devices(daemon.state), "no loop device is left")
    verified = subprocess.run([build + "/coffer", "audit", "verify", "--state", daemon.state], capture_output=True,
                              text=True, check=False)
    must(verified.returncode == 0, "the record verifies: " + (verified.stdout + verified.stderr).strip()[-300:])
    if problems:
        print(f"soak: FAILED, {len(problems)} of the above; the state is in {directory}")
        return 1
    shutil.rmtree(directory, ignore_errors=True)
    print("soak: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
