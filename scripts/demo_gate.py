#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo's chapter about the daemon: a declared tool over HTTP, a denial with its fix, a retry storm that runs once.

usage: demo_gate.py COFFER STATE-DIRECTORY
Starts `coffer serve` on a free port of the loopback interface and ends it again. Status 1 if something was not as told.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request


def ask(base, key, method, path, body=None, headers=None):
    """(status, document) of one request."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data=data, method=method)
    request.add_header("Authorization", "Bearer " + key)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def show(verb, path, body=None):
    print(f"   $ {verb} {path}" + (f"  {json.dumps(body)}" if body else ""))


def told(good, text):
    print(f"   {'as told' if good else 'FAILED':9}{text}")
    return good


def declared_tool(base, key):
    body = {"tool": "python", "args": {"code": "print(sum(range(101)))"}}
    show("POST", "/v1/calls", body)
    status, answer = ask(base, key, "POST", "/v1/calls", body)
    result = (answer.get("result") or {}).get("stdout", "")
    good = status == 200 and answer.get("outcome") == "success" and result == "5050\n"
    return told(good, f"{status} {answer.get('outcome')}: {result.strip()!r}")


def denial(base, key, session):
    body = {"tool": "read-file", "session_id": session, "args": {"path": "../../etc/shadow"}}
    show("POST", "/v1/calls", body)
    status, answer = ask(base, key, "POST", "/v1/calls", body)
    reasons = [f"{d['rule']}: {d['reason']}; fix: {d['fix']}" for d in answer.get("denials", [])]
    good = status == 200 and answer.get("outcome") == "denied" and bool(reasons)
    return told(good, f"{answer.get('outcome')}: {'; '.join(reasons)}")


def retry_storm(base, key, session):
    code = "import time\ntime.sleep(0.3)\nopen('payments', 'a').write('paid\\n')"
    body = {"tool": "python", "session_id": session, "args": {"code": code}}
    show("14 x POST", "/v1/calls", {"tool": "python", "Idempotency-Key": "invoice-4711"})

    def pay(_):
        return ask(base, key, "POST", "/v1/calls", body, {"Idempotency-Key": "invoice-4711"})[0]

    with concurrent.futures.ThreadPoolExecutor(14) as clients:
        statuses = sorted(clients.map(pay, range(14)))
    again, _ = ask(base, key, "POST", "/v1/calls", body, {"Idempotency-Key": "invoice-4711"})
    read = {"tool": "read-file", "session_id": session, "args": {"path": "payments"}}
    _, answer = ask(base, key, "POST", "/v1/calls", read)
    payments = (answer.get("result") or {}).get("stdout", "").count("paid")
    counts = ", ".join(f"{statuses.count(s)} x {s}" for s in sorted(set(statuses)))
    good = payments == 1 and set(statuses) <= {200, 409} and again == 200
    return told(good, f"{counts}; a retry afterwards: {again}, the stored answer; payments made: {payments}")


def record(coffer, state, base, key):
    """What happened is told, proven, and a forged receipt is noticed."""
    body = {"tool": "python", "args": {"code": "print('on record')"}}
    _, answer = ask(base, key, "POST", "/v1/calls", body)
    _, receipt = ask(base, key, "GET", f"/v1/calls/{answer['call_id']}/receipt")

    def audit(*words):
        return subprocess.run([coffer, "audit", *words, "--state", state], capture_output=True, text=True, timeout=60)

    print("   $ coffer audit verify")
    verified = audit("verify")
    good = told(verified.returncode == 0, verified.stdout.splitlines()[0] if verified.stdout else verified.stderr)
    with tempfile.TemporaryDirectory() as place:
        key_file, file = os.path.join(place, "key.pub"), os.path.join(place, "receipt.json")
        with open(key_file, "w", encoding="utf-8") as out:
            out.write(audit("key").stdout)
        verdicts = []
        for outcome in ("success", "denied"):
            with open(file, "w", encoding="utf-8") as out:
                json.dump({**receipt, "outcome": outcome}, out)
            verdicts.append(audit("verify-receipt", file, "--key", key_file))
    print("   $ coffer audit verify-receipt receipt.json --key key.pub   # as it was, then with one word changed")
    words = "; ".join(verdict.stdout.strip() for verdict in verdicts)
    return told([verdict.returncode for verdict in verdicts] == [0, 1], words) and good


def main():
    coffer, state = sys.argv[1:3]
    daemon = subprocess.Popen([coffer, "serve", "--state", state, "--listen", "127.0.0.1:0", "--json"],
                              stdout=subprocess.PIPE, text=True)
    try:
        line = daemon.stdout.readline()
        if not line:
            print("   FAILED   the daemon did not start")
            return 1
        ready = json.loads(line)
        base, key = ready["listen"], ready["key"]
        print(f"   coffer serve listens on {base}")
        good = declared_tool(base, key)
        _, session = ask(base, key, "POST", "/v1/sessions", {})
        good = denial(base, key, session["session_id"]) and good
        good = retry_storm(base, key, session["session_id"]) and good
        good = record(coffer, state, base, key) and good
        # As root its files are a file system of their own, which stays mounted until the session ends.
        ask(base, key, "DELETE", f"/v1/sessions/{session['session_id']}")
        return 0 if good else 1
    finally:
        daemon.terminate()
        daemon.wait(timeout=20)


if __name__ == "__main__":
    sys.exit(main())
