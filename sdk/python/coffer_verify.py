#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Verifies an audit log of Cofferdam, a store against its log, or one sealed receipt, with Python's standard library only.

    coffer_verify.py log DIRECTORY [--key FILE] [--checkpoint FILE] [--json]
    coffer_verify.py store STATE_DIRECTORY [--key FILE] [--json]        while no daemon runs
    coffer_verify.py receipt FILE --key FILE [--json]

Exit status: 0 good, 1 something is wrong (it is said what), 2 it could not be read. Written from docs/AUDIT_LOG.md and
not from the C++ code, so that the two can be compared; it shares no line with it. Slow where that keeps it simple.
"""
import argparse
import base64
import datetime
import fcntl
import hashlib
import json
import os
import re
import sqlite3
import sys
import time

KEY_NAME = "coffer-log"
MAX_LEAF = 65535
MAX_DEPTH = 64


class Unreadable(Exception):
    """What was given cannot be judged at all."""


class Wrong(Exception):
    """A receipt that does not verify."""


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- Ed25519, verification only (RFC 8032, 5.1.7) -------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)


def _recover_x(y, sign):
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if x2 == 0:
        return None if sign else 0
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P != 0:
        x = x * SQRT_M1 % P
    if (x * x - x2) % P != 0:
        return None
    return P - x if x & 1 != sign else x


def _add(a, b):
    p = (a[1] - a[0]) * (b[1] - b[0]) % P
    q = (a[1] + a[0]) * (b[1] + b[0]) % P
    r = 2 * a[3] * b[3] * D % P
    s = 2 * a[2] * b[2] % P
    e, f, g, h = q - p, s - r, s + r, q + p
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def _multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar > 0:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _decompress(data):
    y = int.from_bytes(data, "little")
    sign = y >> 255
    y &= (1 << 255) - 1
    x = _recover_x(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def _compress(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


_BASE_Y = 4 * pow(5, P - 2, P) % P
_BASE = (_recover_x(_BASE_Y, 0), _BASE_Y, 1, _recover_x(_BASE_Y, 0) * _BASE_Y % P)
_IDENTITY = _compress((0, 1, 1, 0))


def ed25519_verify(public, message, signature):
    if len(signature) != 64 or len(public) != 32:
        return False
    a = _decompress(public)
    if a is None or _compress(_multiply(8, a)) == _IDENTITY:  # not a point, or of small order
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    minus_a = (P - a[0], a[1], a[2], P - a[3])
    return _compress(_add(_multiply(s, _BASE), _multiply(h, minus_a))) == signature[:32]


# ---- Texts with one spelling ----------------------------------------------------------------------------------------

def from_base64(text):
    """The bytes, or None if it is not exactly how those bytes are written."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    given = text if isinstance(text, bytes) else text.encode()
    return data if base64.b64encode(data) == given else None


def from_decimal(text):
    if not re.fullmatch(rb"0|[1-9][0-9]{0,18}", text):
        return None
    return int(text) if int(text) < 2**63 else None


class Key:
    def __init__(self, text):
        match = re.fullmatch(re.escape(KEY_NAME) + r"\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip())
        data = from_base64(match.group(2)) if match else None
        if data is None or len(data) != 33 or data[0] != 1:
            raise Unreadable("not a public key of a log")
        self.public = data[1:]
        self.id = sha256(KEY_NAME.encode() + b"\n" + data)[:4]
        if self.id.hex() != match.group(1):
            raise Unreadable("the public key and its id do not belong together")

    def verify(self, message, signature):
        return ed25519_verify(self.public, message, signature)


def read_key(path):
    try:
        with open(path, encoding="ascii") as file:
            return Key(file.read(4096))
    except (OSError, UnicodeDecodeError) as failure:
        raise Unreadable(f"cannot read the public key: {failure}") from failure


# ---- The tree (RFC 9162, 2.1) ---------------------------------------------------------------------------------------

def leaf_hash(line):
    return sha256(b"\x00" + line)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


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


def root_from_proof(index, size, leaf, proof):
    """The root that a proof leads to, or None if it has the wrong length (RFC 9162, 2.1.3.2)."""
    if index >= size:
        return None
    fn, sn, node = index, size - 1, leaf
    for part in proof:
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            node = node_hash(part, node)
            while fn & 1 == 0 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            node = node_hash(node, part)
        fn, sn = fn >> 1, sn >> 1
    return node if sn == 0 else None


# ---- Leaves ---------------------------------------------------------------------------------------------------------

class Literal(str):
    """A number as it was written."""


def no_twins(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a member twice")
    return result


def refuse_constant(name):
    raise ValueError(name)


def parse(text):
    return json.loads(text, object_pairs_hook=no_twins, parse_constant=refuse_constant, parse_int=Literal,
                      parse_float=Literal)


def dump(value):
    """Compact, members sorted by the bytes of their names, numbers as they were."""
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda member: member[0].encode("utf-8"))
        return "{" + ",".join(dump_text(name) + ":" + dump(item) for name, item in ordered) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(item) for item in value) + "]"
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, str):
        return dump_text(value)
    return {None: "null", True: "true", False: "false"}[value]


