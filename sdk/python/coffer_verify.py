#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verifies an audit log of Cofferdam, a store against its log, or one sealed receipt, with Python's standard library only.

    coffer_verify.py log DIRECTORY [--key FILE] [--checkpoint FILE] [--json]
    coffer_verify.py store STATE_DIRECTORY [--key FILE] [--json]        while no daemon runs
    coffer_verify.py receipt FILE --key FILE [--json]

The package cofferdam stands beside it. Exit status: 0 good, 1 something is wrong (it is said what), 2 it could not be read. Written from docs/AUDIT_LOG.md and
not from the C++ code, so that the two can be compared; it shares no line with it. Slow where that keeps it simple.
"""
import argparse
import datetime
import fcntl
import json
import os
import re
import sqlite3
import sys

from cofferdam._canonical import KEY_NAME, Key, Unreadable, dump, from_base64, leaf_hash, node_hash, parse, read_leaf, sha256
from cofferdam.errors import VerificationError
from cofferdam.receipts import verify_receipt


def from_decimal(text):
    if not re.fullmatch(rb"0|[1-9][0-9]{0,18}", text):
        return None
    return int(text) if int(text) < 2**63 else None


def read_key(path):
    try:
        with open(path, encoding="ascii") as file:
            return Key(file.read(4096))
    except (OSError, UnicodeDecodeError) as failure:
        raise Unreadable(f"cannot read the public key: {failure}") from failure


# ---- The tree (RFC 9162, 2.1) ---------------------------------------------------------------------------------------

class Tree:
    """A stack of (height, hash) of complete subtrees."""

    def __init__(self):
        self.size = 0
        self.stack = []

    def append(self, leaf):
        height, node = 0, leaf
        while self.stack and self.stack[-1][0] == height:
            node = node_hash(self.stack.pop()[1], node)
            height += 1
        self.stack.append((height, node))
        self.size += 1

    def root(self):
        if not self.stack:
            return sha256(b"")
        node = self.stack[-1][1]
        for _, left in reversed(self.stack[:-1]):
            node = node_hash(left, node)
        return node


# ---- Checkpoints ----------------------------------------------------------------------------------------------------

class Checkpoint:
    def __init__(self, size, root, prev, signature):
        self.size = from_decimal(size)
        self.root = from_base64(root)
        self.prev = prev
        blob = from_base64(signature)
        if self.size is None or self.root is None or len(self.root) != 32 or \
                not re.fullmatch(rb"[0-9a-f]{64}", prev) or blob is None or len(blob) != 68:
            raise ValueError("not a checkpoint")
        self.signed = size + b"\n" + root + b"\nprev " + prev + b"\n"
        self.key_id, self.signature = blob[:4], blob[4:]

    def signed_by(self, key, origin):
        return self.key_id == key.id and key.verify(origin + b"\n" + self.signed, self.signature)


def read_checkpoint(line):
    parts = line.split(b" ")
    if len(parts) != 5 or parts[0] != b"=":
        raise ValueError("not a checkpoint")
    return Checkpoint(*parts[1:])


def read_note(data):
    lines = data.split(b"\n")
    mark = "\N{EM DASH} ".encode()
    mine = mark + KEY_NAME.encode() + b" "
    if len(lines) < 7 or lines[4] or lines[-1] or not lines[3].startswith(b"prev ") or \
            not all(line.startswith(mark) for line in lines[5:-1]):
        raise Unreadable("not a checkpoint of a log")
    for line in lines[5:-1]:
        if line.startswith(mine):
            try:
                return lines[0], Checkpoint(lines[1], lines[2], lines[3][5:], line[len(mine):])
            except ValueError:
                break
    raise Unreadable("not a checkpoint of a log")


# ---- The log --------------------------------------------------------------------------------------------------------

class LogVerifier:
    HEADER = re.compile(rb"# coffer log 1 (coffer\.log/[0-9a-f]{16})")

    def __init__(self, key, kept=None):
        self.key, self.kept = key, kept
        self.findings = []
        self.origin = b""
        self.line = self.records = self.checkpoints = self.next_seq = self.since = self.drift = 0
        self.tree = Tree()
        self.roots_hold = True
        self.prev = b""
        self.last, self.last_line = None, 0
        self.decided, self.ended = set(), set()
        self.root_at_kept = sha256(b"") if kept and kept[1].size == 0 else None

    def find(self, code, message, seq=None, line=None):
        self.findings.append({"line": self.line if line is None else line, "seq": seq, "code": code,
                              "message": message})

    def see(self, line):
        self.line += 1
        if self.line == 1:
            header = self.HEADER.fullmatch(line)
            if not header:
                self.find("log.header", "the first line is not the header of a log")
            self.origin = header.group(1) if header else b""
            self.prev = sha256(line)
        elif line.startswith(b"{"):
            self.see_leaf(line)
        elif line.startswith(b"="):
            self.see_checkpoint(line)
        else:
            self.find("log.line", "neither a record nor a checkpoint")

    def see_leaf(self, line):
        self.tree.append(leaf_hash(line))
        self.records += 1
        self.since += 1
        if self.kept and self.tree.size == self.kept[1].size:
            self.root_at_kept = self.tree.root()
        try:
            leaf = read_leaf(line)
        except ValueError as problem:
            self.find("log.line", f"a record that cannot be read: {problem}", self.next_seq)
            self.next_seq += 1
            return
        seq = int(leaf["seq"])
        if seq != self.next_seq:
            self.find("log.seq", f"record {seq} stands where {self.next_seq} was expected", seq)
        self.next_seq = seq + 1
        call = (leaf["tenant"], leaf.get("call"))
        if leaf["kind"] == "decision":
            self.decided.add(call)
        elif leaf["kind"] == "receipt":
            if call in self.ended and not leaf.get("recovered", False):
                self.find("log.receipt", f"call {call[1]}: a second receipt", seq)
            elif leaf["ran"] and call not in self.decided:
                self.find("log.decision", f"call {call[1]}: it ran without a decision before it", seq)
            self.ended.add(call)

    def see_checkpoint(self, line):
        self.checkpoints += 1
        prev, self.prev = self.prev, sha256(line)
        try:
            read = read_checkpoint(line)
        except ValueError:
            self.find("log.checkpoint", "a checkpoint that cannot be read")
            return
        if read.prev != prev.hex().encode():
            self.find("log.chain", "the checkpoint does not follow the one before it")
        if read.size - self.records != self.drift:
            self.find("log.size", f"the checkpoint is for {read.size} records, {self.records} stand before it")
            self.drift = read.size - self.records
        elif self.last and read.size <= self.last.size:
            self.find("log.size", "the checkpoint is for no more records than the one before it")
        if self.roots_hold and read.root != self.tree.root():
            first = self.last.size if self.last else 0
            self.find("log.root", f"records {first} to {read.size - 1} differ from the signed checkpoint")
            self.roots_hold = False
        self.since, self.last, self.last_line = 0, read, self.line

    def end(self, rest):
        if rest or self.line == 0:
            self.line += 1
            self.find("log.header" if self.line == 1 else "log.line", "the file ends in the middle of a line")
        if self.last is None:
            self.find("log.checkpoint", "there is no checkpoint", line=0)
        elif not self.last.signed_by(self.key, self.origin):
            self.find("log.signature", f"the last checkpoint is not signed with key {self.key.id.hex()} for this log",
                      line=self.last_line)
        if self.since:
            self.find("log.tail", f"{self.since} records stand behind the last checkpoint", line=0)
        if self.kept:
            self.end_kept(*self.kept)

    def end_kept(self, origin, kept):
        if not kept.signed_by(self.key, origin):
            self.find("log.kept", f"the kept checkpoint is not signed with key {self.key.id.hex()}", line=0)
        elif origin != self.origin:
            self.find("log.kept", "the kept checkpoint is of another log", line=0)
        elif kept.size > (self.last.size if self.last else 0):
            self.find("log.kept", f"the log had {kept.size} records when the checkpoint was kept: some are gone", line=0)
        elif self.root_at_kept != kept.root:
            self.find("log.kept", f"the first {kept.size} records are not those of the kept checkpoint: the log was "
                      "rewritten", line=0)

    def verdict(self):
        return {"ok": not self.findings, "findings": self.findings, "records": self.records,
                "checkpoints": self.checkpoints, "size": self.last.size if self.last else 0,
                "root": self.last.root.hex() if self.last else "", "key_id": self.key.id.hex(),
                "origin": self.origin.decode()}


def lines_of(file, size):
    """The complete lines of the first `size` bytes; then, as the last item, what stands behind the last newline."""
    rest = b""
    while size > 0:
        data = file.read(min(size, 1 << 20))
        if not data:
            raise Unreadable("the log became shorter while it was read")
        size -= len(data)
        parts = (rest + data).split(b"\n")
        rest = parts.pop()
        for part in parts:
            yield part, True
    yield rest, False


def verify_log(directory, key=None, kept=None):
    """The verdict on a log as a dictionary. `key` is a Key, `kept` the bytes of a checkpoint from elsewhere."""
    key = key or read_key(os.path.join(directory, "key.pub"))
    verifier = LogVerifier(key, read_note(kept) if kept is not None else None)
    try:
        with open(os.path.join(directory, "records"), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # no writer is in the middle of a batch
            size = os.fstat(file.fileno()).st_size
            fcntl.flock(file, fcntl.LOCK_UN)
            for line, complete in lines_of(file, size):
                if complete:
                    verifier.see(line)
                else:
                    verifier.end(line)
    except OSError as failure:
        raise Unreadable(f"cannot read the log: {failure}") from failure
    return verifier.verdict()


# ---- The store against the log --------------------------------------------------------------------------------------

# The events that cover what is gone: of whole calls, and of results that go before their calls.
PRUNED, RESULTS_PRUNED = ("pruned",), ("results.pruned", "results.expired")
DECIDED = (("tool_version", "tool_version"), ("manifest_hash", "manifest_hash"), ("envelope_id", "envelope_id"),
           ("effect", "effect"))
PLAIN = (("id", "call_id"), ("tenant", "tenant"), ("parent_id", "parent_id"), ("session_id", "session_id"),
         ("trace_id", "trace_id"), ("agent", "agent"), ("user", "user"), ("tool", "tool"))


def in_words(nanos):
    """A time of the store as receipts write it."""
    seconds, rest = divmod(nanos, 10**9)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 10**6:03d}Z"


def row_differences(row, receipt, leaf):
    """The columns of a row that are not what its receipt says."""
    ran = leaf["ran"] is True
    error, leave, output = receipt["error"] or {}, receipt["exit"], receipt["output"]
    cpu = (receipt["limits"].get("cpu") or {}).get("used")
    expected = {column: receipt[name] or "" for column, name in PLAIN}
    expected.update({column: receipt[name] or "" for column, name in DECIDED if ran or row[column]})
    expected.update({
        "state": "refused" if not ran else "unknown" if receipt["outcome"] == "unknown" else "finished",
        "outcome": receipt["outcome"], "error_class": error.get("class") or "",
        "error_message": error.get("message") or "", "exit_code": leave["code"] or "", "exit_signal": leave["signal"] or "",
        "requested_at": receipt["requested_at"], "finished_at": receipt["finished_at"], "cpu": cpu or "0",
        "bytes_out": output["bytes"], "denials": str(len(receipt["denials"])),
        "approval": receipt["approval"]["state"] or "", "log_index": leaf["seq"]})
    if receipt["started_at"] is not None or not ran:
        expected["started_at"] = receipt["started_at"] or ""
    found = []
    for column, wanted in expected.items():
        value = row[column]
        if column.endswith("_at") and value is not None:
            value = in_words(value)
        if str("" if value is None else value) != str(wanted):
            found.append(column)
    if row["args"] != dump(receipt["args_redacted"]) if row["args"] is not None else ran:
        found.append("args")
    return found


ASKED = (("parent", "parent_id"), ("session", "session_id"), ("agent", "agent"), ("user", "user"), ("tool", "tool"),
         ("trace", "trace_id"))
OF_THE_TOOL = (("effect", "effect"), ("tool_version", "tool_version"), ("envelope", "envelope_id"),
               ("manifest", "manifest_hash"))


def contradictions(decision, first, receipt, ran):
    """What a recovered receipt says otherwise than the decision and the first receipt of its call; each may be None."""
    found = set()

    def compare(record, members):
        found.update(one for one, other in members if (record.get(one) or None) != (receipt.get(other) or None))

    if decision is not None:
        compare(decision, ASKED + OF_THE_TOOL if ran else ASKED)
        words = f"[{dump(receipt['args_redacted'])},{dump(receipt.get('reason') or None)}]"
        if ran and decision.get("shown") and decision["shown"] != "sha256:" + sha256(words.encode()).hex():
            found.add("shown")
    elif ran:
        found.add("decision")
    if first is not None:
        if first["ran"] is not ran:
            found.add("ran")
        compare(first, ASKED[4:] if ran or decision is not None else ASKED)
        if not ran and decision is None and "agent" not in first:
            found.add("agent")
        end = (first["outcome"], first.get("class") or None)
        if end != (receipt["outcome"], (receipt["error"] or {}).get("class")) and \
                not (ran and receipt["outcome"] == "unknown"):
            found.add("outcome")
    return sorted(found)


def note_of(decision, first, ran):
    """What a reader should know of a recovered receipt that contradicts nothing: a code and a sentence, or None."""
    if first is not None and not first.get("recovered", False):
        return "store.lost", f"it has ended in the log before (record {first['seq']}, outcome {first['outcome']}), and " \
            "that receipt did not reach the store, or was removed from it: this one stands for it"
    if decision is None:
        return "store.alone", "it was recovered after a crash and has no decision in the log: who asked for what is " \
            "known from the store alone"
    return None if ran else \
        ("store.alone", "it was recovered after a crash: that it was not started is known from the store alone")


def verify_store(state, key=None):
    """The verdict on a log and on the store beside it. Codes are those of docs/AUDIT_LOG.md."""
    directory = os.path.join(state, "log")
    verdict = verify_log(directory, key)
    receipts, decided, pruned = {}, {}, {}

    def pruned_before(names, *tenants):
        return max((pruned.get((name, tenant), 0) for name in names for tenant in tenants), default=0)

    with open(os.path.join(directory, "records"), "rb") as file:
        for line in file:
            if not line.startswith(b"{"):
                continue
            try:
                leaf = read_leaf(line.rstrip(b"\n"))
            except ValueError:
                continue  # a finding already
            if leaf["kind"] == "receipt":
                receipts[int(leaf["seq"])] = leaf
            elif leaf["kind"] == "decision":
                decided.setdefault((leaf["tenant"], leaf["call"]), leaf)
            elif leaf["name"] in PRUNED + RESULTS_PRUNED:
                event = (leaf["name"], leaf["tenant"])
                pruned[event] = max(pruned.get(event, 0), int(leaf["detail"].get("before", "0")))

    def find(code, call, message, seq=None):
        verdict["findings"].append({"line": 0, "seq": seq, "code": code, "message": f"call {call}: {message}"})

    first = {}
    for leaf in receipts.values():
        first.setdefault((leaf["tenant"], leaf["call"]), leaf)
    verdict["notes"] = []

    def check_recovered(leaf, document):
        seq, call = int(leaf["seq"]), (leaf["tenant"], leaf["call"])
        before = first[call] if int(first[call]["seq"]) < seq else None
        wrong = contradictions(decided.get(call), before, document, leaf["ran"])
        note = note_of(decided.get(call), before, leaf["ran"])
        if wrong:
            find("store.recovered", leaf["call"], "its receipt, recovered after a crash, differs from what the log said "
                 "before: " + ", ".join(wrong), seq)
        elif note:
            verdict["notes"].append({"line": 0, "seq": seq, "code": note[0], "message": f"call {call[1]}: {note[1]}"})

    try:
        store = sqlite3.connect(f"file:{os.path.join(state, 'coffer.db')}?mode=ro", uri=True)
        store.row_factory = sqlite3.Row

        def body_of(table, row, more=""):
            found = store.execute(f"SELECT body FROM {table} WHERE tenant = ? AND call_id = ?{more}",
                                  (row["tenant"], row["id"])).fetchone()
            return found["body"] if found else None

        def note_objects(row):
            at = row["decided_at"] if row["started_at"] is None else row["started_at"]
            for name in ("manifest_hash", "envelope_id"):
                key = (row["tenant"], row[name])
                if row[name] and at is not None and at >= named.get(key, (at,))[0]:
                    named[key] = (at, row["id"])

        # From the table itself: an index may leave rows out. In a join SQLite would take one all the same.
        rows = store.execute("SELECT * FROM calls NOT INDEXED ORDER BY log_index")
        compared, seen, last = 0, set(), {}
        named = {}  # manifests and envelopes, each by the latest call that was allowed by it
        for row in rows:
            row = dict(row, receipt=body_of("documents", row, " AND kind = 'receipt'"),
                       args=body_of("documents", row, " AND kind = 'args'"), result=body_of("results", row))
            call = row["id"]
            if row["finished_at"] is None:
                if row["state"] in ("recorded", "started") and (row["tenant"], call) not in decided:
                    find("store.undecided", call, "it runs in the store, and the log has no decision of it")
                note_objects(row)
                continue
            last[(row["tenant"], call)] = -1 if row["log_index"] is None else row["log_index"]
            leaf = receipts.get(row["log_index"])
            if leaf is None or (leaf["tenant"], leaf["call"]) != (row["tenant"], call):
                find("store.unlogged", call, "it has ended in the store and is not in the log")
                continue
            compared += 1
            seen.add(int(leaf["seq"]))
            try:
                document = parse(row["receipt"] or "")
                canonical = dump({**document, "log": None, "signature": None}).encode()
            except (ValueError, TypeError, RecursionError):
                document, canonical = None, b""
            if document is None or leaf["body"] != "sha256:" + sha256(canonical).hex():
                find("store.receipt", call, "the stored receipt is not the one that was logged", int(leaf["seq"]))
                continue
            columns = row_differences(row, document, leaf)
            if columns:
                find("store.row", call, "the row differs from its seal: " + ", ".join(columns), int(leaf["seq"]))
            else:
                note_objects(row)
            if leaf.get("recovered", False):
                check_recovered(leaf, document)
            sealed = document["output"].get("result_sha256")
            if row["result"] is not None and sealed != "sha256:" + sha256(row["result"].encode()).hex():
                find("store.result", call, "the stored result is not the one that was sealed", int(leaf["seq"]))
            elif row["result"] is None and sealed is not None and \
                    int(leaf["at"]) >= pruned_before(RESULTS_PRUNED, row["tenant"]):
                find("store.result", call, "the stored result is gone, and no pruning covers it", int(leaf["seq"]))
        for tenant, name, body in store.execute("SELECT tenant, hash, body FROM objects"):
            named.pop((tenant, name), None)
            if "sha256:" + sha256(body.encode()).hex() != name:
                verdict["findings"].append({"line": 0, "seq": None, "code": "store.object",
                                            "message": f"the manifest or envelope {name} has another hash"})
        for (tenant, name), (at, call) in named.items():
            if at + 60 * 10**9 >= pruned_before(PRUNED, tenant, None):
                find("store.object", call, f"its manifest or envelope {name} is gone, and no pruning covers it")
        # Lists search indexes and read the tenants first: what these leave out is in no list.
        wrong = [line for (line,) in store.execute("PRAGMA integrity_check(100)") if line != "ok"]
        if wrong:
            verdict["findings"].append({"line": 0, "seq": None, "code": "store.index",
                                        "message": f"the database does not fit together: {wrong[0]}"})
        for (tenant,) in store.execute("SELECT DISTINCT tenant FROM calls WHERE tenant NOT IN "
                                       "(SELECT name FROM tenants) LIMIT 100"):
            verdict["findings"].append({"line": 0, "seq": None, "code": "store.tenant",
                                        "message": f"tenant {tenant} has calls and is not in the database"})
    except (sqlite3.Error, OSError) as failure:
        raise Unreadable(f"cannot read the store: {failure}") from failure
    for seq, leaf in receipts.items():
        covered = int(leaf["at"]) < pruned_before(PRUNED, leaf["tenant"], None)
        if seq not in seen and not covered and last.get((leaf["tenant"], leaf["call"]), -1) < seq:
            find("store.gone", leaf["call"], "it is in the log and not in the store, and no pruning covers it", seq)
    verdict.update(ok=not verdict["findings"], calls_compared=compared)
    return verdict


# ---- The program ----------------------------------------------------------------------------------------------------

def run_log(arguments):
    kept = None
    if getattr(arguments, "checkpoint", None):
        with open(arguments.checkpoint, "rb") as file:
            kept = file.read(1 << 16)
    key = read_key(arguments.key) if arguments.key else None
    verdict = verify_store(arguments.directory, key) if arguments.verb == "store" else \
        verify_log(arguments.directory, key, kept)
    if arguments.json:
        print(json.dumps(verdict))
    else:
        for finding in verdict["findings"]:
            record = "" if finding["seq"] is None else f" record {finding['seq']}"
            print(f"line {finding['line']}{record}: {finding['code']}: {finding['message']}")
        for note in verdict.get("notes", ()):
            print(f"note: record {note['seq']}: {note['code']}: {note['message']}")
        print(f"{'good' if verdict['ok'] else 'BAD'}: {verdict['records']} records, {verdict['checkpoints']} checkpoints, "
              f"root {verdict['root']} of {verdict['origin']}, key {verdict['key_id']} "
              f"({'given' if key else 'from beside the log: a user who can change both can make any log look good'})")
    return 0 if verdict["ok"] else 1


def run_receipt(arguments):
    key = read_key(arguments.key)
    with open(arguments.file, "rb") as file:
        data = file.read(1 << 26)
    try:
        answer = {"ok": True, "call": verify_receipt(data, key)}
    except VerificationError as wrong:
        answer = {"ok": False, "message": str(wrong)}
    print(json.dumps(answer) if arguments.json else
          f"good: call {answer['call']}" if answer["ok"] else f"BAD: {answer['message']}")
    return 0 if answer["ok"] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    log = verbs.add_parser("log", help="a whole log")
    log.add_argument("directory")
    log.add_argument("--key", help="the public key; otherwise the log's own key.pub")
    log.add_argument("--checkpoint", help="a checkpoint that was kept elsewhere")
    store = verbs.add_parser("store", help="the store of a state directory against its log")
    store.add_argument("directory")
    store.add_argument("--key", help="the public key; otherwise the log's own key.pub")
    receipt = verbs.add_parser("receipt", help="one receipt")
    receipt.add_argument("file")
    receipt.add_argument("--key", required=True, help="the log's public key")
    for verb in (log, store, receipt):
        verb.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    try:
        return run_receipt(arguments) if arguments.verb == "receipt" else run_log(arguments)
    except (Unreadable, OSError) as failure:
        print(f"coffer_verify: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
