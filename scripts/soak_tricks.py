#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tricks of scripts/soak.py that the daemon answers one by one: a store that is filled, an operator who is stopped, a key that
is revoked, files with odd names and modes. What must be refused and is not, and an internal error, fail the soak."""
import json
import random
import time

LARGE = "import sys; sys.stdout.write('\\0' * (1 << 20))"

# The one tenant whose store is small enough to be filled in a short soak.
FILLER = "filler"
CONFIG = f'[tenant.{FILLER}.storage]\ntenant = "32MiB"\nsession = "1MiB"\n'
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