def dump_text(text):
    text.encode("utf-8")  # a lone surrogate is no text
    return json.dumps(text, ensure_ascii=False)


NAME = re.compile(r"[a-z0-9_.]{1,64}")
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Literal)


def is_integer(value):
    return isinstance(value, Literal) and INTEGER.fullmatch(value) is not None and abs(int(value)) < 2**63


def read_leaf(line):
    """The members of a leaf; ValueError says what is wrong with it."""
    if len(line) > MAX_LEAF:
        raise ValueError("it is longer than 65,535 bytes")
    try:
        leaf = parse(line.decode("utf-8"))
        if not isinstance(leaf, dict) or dump(leaf).encode("utf-8") != line:
            raise ValueError
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON as the log writes it") from None
    for name, value in list(leaf.items()):
        inner = value.items() if name == "detail" and isinstance(value, dict) else [(name, value)]
        for item_name, item in [(name, None), *inner]:
            plain = item is None or isinstance(item, bool) or is_text(item) or is_integer(item)
            if not NAME.fullmatch(item_name) or not plain:
                raise ValueError("it is not JSON as the log writes it")
    if leaf.get("v") != "1" or is_text(leaf["v"]):
        raise ValueError("its version is not 1")
    if not is_integer(leaf.get("seq")) or int(leaf["seq"]) < 0 or not is_integer(leaf.get("at")) or \
            not is_text(leaf.get("kind")) or not ("tenant" in leaf and (leaf["tenant"] is None or is_text(leaf["tenant"]))):
        raise ValueError("seq, at, kind or tenant is missing or of the wrong type")
    kind = leaf["kind"]
    if kind == "decision":
        if not is_text(leaf.get("call")) or not is_text(leaf.get("decision")):
            raise ValueError("a decision without its call")
    elif kind == "receipt":
        body = "body" in leaf and (leaf["body"] is None or is_text(leaf["body"]))
        if not is_text(leaf.get("call")) or not is_text(leaf.get("outcome")) or not body or \
                not isinstance(leaf.get("ran"), bool) or not isinstance(leaf.get("recovered", False), bool):
            raise ValueError("a receipt without its call, outcome, body or ran")
    elif kind == "event":
        if not is_text(leaf.get("name")) or not isinstance(leaf.get("detail"), dict):
            raise ValueError("an event without its name or detail")
    else:
        raise ValueError("its kind is not decision, receipt or event")
    return leaf


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
            self.find("log.root", f"records {first} to {read.size - 1}, between checkpoints, are not what was signed")
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
            fcntl.flock(file, fcntl.LOCK_SH)  # nobody is in the middle of a batch
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


# ---- Receipts -------------------------------------------------------------------------------------------------------

def depth(value):
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def member(value, name, kind):
    found = value.get(name)
    good = is_integer(found) and int(found) >= 0 if kind is int else \
        is_text(found) if kind is str else isinstance(found, kind)
    if not good:
        raise Wrong("the receipt's seal is incomplete")
    return int(found) if kind is int else found


