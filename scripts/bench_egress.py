#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the way out costs: a spliced and an intercepted connection against a direct one and against squid that does the same
job, the latency of an answer on a warm connection, CPU time of the process in between, and what a call pays for a network.

usage: bench_egress.py BUILD [--quick] [--only PART] [--before COFFER]      writes Markdown to stdout; progress to stderr

Everything is measured side by side: each round does every way once, and the tables have medians of the rounds. Run as root.
COFFER is the program of an earlier version: what calls without a network cost is then measured with both, by turns.
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HOST = "bench.test"
SQUID = shutil.which("squid") or "/usr/sbin/squid"
CERTGEN = "/usr/lib/squid/security_file_certgen"
TICK = os.sysconf("SC_CLK_TCK")


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{words}: {done.stderr}")
    return done.stdout


def cpu_seconds(pid):
    """User and system time of a process and of its children that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(fields[i]) for i in (11, 12, 13, 14)) / TICK


def descendants(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def make_certificates(directory):
    config = directory / "openssl.cnf"
    config.write_text("[req]\ndistinguished_name=dn\n[dn]\n[ca]\nbasicConstraints=critical,CA:true\nkeyUsage=keyCertSign\n"
                      f"[leaf]\nsubjectAltName=DNS:{HOST}\n")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-config", str(config)]
    for name in ("ca", "bump"):
        run("openssl", "req", "-x509", *key, "-subj", f"/CN={name}", "-extensions", "ca",
            "-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.pem"))
    run("openssl", "req", "-x509", *key, "-subj", f"/CN={HOST}", "-extensions", "leaf",
        "-CA", str(directory / "ca.pem"), "-CAkey", str(directory / "ca.key"),
        "-keyout", str(directory / "server.key"), "-out", str(directory / "server.pem"))
    both = directory / "bump-both.pem"
    both.write_text((directory / "bump.key").read_text() + (directory / "bump.pem").read_text())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Squid:
    """Intercepts TLS to every host, keeps nothing, writes no log."""

    def __init__(self, directory):
        self.port = free_port()
        state = directory / "squid"
        state.mkdir()
        run(CERTGEN, "-c", "-s", str(state / "certs"), "-M", "4MB")
        shutil.chown(state, "proxy", "proxy")
        run("chown", "-R", "proxy:proxy", str(state))
        (directory / "hosts").write_text(f"127.0.0.1 {HOST}\n")
        config = directory / "squid.conf"
        config.write_text(f"""
