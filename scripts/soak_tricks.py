#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tricks of scripts/soak.py that the daemon answers one by one: a store and a session that are filled, an operator who is
stopped, keys that are revoked, also while their calls run, processors that are burnt, files with odd names and modes. What must be
refused and is not, what must end and does not, and an internal error, fail the soak."""
import http.client
import json
import os
import random
import threading
import time

LARGE = "import sys; sys.stdout.write('\\0' * (1 << 20))"

# The tenants whose store, and whose sessions, are small enough to be filled in a short soak.
FILLER = "filler"
PACKER = "packer"
MIB = 1 << 20
SESSION = 8 * MIB
UPLOAD = 3 * MIB
CONFIG = f"""[tenant.{FILLER}.storage]
tenant = "32MiB"
session = "1MiB"
[tenant.{PACKER}.storage]
session = "{SESSION // MIB}MiB"
"""
END_SECONDS = 10  # by then what was ended is gone
BURN_SECONDS = 3
STOPPED = "stopped"  # an agent with an operator's keys
REFUSED = (401, 403, 409, 429)

ODD_FILES = r"""
import os
open('closed', 'w').write('x')
os.chmod('closed', 0)
os.mkdir('directory')
for name in (b'a\nb', b'\xff\xfe', b'q?#% "', b'\r'):
    open(name, 'w').write('x')