def verify_receipt(data, key):
    """Returns the call's id; Wrong says what does not hold."""
    try:
        document = parse(data.decode("utf-8"))
        canonical = dump({**document, "log": None, "signature": None}).encode() if isinstance(document, dict) else None
    except (ValueError, RecursionError) as failure:
        raise Wrong(f"not a receipt: {failure}") from failure
    if canonical is None or depth(document) > MAX_DEPTH:
        raise Wrong("not a receipt")
    log, signature = document.get("log"), document.get("signature")
    if not isinstance(log, dict) or not isinstance(signature, dict):
        raise Wrong("the receipt is not sealed")
    index, size = member(log, "index", int), member(log, "size", int)
    root, line = member(log, "root", str), member(log, "leaf", str)
    proof = member(log, "proof", list)
    value = from_base64(member(signature, "value", str))
    if signature.get("algorithm") != "ed25519" or value is None or len(log) != 5 or len(signature) != 3:
        raise Wrong("the receipt's seal is incomplete")
    if not all(is_text(part) and re.fullmatch(r"[0-9a-f]{64}", part) for part in [root, *proof]) or len(proof) > 64:
        raise Wrong("the receipt's proof is not made of hashes")
    if member(signature, "key_id", str) != key.id.hex():
        raise Wrong(f"the receipt was sealed with the key {signature['key_id']}, this is {key.id.hex()}")
    if not key.verify(f"coffer receipt 1\n{root}\n{size}\n{index}\n".encode() + canonical, value):
        raise Wrong("the receipt was changed after it was sealed: its signature does not verify")
    try:
        leaf = read_leaf(line.encode())
    except ValueError as problem:
        raise Wrong(f"the log's line in the receipt cannot be read: {problem}") from problem
    if leaf["kind"] != "receipt" or int(leaf["seq"]) != index:
        raise Wrong("the log's line in the receipt is not one about a receipt")
    if leaf["body"] != "sha256:" + sha256(canonical).hex():
        raise Wrong("the receipt is not the one that the log recorded: its hash differs")
    if leaf["call"] != document.get("call_id") or leaf["tenant"] != document.get("tenant"):
        raise Wrong("the log's line in the receipt is about another call")
    found = root_from_proof(index, size, leaf_hash(line.encode()), [bytes.fromhex(part) for part in proof])
    if found is None or found.hex() != root:
        raise Wrong("the log's line in the receipt is not under the root it names")
    return leaf["call"]


# ---- The store against the log --------------------------------------------------------------------------------------

RESULTS_ARE_KEPT = 24 * 3600 * 10**9  # nanoseconds, at least
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


def verify_store(state, key=None):
    """The verdict on a log and on the store beside it. Codes are those of docs/AUDIT_LOG.md."""
    directory = os.path.join(state, "log")
    verdict = verify_log(directory, key)
    receipts, decided, pruned = {}, set(), {}
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
                decided.add((leaf["tenant"], leaf["call"]))
            elif leaf["name"] == "pruned":
                tenant = leaf["tenant"]
                pruned[tenant] = max(pruned.get(tenant, 0), int(leaf["detail"].get("before", "0")))

    def find(code, call, message, seq=None):
        verdict["findings"].append({"line": 0, "seq": seq, "code": code, "message": f"call {call}: {message}"})

    try:
        store = sqlite3.connect(f"file:{os.path.join(state, 'coffer.db')}?mode=ro", uri=True)
        store.row_factory = sqlite3.Row
        rows = store.execute(
            "SELECT c.*, r.body AS receipt, a.body AS args, o.body AS result FROM calls c "
            "LEFT JOIN documents r ON r.tenant = c.tenant AND r.call_id = c.id AND r.kind = 'receipt' "
            "LEFT JOIN documents a ON a.tenant = c.tenant AND a.call_id = c.id AND a.kind = 'args' "
            "LEFT JOIN results o ON o.tenant = c.tenant AND o.call_id = c.id ORDER BY c.log_index")
        compared, seen, last = 0, set(), {}
        for row in rows:
            call = row["id"]
            if row["finished_at"] is None:
                if row["state"] in ("recorded", "started") and (row["tenant"], call) not in decided:
                    find("store.undecided", call, "it runs in the store, and the log has no decision of it")
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
                find("store.row", call, "the row is not what was sealed: " + ", ".join(columns), int(leaf["seq"]))
            sealed = document["output"].get("result_sha256")
            young = int(leaf["at"]) > time.time_ns() - RESULTS_ARE_KEPT + 60 * 10**9
            if row["result"] is not None and sealed != "sha256:" + sha256(row["result"].encode()).hex():
                find("store.result", call, "the stored result is not the one that was sealed", int(leaf["seq"]))
            elif row["result"] is None and sealed is not None and young:
                find("store.result", call, "the stored result is gone", int(leaf["seq"]))
    except (sqlite3.Error, OSError) as failure:
        raise Unreadable(f"cannot read the store: {failure}") from failure
    for seq, leaf in receipts.items():
        covered = int(leaf["at"]) < max(pruned.get(leaf["tenant"], 0), pruned.get(None, 0))
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
        print(f"{'good' if verdict['ok'] else 'BAD'}: {verdict['records']} records, {verdict['checkpoints']} checkpoints, "
              f"root {verdict['root']} of {verdict['origin']}, key {verdict['key_id']} "
              f"({'given' if key else 'from beside the log: who can change both can make any log look good'})")
    return 0 if verdict["ok"] else 1


def run_receipt(arguments):
    key = read_key(arguments.key)
    with open(arguments.file, "rb") as file:
        data = file.read(1 << 26)
    try:
        answer = {"ok": True, "call": verify_receipt(data, key)}
    except Wrong as wrong:
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