http_port 127.0.0.1:{self.port} ssl-bump tls-cert={directory}/bump-both.pem generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program {CERTGEN} -s {state}/certs -M 4MB
sslcrtd_children 1
acl step1 at_step SslBump1
ssl_bump peek step1
ssl_bump bump all
tls_outgoing_options cafile={directory}/ca.pem
http_access allow all
cache deny all
access_log none
cache_log {state}/cache.log
cache_store_log none
pid_filename {state}/squid.pid
hosts_file {directory}/hosts
coredump_dir {state}
shutdown_lifetime 0 seconds
workers 1
""")
        self.program = subprocess.Popen([SQUID, "-N", "-f", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            log = (state / "cache.log").read_text() if (state / "cache.log").exists() else ""
            if "Accepting SSL bumped" in log:
                return
            time.sleep(0.05)
        raise SystemExit("squid does not start: " + log)

    def stop(self):
        self.program.terminate()
        self.program.wait()


class Way:
    """One way to the server. measure() gives what the client printed, and the CPU seconds of the process in between."""

    def __init__(self, name, bench):
        self.name, self.bench = name, bench

    def measure(self, *words):
        raise NotImplementedError

    def client(self, *words):
        what, number = words
        return [str(self.bench.peer), what, HOST, str(self.bench.port), str(number)]


class Direct(Way):
    def measure(self, *words):
        env = {"SSL_CERT_FILE": str(self.bench.directory / "ca.pem")}
        return run(*self.client(*words), env=env), 0.0


class ThroughSquid(Way):
    def measure(self, *words):
        squid = self.bench.squid
        env = {"SSL_CERT_FILE": str(self.bench.directory / "bump.pem"), "HTTPS_PROXY": f"http://127.0.0.1:{squid.port}"}
        before = cpu_seconds(squid.program.pid)
        said = run(*self.client(*words), env=env)
        return said, cpu_seconds(squid.program.pid) - before


class ThroughCoffer(Way):
    def __init__(self, name, bench, rule, more=()):
        super().__init__(name, bench)
        self.rule, self.more = rule, more

    def measure(self, *words):
        command = [str(self.bench.coffer), "run", "--quiet", "--allow", self.rule, "--resolve", f"{HOST}=127.0.0.1",
                   "--dangerously-allow-address", "127.0.0.1", "--upstream-ca", str(self.bench.directory / "ca.pem"), *self.more,
                   "--", *self.client(*words)]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        cpu = [0.0]
        done = threading.Event()

        def watch():
            egress = None
            while not done.wait(0.01):
                egress = egress or next((pid for pid in descendants(program.pid) if name_of(pid) == self.bench.egress_name), None)
                if egress:
                    try:
                        cpu[0] = cpu_seconds(egress)
                    except OSError:
                        return
        watcher = threading.Thread(target=watch)
        watcher.start()
        said, wrong = program.communicate()
        done.set()
        watcher.join()
        if program.returncode != 0:
            raise SystemExit(f"{self.name}: {wrong}")
        return said, cpu[0]


class Bench:
    egress_name = "coffer-egress"

    def __init__(self, build, directory, quick, before):
        self.build, self.directory, self.quick, self.before = build, directory, quick, before
        self.coffer, self.peer = build / "coffer", directory / "bench_egress_peer"
        shutil.copy(build / "bench/bench_egress_peer", self.peer)
        make_certificates(directory)
        self.server = subprocess.Popen([self.peer, "serve", directory / "server.pem", directory / "server.key"],
                                       stdout=subprocess.PIPE, text=True)
        self.port = int(self.server.stdout.readline())
        self.squid = Squid(directory)
        self.direct = Direct("direct, no boundary", self)
        self.splice = ThroughCoffer("coffer, spliced", self, f"{HOST}:{self.port}")
        self.intercept = ThroughCoffer("coffer, intercepted", self, f"GET https://{HOST}:{self.port}/**")
        self.bumped = ThroughSquid("squid, ssl-bump", self)

    def stop(self):
        self.squid.stop()
        self.server.terminate()
        self.server.wait()

    def rounds(self, ways, words, count):
        results = {way.name: [] for way in ways}
        for number in range(count):
            say(f"  {words[0]} {number + 1}/{count}")
            for way in ways:
                results[way.name].append(way.measure(*words))
        return results


def throughput(bench):
    size = (1 << 28) if bench.quick else (1 << 30)
    ways = [bench.direct, bench.splice, bench.intercept, bench.bumped]
    results = bench.rounds(ways, ("get", size), 3 if bench.quick else 7)
    speed = {name: statistics.median(size / float(said) for said, _ in rows) for name, rows in results.items()}
    cpu = {name: statistics.median(used for _, used in rows) * (1 << 30) / size for name, rows in results.items()}
    print("## One large answer\n")
    print("One connection, TLS 1.3, client and server on the same machine. CPU is that of the process between them, for each GiB.\n")
    print("| way | MiB/s | against direct | CPU seconds per GiB |\n|---|---|---|---|")
    for way in ways:
        used = "" if way is bench.direct else f"{cpu[way.name]:.2f}"
        print(f"| {way.name} | {speed[way.name] / (1 << 20):.0f} | {speed[way.name] / speed[bench.direct.name]:.2f} | {used} |")
    ratio = speed[bench.intercept.name] / speed[bench.bumped.name]
    print(f"\nIntercepted against squid: {ratio:.2f} of its throughput with "
          f"{cpu[bench.intercept.name] / cpu[bench.bumped.name]:.2f} of its CPU time.\n")


def latency(bench):
    times = 500 if bench.quick else 3000
    ways = [bench.direct, bench.splice, bench.intercept, bench.bumped]
    for what, title, number in (("ask", "Answers of 16 bytes on a warm connection", times),
                                ("open", "New connections, each with one answer", times // 10)):
        results = bench.rounds(ways, (what, number), 3 if bench.quick else 5)
        p50, p99 = {}, {}
        for name, rows in results.items():
            values = [sorted(float(word) for word in said.split()) for said, _ in rows]
            p50[name] = statistics.median(statistics.median(row) for row in values)
            p99[name] = statistics.median(row[len(row) * 99 // 100] for row in values)
        print(f"## {title}\n")
        print("| way | p50 | p99 | added to direct, p50 |\n|---|---|---|---|")
        for way in ways:
            added = "" if way is bench.direct else f"{p50[way.name] - p50[bench.direct.name]:.0f} us"
            print(f"| {way.name} | {p50[way.name]:.0f} us | {p99[way.name]:.0f} us | {added} |")
        print()


MANIFEST = '''
[tool]
name = "{name}"
version = "1.0.0"
owner = "bench"
summary = "Sleeps as long as it is told."
effect = "read-only"
[input.schema]
type = "object"
required = ["seconds"]
properties.seconds = {{ type = "integer", minimum = 0, maximum = 600 }}
[run]
runtime = "busybox"
argv = ["busybox", "sleep", "{{seconds}}"]
[limits]
memory = "16MiB"
processes = 8
wall = "10m"
{network}
[[examples.allow]]
args = {{ seconds = 0 }}
why = "no time"
[[examples.deny]]
args = {{}}
why = "no number"
'''
NETWORK = '''[[network.allow]]
host = "bench.test"
methods = ["GET"]
paths = ["/**"]
'''


class Daemon:
    def __init__(self, bench, calls):
        directory = bench.directory / "daemon"
        (directory / "tools").mkdir(parents=True)
        for name, network in (("without", ""), ("with", NETWORK)):
            (directory / f"tools/{name}.toml").write_text(MANIFEST.format(name=name, network=network))
        (directory / "coffer.toml").write_text(f"[host]\ncalls = {calls}\ntenant_share = 100\n")
        self.stderr = directory / "stderr"
        self.program = subprocess.Popen(
            [str(bench.coffer), "serve", "--state", str(directory / "state"), "--tools", str(directory / "tools"),
             "--config", str(directory / "coffer.toml"), "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE, stderr=self.stderr.open("w"), text=True)
        line = self.program.stdout.readline()
        if not line:
            raise SystemExit("the daemon does not start: " + self.stderr.read_text())
        started = json.loads(line)
        self.url, self.key = f"http://127.0.0.1:{started['listen'].rsplit(':', 1)[1]}", started["key"]
        self.proxy = next(pid for pid in [self.program.pid, *descendants(self.program.pid)] if name_of(pid) == "coffer-proxy")

    def call(self, tool, seconds):
        body = json.dumps({"tool": tool, "args": {"seconds": seconds}}).encode()
        request = urllib.request.Request(self.url + "/v1/calls", body, {"Authorization": f"Bearer {self.key}",
                                                                        "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=700) as answer:
            said = json.load(answer)
        if said["outcome"] not in ("success", "killed"):
            raise SystemExit(f"{tool}: {said}")

    def sleep(self, seconds):
        try:
            self.call("with", seconds)
        except OSError:
            pass  # the daemon is stopped before it wakes

    def memory(self):
        # Bytes that are the role's own: what it shares with the program's file costs once.
        lines = pathlib.Path(f"/proc/{self.proxy}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Dirty", "Private_Clean"))) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.proxy}/fd"))

    def stop(self):
        self.program.terminate()
        self.program.wait()


def p50(values):
    return statistics.median(values)


def timed(function, *words):
    began = time.perf_counter()
    function(*words)
    return (time.perf_counter() - began) * 1000


def against_before(bench):
    """Calls without a network, of this program and of an earlier one."""
    if not bench.before:
        return
    rounds = 40 if bench.quick else 200
    say("  coffer run, and the one of before")
    print("## A call without a network, by turns with an earlier version\n")
    print(f"Load average {os.getloadavg()[0]:.1f} when this part began; the median of {rounds} calls each, and of their differences.\n")
    print("| call | earlier | now | more | earlier, fastest tenth | now, fastest tenth |\n|---|---|---|---|---|---|")
    for way, flags in (("`coffer run`", []), ("`coffer run --receipt FILE`", ["--receipt", "/dev/null"])):
        now, then = [], []
        for number in range(rounds):
            turns = [(bench.coffer, now), (bench.before, then)]
            for program, times in turns if number % 2 else reversed(turns):
                times.append(timed(run, str(program), "run", "--quiet", *flags, "--", "/bin/true"))
        more = p50([after - earlier for after, earlier in zip(now, then)])
        fast = [statistics.quantiles(times, n=10)[0] for times in (then, now)]
        print(f"| {way} | {p50(then):.2f} ms | {p50(now):.2f} ms | {more:.2f} ms | {fast[0]:.2f} ms | {fast[1]:.2f} ms |")
    print()


def start_alone(bench, form, rule):
    """Milliseconds of the egress process's own start, without a boundary beside it."""
    return float(run(str(bench.build / "bench_egress_start"), form, rule)) / 1000