"""
# An ordinary user's call ends by this: what cannot be counted is too much.
SHUT = "import os\nos.mkdir('shut')\nopen('shut/in', 'w').write('x')\nos.chmod('shut', 0)"


# Fills what is left, and says nothing: the kernel or the watch ends it.
PACK = """
import os
n = os.open('more-%d', os.O_WRONLY | os.O_CREAT)
while True: os.write(n, bytes(1 << 20))
"""


class NotPlayed(Exception):
    """A trick that the daemon cut short."""


def call(code, session=None):
    body = {"tool": "python", "args": {"code": code}}
    if session:
        body["session_id"] = session
    return body


class AnsweredTricks:
    """Needs of Soak: daemon, key(), attack(), and fault(), which takes what fails the soak."""

    def make_operators(self):
        self.keeper, self.operator = [
            self.daemon.make_key("--tenant", "hostile", "--role", "operator", "--agent", agent)
            for agent in ("keeper", STOPPED)]

    # One answer of a trick; raises unless it has one of these statuses.
    def answered(self, wanted, method, path, key, body=None):
        status, text = self.attack(method, path, key, body)
        if status >= 500 and status != 503:
            self.fault(f"{method} {path}: {status} {text[:200]}")
        if status not in wanted:
            raise NotPlayed(f"{method} {path}: {status}")
        return text

    # Whether this key may do that. A call that is denied is answered like every other.
    def may(self, method, path, key, body=None):
        text = self.answered((200, 201, 204) + REFUSED, method, path, key, body)
        try:
            told = json.loads(text)
        except ValueError:
            return True
        return told.get("outcome") != "denied" and "code" not in told

    # Whether it holds within END_SECONDS. A kill of the daemon meanwhile says nothing about it.
    def soon(self, holds):
        epoch, until = self.daemon.epoch, time.monotonic() + END_SECONDS
        while not holds():
            if time.monotonic() > until:
                if epoch % 2 == 1 or epoch != self.daemon.epoch:
                    raise NotPlayed("a kill came between")
                return False
            time.sleep(0.2)
        return True

    # The path of a call that has begun to run.
    def begin(self, key, code):
        status, text = self.attack("POST", "/v1/calls", key, call(f"{code}  # {random.randrange(10**9)}"),
                                   {"Prefer": "respond-async"})
        if status != 202:
            raise NotPlayed(f"no call: {status}")
        return "/v1/calls/" + json.loads(text)["call_id"]

    def state(self, path, key):
        return json.loads(self.answered((200,), "GET", path, key))["state"]

    def trick_fill_store(self):
        kept = []
        for _ in range(100):
            text = self.answered((200,), "POST", "/v1/calls", self.key(), call(f"{LARGE}  # {random.randrange(10**9)}"))
            if json.loads(text)["outcome"] == "success":
                kept.append("/v1/calls/" + json.loads(text)["call_id"])
            else:
                time.sleep(0.1)  # refused until there is room
            if kept and len(self.answered((200,), "GET", kept[0], self.key())) < 1_000_000:
                return  # its result went, to make room
            if len(kept) == 20:
                self.fault("the results of a tenant grew past its share")
                return
        raise NotPlayed("no room")

    def trick_stopped_operator(self):
        switch = "/v1/switches/agent/" + STOPPED
        self.attack("DELETE", switch, self.keeper)  # left by a play that was cut short
        made = json.loads(self.answered((201,), "POST", "/v1/keys", self.operator, {"role": "operator", "agent": STOPPED}))
        key, one = made["key"], "/v1/keys/" + made["key_id"]
        if not self.may("GET", "/v1/tools", key):
            raise NotPlayed("no control")
        self.answered((200,), "PUT", switch, self.keeper, {"reason": "soak"})
        tried = [("DELETE", switch, None), ("POST", "/v1/keys", {"role": "operator", "agent": "other"}),
                 ("POST", "/v1/sessions", {}), ("POST", "/v1/calls", call("print(1)")), ("DELETE", one, None),
                 ("PUT", "/v1/switches/agent/keeper", {"reason": "soak"}), ("GET", "/v1/tools", None)]
        for method, path, body in tried:
            if self.may(method, path, key, body):
                self.fault(f"a stopped operator may {method} {path}")
        self.answered((204,), "DELETE", switch, self.keeper)
        self.answered((200, 204), "DELETE", one, self.keeper)
        for method, path, body in tried:
            if self.may(method, path, key, body):
                self.fault(f"a revoked key may {method} {path}")

    def trick_odd_files(self):
        key = self.key()
        session = "/v1/sessions/" + json.loads(self.answered((201,), "POST", "/v1/sessions", key, {}))["session_id"]
        number, name = f"  # {random.randrange(10**9)}", session.rsplit("/", 1)[1]
        try:
            for code in (ODD_FILES, SHUT):
                self.answered((200,), "POST", "/v1/calls", key, call(code + number, name))
            listed = json.loads(self.answered((200,), "GET", session + "/files", key))["files"]
            if len(listed) < 5:
                raise NotPlayed(f"{len(listed)} files")
            if self.may("PUT", session + "/files/directory", key, b"x"):
                self.fault("a file was put onto a directory")
            for name in [one["encoded_path"] for one in listed if one["path"] != "shut/in"]:
                path, closed = f"{session}/files/{name}", name == "closed"
                if self.may("GET", path, key) == closed:
                    self.fault(f"GET {path}: {'read' if closed else 'refused'}")
                if not self.may("DELETE", path, key):
                    self.fault(f"DELETE {path}: refused")
        finally:
            self.attack("DELETE", session, key)

    def trick_overfill_session(self):
        key = self.key()
        session = "/v1/sessions/" + json.loads(self.answered((201,), "POST", "/v1/sessions", key, {}))["session_id"]
        name = session.rsplit("/", 1)[1]
        taken = []

        def put(number):
            try:
                if self.attack("PUT", f"{session}/files/f{number}", key, b"x" * UPLOAD)[0] == 201:
                    taken.append(number)
            except (OSError, http.client.HTTPException):
                pass

        ended = False
        try:
            self.answered((201,), "PUT", session + "/files/control", key, b"x" * UPLOAD)
            uploads = [threading.Thread(target=put, args=(number,)) for number in range(5)]
            for one in uploads:
                one.start()
            for one in uploads:
                one.join()
            if 1 + len(taken) > SESSION // UPLOAD:
                self.fault(f"a session of {SESSION // MIB} MiB took {1 + len(taken)} files of {UPLOAD // MIB}")
            for number in range(3):
                self.answered((200,), "POST", "/v1/calls", key, call(PACK % number + f"# {random.randrange(10**9)}", name))
            held = sum(one["size"] for one in json.loads(self.answered((200,), "GET", session + "/files", key))["files"])
            enforced = json.loads(self.answered((200,), "GET", session, key))["files"]["enforced"]
            if enforced and held > SESSION + MIB:  # else it is watched: a call writes on between two looks
                self.fault(f"a session of {SESSION // MIB} MiB holds {held} bytes")
            ended = True
        finally:
            self.attack("DELETE", session, key)
            if ended and not self.soon(lambda: self.state(session, key) == "ended"):
                self.fault(f"a session is not gone {END_SECONDS} s after its end")
        if os.path.exists(f"{self.daemon.state}/sessions/session-{name}"):
            self.fault("the directory of an ended session is there")

    def trick_revoked_while_it_runs(self):
        made = json.loads(self.answered((201,), "POST", "/v1/keys", self.keeper, {"role": "agent", "agent": "revoked"}))
        revoked = False
        try:
            path = self.begin(made["key"], "import time; time.sleep(60)")
            if not self.soon(lambda: self.state(path, self.keeper) == "running"):
                raise NotPlayed("no control: the call waits")
            self.answered((200, 204), "DELETE", "/v1/keys/" + made["key_id"], self.keeper)
            revoked = True
            if not self.soon(lambda: self.state(path, self.keeper) == "finished"):
                self.fault(f"a revoked key's call runs {END_SECONDS} s later")
        finally:
            if not revoked:
                self.attack("DELETE", "/v1/keys/" + made["key_id"], self.keeper)

    def trick_burn_cpu(self):
        key = self.key()
        paths = [self.begin(key, "while True: pass") for _ in range(4)]
        try:
            if not self.soon(lambda: any(self.state(path, key) == "running" for path in paths)):
                raise NotPlayed("no control: the calls wait")
            time.sleep(BURN_SECONDS)
        finally:
            for path in paths:
                self.attack("POST", path + "/cancel", key)
        if not self.soon(lambda: all(self.state(path, key) == "finished" for path in paths)):
            self.fault(f"a cancelled call runs {END_SECONDS} s later")
