#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers of protocols other than HTTP on their own ports, in a network of its own, and their clients inside boundaries.

Usage: egress_services.py COFFER ssh|redis. Prints one line for each case: what the program inside said, whether coffer noted
what it should, and how many logins or commands the server has counted since the last one.
"""
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import own_network  # noqa: E402

COFFER = sys.argv[1]
holder = tempfile.TemporaryDirectory(prefix="services-")
directory = holder.name
os.chmod(directory, 0o755)
log = directory + "/log"


def run(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, cwd=directory, **more).stdout


def make_repository():
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    run("git", "init", "-q", "-b", "main", "origin", env=environment)
    with open(directory + "/origin/file", "w") as file:
        file.write("the repository's file\n")
    run("git", "-C", "origin", "add", "file", env=environment)
    run("git", "-C", "origin", "-c", "user.name=t", "-c", "user.email=t@t.test", "commit", "-q", "-m", "First", env=environment)
    run("git", "clone", "-q", "--bare", "origin", "repo.git", env=environment)


def start_sshd():
    # The one account has this process's own uid, so that the server need not become another.
    own_network.bind_text(directory, "/etc/passwd", f"git:*:{os.getuid()}:{os.getgid()}::{directory}:/bin/sh\n"
                          "sshd:*:65533:65534::/run/sshd:/bin/false\nnobody:*:65534:65534::/:/bin/false\n")
    for name in ("host", "client"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name)
    with open(directory + "/conf", "w") as file:
        file.write(f"ListenAddress 127.0.0.2:22\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/client.pub\n"
                   "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n")
    own_network.must(own_network.libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, b"mode=0755"))
    os.mkdir("/run/sshd", 0o755)
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-E", log, "-f", directory + "/conf"], stdin=subprocess.DEVNULL)
    for _ in range(600):
        if "Server listening" in read_log():
            return server
        time.sleep(0.05)
    raise SystemExit("sshd did not start: " + read_log())


def read_log():
    try:
        with open(log) as file:
            return file.read()
    except FileNotFoundError:
        return ""


counted = 0


def case(name, rule, command, note, count):
    """`note`: what coffer must say; "" if it must refuse nothing."""
    global counted
    ended = subprocess.run([COFFER, "run", "--wall", "60s", "--processes", "64", "--allow", rule,
                            "--dangerously-allow-address", "127.0.0.2/32", "--", "sh", "-c", command],
                           capture_output=True, text=True)
    now = count()
    said = " ".join(ended.stdout.split()) or "no"
    good = note in ended.stderr if note else "refused:" not in ended.stderr
    print(f"{name} | {said} | {'as noted' if good else ended.stderr} | {now - counted}", flush=True)
    sys.stderr.write(ended.stderr)
    counted = now


def with_keys(command):
    """What a person has in ~/.ssh: a key, and the host's own. No setting speaks of a proxy."""
    with open(directory + "/client") as file:
        key = file.read()
    with open(directory + "/host.pub") as file:
        host = "git.test " + " ".join(file.read().split()[:2])
    return (f"mkdir -m 700 -p ~/.ssh && cat >~/.ssh/id_ed25519 <<'END'\n{key}END\nchmod 600 ~/.ssh/id_ed25519\n"
            f"echo '{host}' >~/.ssh/known_hosts\nexport GIT_CONFIG_GLOBAL=/dev/null\n{command}")


def ssh_cases():
    make_repository()
    server = start_sshd()
    clone = "cd /tmp && git clone -q git@git.test:repo.git && cat repo/file"
    push = (clone + "; cd repo; echo more >>file; git -c user.name=t -c user.email=t@t.test commit -qam More;"
            " git push -q origin main && echo pushed")
    session = "head -c 3000000 /dev/zero | ssh git@git.test 'echo inside $((6 * 7)); wc -c; exit 9'; echo $?"
    for name, rule, command, note in (
            ("clone", "git.test:22", clone, ""),
            ("push", "git.test:22", push, ""),
            ("session", "git.test:22", session, ""),
            ("another host", "other.test:22", clone, "git.test: no rule allows git.test; to allow it: --allow git.test\n"),
            ("another port", "git.test", clone, "to allow it: --allow git.test:22\n"),
            ("with TLS only", "https://git.test:22/**", clone, "only TLS may go to this host: this is not TLS; "
             "to allow it: --allow tcp://git.test:22\n")):
        case(name, rule, with_keys(command), note, lambda: read_log().count("Accepted publickey for git"))
    print("the server has", run("git", "-C", "repo.git", "log", "--format=%s").split())
    return server


def redis_cases():
    server = subprocess.Popen(["redis-server", "--bind", "127.0.0.2", "--port", "6379", "--save", "", "--dir", directory],
                              stdout=subprocess.DEVNULL)
    cli = ["redis-cli", "-h", "127.0.0.2"]
    while subprocess.run([*cli, "ping"], capture_output=True).stdout != b"PONG\n":
        time.sleep(0.05)

    def commands():
        stats = run(*cli, "info", "commandstats")
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in stats.splitlines() if "cmdstat_incr:" in line)

    ask = "redis-cli -h git.test incr visits"
    for name, rule, note in (
            ("allowed", "tcp://git.test:6379", ""),
            ("another host", "tcp://other.test:6379", "git.test: no rule allows git.test; to allow it: --allow git.test\n"),
            ("another port", "tcp://git.test:6380", "to allow it: --allow git.test:6379\n"),
            ("with TLS only", "git.test:6379", "only TLS may go to this host: this is not TLS; "
             "to allow it: --allow tcp://git.test:6379\n"),
            ("allowed again", "tcp://git.test:6379", "")):
        case(name, rule, ask, note, commands)
    return server


own_network.enter(directory)
own_network.serve_names({"git.test": "127.0.0.2"}.get)
server = {"ssh": ssh_cases, "redis": redis_cases}[sys.argv[2]]()
server.terminate()
server.wait()
