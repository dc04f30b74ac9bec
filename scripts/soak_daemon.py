#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon of scripts/soak.py and scripts/soak_large.py: starts it, kills a role and starts it again, asks it; and what /proc
says of its processes."""
import collections
import http.client
import json
import os
import signal
import subprocess
import threading
import time

ROLES = ["gateway", "warden", "egress", "proxy", "monitor"]
NAMES = {"coffer": "warden", "coffer-egress": "egress", "coffer-proxy": "proxy"}


class Daemon:
    """The daemon and what is known of its processes; started again after a kill."""

    def __init__(self, build, directory, flags=()):
        self.build, self.state, self.flags = build, directory + "/state", list(flags)
        self.log = open(directory + "/daemon.err", "a", encoding="utf-8")
        self.up = threading.Event()
        self.epoch = 0  # grows with every kill: who saw one does not count what failed
        self.start()
        self.auditor = self.make_key("--role", "auditor", "--all-tenants")

    def start(self):
        self.process = subprocess.Popen(
            [self.build + "/coffer", "serve", "--state", self.state, "--listen", "127.0.0.1:0", "--json"] + self.flags,
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        said = json.loads(self.process.stdout.readline())
        self.port = int(said["listen"].rsplit(":", 1)[1])
        self.key = said["key"] or self.key
        self.up.set()

    # By their names, as the roles set them. The compiler of manifests, which lives for a moment, has the gateway's name and
    # one thread.
    def roles(self):
        found = {"monitor": self.process.pid}
        for pid in children(self.process.pid):
            name = name_of(pid)
            if name in NAMES:
                found[NAMES[name]] = pid
            elif field(pid, "Threads") > 1:
                found["gateway"] = pid
        return found

    def kill(self, role):
        pid = self.roles().get(role)
        if pid is None:
            raise RuntimeError(f"there is no {role}")
        family = list(self.roles().values())
        self.epoch += 1
        if role == "proxy":  # the monitor starts another one, and the rest of the daemon goes on
            os.kill(pid, signal.SIGKILL)
            until = time.monotonic() + 30
            while self.roles().get(role, pid) == pid:
                if time.monotonic() > until:
                    raise RuntimeError("the proxy did not come back")
                time.sleep(0.05)
            self.epoch += 1
            return
        self.up.clear()
        os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        # A service manager waits for all of them.
        while any(os.path.exists(f"/proc/{one}") for one in family):
            time.sleep(0.05)
        self.start()
        self.epoch += 1

    # Of the gateway, as it says itself: only root may look at another process's.
    def descriptors(self):
        try:
            status, text = self.ask("GET", "/metrics", self.auditor)
        except (OSError, http.client.HTTPException):
            return 0
        found = [line.split()[1] for line in text.decode().splitlines() if line.startswith("process_open_fds ")]
        return int(float(found[0])) if status == 200 and found else 0

    def new_key(self, tenant, agent):
        return self.make_key("--tenant", tenant, "--role", "agent", "--agent", agent)

    def make_key(self, *flags):
        made = subprocess.run([self.build + "/coffer", "key", "new", "--state", self.state, "--json", *flags],
                              capture_output=True, text=True, check=True)
        return json.loads(made.stdout)["key"]

    def ask(self, method, path, key=None, body=None, timeout=60, fields=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = dict(fields)
        if key:
            headers["Authorization"] = "Bearer " + key
        if isinstance(body, dict):
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def children(pid):
    return [int(one) for one in read(f"/proc/{pid}/task/{pid}/children").split()]


def field(pid, name):
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    return 0


def name_of(pid):
    return read(f"/proc/{pid}/comm").strip()


# What the descriptors are, and how many of each.
def kinds(pid):
    found = collections.Counter()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[os.readlink(f"/proc/{pid}/fd/{name}").split(":")[0]] += 1
        except OSError:
            pass
    return dict(found)


def loop_devices(state):
    return [name for name in os.listdir("/sys/block") if read(f"/sys/block/{name}/loop/backing_file").startswith(state)]


def size_of(directory):
    total = 0
    for where, _, files in os.walk(directory):
        for name in files:
            try:
                total += os.lstat(os.path.join(where, name)).st_blocks * 512
            except OSError:
                pass
    return total
