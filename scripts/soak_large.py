#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The large figures, each once and for real: 10,000 calls that print 1 MiB, 100,000 files in a session, 2,000 hostile clients, 60
calls over MCP that end together and whose answers of 12 MiB each are not read.

After each part: the most memory that the gateway had (below 256 MiB), and that another tenant is served. Takes about half an
hour on a quiet machine of two processors; --calls, --files and --clients make it shorter.

Usage: scripts/soak_large.py [--build build] [--calls 10000] [--files 100000] [--clients 2000] [--mcp 60]
"""
import argparse
import itertools
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time

from soak_daemon import Daemon, field, loop_devices, read
from soak_mcp import mcp_call
from soak_tricks import LARGE, call

MEMORY_MIB = 256
CONFIG = '[storage]\nsession = "1GiB"\n'
WORKERS = 8


class Large:
    def __init__(self, daemon):
        self.daemon, self.problems = daemon, []
        self.hostile = daemon.new_key("hostile", "many")
        self.victim = daemon.new_key("victim", "other")

    def must(self, holds, what):
        print(("  ok    " if holds else "  FAIL  ") + what, flush=True)
        if not holds:
            self.problems.append(what)

    def memory(self, name):
        return field(self.daemon.roles()["gateway"], name) / 1024

    # What holds after each part.
    def look(self, what, began):
        peak = self.memory("VmHWM")
        self.must(0 < peak < MEMORY_MIB, f"{what}: the gateway had at most {peak:.0f} MiB, and has {self.memory('VmRSS'):.0f} "
                                         f"({time.monotonic() - began:.0f} s)")
        asked = time.monotonic()
        status, _ = self.daemon.ask("GET", "/v1/tools", self.victim)
        self.must(status == 200, f"another tenant is served ({(time.monotonic() - asked) * 1000:.0f} ms)")

    def calls(self, count):
        began, numbers, lock = time.monotonic(), itertools.count(), threading.Lock()
        sizes = {"good": 0, "refused": 0}

        def work():
            for number in iter(lambda: next(numbers), None):
                if number >= count:
                    return
                good = False
                while not good:
                    status, text = self.daemon.ask("POST", "/v1/calls", self.hostile, call(f"{LARGE}  # {number}"), timeout=300)
                    good = status == 200 and len(text) > 6 << 20
                    with lock:
                        sizes["good" if good else "refused"] += 1
                    if not good and status not in (429, 503):
                        print(f"        {status} {text[:200]}")
                        return
                    time.sleep(0 if good else 0.2)

        run_threads(WORKERS, work)
        self.must(sizes["good"] == count, f"{sizes['good']} calls of {count} answered with 1 MiB of output "
                                          f"(6 MiB as JSON; {sizes['refused']} were told to come back)")
        self.look("calls", began)

    def files(self, count):
        began = time.monotonic()
        _, text = self.daemon.ask("POST", "/v1/sessions", self.hostile, {})
        session = json.loads(text)["session_id"]
        path, each, made = f"/v1/sessions/{session}/files", 5000, 0
        while made < count:
            code = f"import os\nd = '/'.join(['d{made}'] + ['x' * 30] * 10)\nos.makedirs(d)\n" \
                   f"for n in range({each}): open(f'{{d}}/{{n}}', 'w').close()\nprint('made')"
            status, text = self.daemon.ask("POST", "/v1/calls", self.hostile, call(code, session), timeout=300)
            if status != 200 or json.loads(text)["result"]["stdout"] != "made\n":
                print(f"        {status} {text[:300]}")
                break
            made += each
        self.must(made >= count, f"{made} files in one session")
        status = []
        run_threads(WORKERS, lambda: status.append(
            self.daemon.ask("PUT", f"{path}/f{len(status)}", self.hostile, b"x" * 100_000, timeout=300)[0]))
        self.must(status.count(201) == WORKERS, f"uploads beside them: {status}")
        listed, cursor = 0, ""
        while True:
            _, text = self.daemon.ask("GET", f"{path}?limit=1000{cursor}", self.hostile, timeout=300)
            page = json.loads(text)
            listed += len(page["files"])
            if not page.get("next") or listed >= 20_000:
                break
            cursor = "&cursor=" + page["next"]
        self.must(listed >= min(count, 20_000), f"{listed} of them were listed")
        answer, _ = self.daemon.ask("DELETE", f"/v1/sessions/{session}", self.hostile, timeout=300)
        self.must(answer == 200, "the session was ended")
        self.look("files", began)

    # Of every kind as many; each address may have 1024 connections.
    def clients(self, count):
        began = time.monotonic()
        _, text = self.daemon.ask("POST", "/v1/calls", self.hostile, call(LARGE + "  # clients"), timeout=300)
        path = "/v1/calls/" + json.loads(text)["call_id"]
        head = f"Host: localhost\r\nAuthorization: Bearer {self.hostile}\r\n"
        kinds = [f"GET {path} HTTP/1.1\r\n{head}\r\n".encode(),
                 f"GET {path}/events HTTP/1.1\r\n{head}\r\n".encode(),
                 f"POST /v1/calls HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n"
                 .encode() + b"x" * 60_000,
                 b"GET /v1/tools HTTP/1.1\r\nHost: loc"]
        held = []
        for number in range(count):
            one = socket.socket()
            one.settimeout(10)
            one.bind((f"127.0.0.{2 + number % 8}", 0))
            try:
                one.connect(("127.0.0.1", self.daemon.port))
                one.sendall(kinds[number % len(kinds)])
                held.append(one)
            except OSError:
                one.close()
        self.must(len(held) >= count * 9 // 10, f"{len(held)} clients at once, {self.daemon.descriptors()} "
                                                f"descriptors of the gateway")
        slowest = 0
        for _ in range(100):
            asked = time.monotonic()
            self.must_quietly(self.daemon.ask("GET", "/healthz")[0] == 200, "/healthz")
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.1)
        self.look(f"clients (slowest /healthz {slowest * 1000:.0f} ms)", began)
        for one in held:
            one.close()

    def mcp(self, count):
        began, when, held = time.monotonic(), time.time() + 10, []
        for number in range(count):
            one = socket.create_connection(("127.0.0.1", self.daemon.port), timeout=10)
            one.sendall(mcp_call(self.hostile, LARGE, number, when))
            held.append(one)
        answered, until = set(), time.monotonic() + 120
        while len(answered) < count and time.monotonic() < until:
            answered.update(select.select(held, [], [], 0)[0])
            self.must_quietly(self.daemon.ask("GET", "/v1/tools", self.victim)[0] == 200, "another tenant is served")
            time.sleep(0.1)
        good = sum(one.recv(12) == b"HTTP/1.1 200" for one in answered)
        self.must(good > count // 2, f"{good} answers over MCP were begun, of {count}")
        self.look("answers over MCP", began)
        for one in held:
            one.close()

    def must_quietly(self, holds, what):
        if not holds:
            self.must(holds, what)


def run_threads(count, work):
    threads = [threading.Thread(target=work) for _ in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=2_000)
    parser.add_argument("--mcp", type=int, default=60)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    directory = tempfile.mkdtemp(prefix="coffer-soak-large-")
    os.chmod(directory, 0o755)
    with open(directory + "/coffer.toml", "w", encoding="utf-8") as file:
        file.write(CONFIG)
    daemon = Daemon(os.path.realpath(options.build), directory, ["--config", directory + "/coffer.toml"])
    large = Large(daemon)
    large.clients(options.clients)
    large.mcp(options.mcp)
    large.files(options.files)
    large.calls(options.calls)
    daemon.process.send_signal(signal.SIGTERM)
    large.must(daemon.process.wait(timeout=60) == 0, "it ends when asked")
    time.sleep(1)
    large.must(daemon.state not in read("/proc/self/mountinfo") and not loop_devices(daemon.state), "nothing is left mounted")
    if large.problems:
        print(f"soak-large: FAILED, {len(large.problems)} of the above; the state is in {directory}")
        return 1
    shutil.rmtree(directory, ignore_errors=True)
    print("soak-large: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