def calls(bench):
    count = 60 if bench.quick else 400
    many = 100 if bench.quick else 200
    daemon = Daemon(bench, many + 10)
    try:
        for _ in range(10):
            daemon.call("with", 0)
            daemon.call("without", 0)
        without, within = [], []
        say("  calls of the daemon")
        for _ in range(count):
            without.append(timed(daemon.call, "without", 0))
            within.append(timed(daemon.call, "with", 0))
        say(f"  {many} calls at once")
        before, own = daemon.memory(), daemon.descriptors()
        sleepers = [threading.Thread(target=daemon.sleep, args=(300,), daemon=True) for _ in range(many)]
        for number, sleeper in enumerate(sleepers):
            sleeper.start()
            if number % 8 == 7:
                time.sleep(0.1)
        deadline = time.monotonic() + 300
        while daemon.descriptors() < own + 2 * many and time.monotonic() < deadline:
            time.sleep(0.5)
        open_now = daemon.descriptors() - own
        if open_now < 2 * many:
            raise SystemExit(f"{many} calls do not run at the same time: {open_now} descriptors of the role are open")
        each = (daemon.memory() - before) / many
    finally:
        daemon.stop()
    plain = [str(bench.coffer), "run", "--quiet", "--", "/bin/true"]
    allowed = [*plain[:3], "--allow", f"{HOST}:443", *plain[3:]]
    judged = [*plain[:3], "--allow", f"GET https://{HOST}/**", *plain[3:]]
    alone, spliced, intercepted, starts_spliced, starts_judged = [], [], [], [], []
    say("  coffer run")
    for _ in range(count // 2):
        alone.append(timed(run, *plain))
        spliced.append(timed(run, *allowed))
        starts_spliced.append(start_alone(bench, "spliced", f"{HOST}:443"))
        intercepted.append(timed(run, *judged))
        starts_judged.append(start_alone(bench, "judged", f"GET https://{HOST}/**"))
    print("## What a call pays\n")
    print("| call | p50 | more than without |\n|---|---|---|")
    print(f"| through the daemon, no network | {p50(without):.2f} ms | |")
    print(f"| through the daemon, requests judged | {p50(within):.2f} ms | {p50(within) - p50(without):.2f} ms |")
    print(f"| `coffer run`, no network | {p50(alone):.2f} ms | |")
    print(f"| `coffer run --allow HOST` | {p50(spliced):.2f} ms | {p50(spliced) - p50(alone):.2f} ms |")
    print(f"| its egress process alone, from its start until it is ready | {p50(starts_spliced):.2f} ms | |")
    print(f"| `coffer run --allow 'GET https://HOST/**'` | {p50(intercepted):.2f} ms | {p50(intercepted) - p50(alone):.2f} ms |")
    print(f"| its egress process alone, with its certificate | {p50(starts_judged):.2f} ms | |\n")
    print("Under `coffer run` the aim is that a call with network takes at most the start of its egress process more. That process is started "
          "alone by the same code, with the same rules and listeners, and confines itself as in a call.\n")
    print(f"{many} calls with a network at the same time: {each / 1024:.1f} KiB of the role's memory and "
          f"{open_now / many:.1f} of its descriptors for each.\n")


def live(bench):
    """The role with the listeners of many network namespaces, handed over as supervisors do: a daemon runs 256 calls at most."""
    number = 100 if bench.quick else 1000
    say(f"  {number} live networks")
    each, descriptors = run(str(bench.build / "bench/bench_egress_role"), str(number)).split()
    print(f"{number} live network namespaces with open listeners, handed to the role as supervisors do, without boundaries around them: "
          f"{int(each) / 1024:.1f} KiB of the role's memory and {descriptors} of its descriptors for each (the aim is 64 KiB).\n")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--before", type=pathlib.Path)
    arguments.add_argument("--only", choices=["throughput", "latency", "calls", "live", "against_before"])
    options = arguments.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("run as root: squid and the daemon take uids of their own")
    if not os.path.exists(CERTGEN):
        raise SystemExit("squid is missing: scripts/setup.sh bench-egress")
    print("# What the way out costs\n")
    print(f"Written by `make bench-egress`: {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} when it began. A machine that "
          "is not at rest shows larger times; the ratios are of rounds that took turns.\n")
    with tempfile.TemporaryDirectory(prefix="coffer-bench-egress-", dir="/tmp") as path:
        directory = pathlib.Path(path)
        directory.chmod(0o755)
        bench = Bench(options.build.resolve(), directory, options.quick, options.before)
        try:
            for part in (throughput, latency, calls, live, against_before):
                if options.only in (None, part.__name__):
                    part(bench)
        finally:
            bench.stop()


if __name__ == "__main__":
    main()
