# SPDX-License-Identifier: Apache-2.0
"""Texts with one spelling: canonical JSON, base64, the public key of a log, and the log's hash tree.

Receipts are signed as text, so they have to be printed again exactly as the daemon printed them. Numbers are therefore kept
as they were written (Literal) and never become a float. docs/AUDIT_LOG.md describes the format.
"""
from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

from ._ed25519 import ed25519_verify

KEY_NAME = "coffer-log"
MAX_LEAF = 65535
MAX_DEPTH = 64


class Unreadable(Exception):
    """The input cannot be judged at all."""


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def from_base64(text: Union[str, bytes]) -> Optional[bytes]:
    """The bytes, or None if it is not exactly how those bytes are written."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    given = text if isinstance(text, bytes) else text.encode()
    return data if base64.b64encode(data) == given else None


class Key:
    """The public key of a log, as `key.pub` has it; Unreadable if it is none."""

    def __init__(self, text: str) -> None:
        match = re.fullmatch(re.escape(KEY_NAME) + r"\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", text.strip())
        data = from_base64(match.group(2)) if match else None
        if match is None or data is None or len(data) != 33 or data[0] != 1:
            raise Unreadable("not a public key of a log")
        self.public = data[1:]
        self.id = sha256(KEY_NAME.encode() + b"\n" + data)[:4]
        if self.id.hex() != match.group(1):
            raise Unreadable("the public key and its id do not belong together")

    def verify(self, message: bytes, signature: bytes) -> bool:
        return ed25519_verify(self.public, message, signature)


# ---- The tree (RFC 9162, 2.1) ---------------------------------------------------------------------------------------

def leaf_hash(line: bytes) -> bytes:
    return sha256(b"\x00" + line)


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right)


def root_from_proof(index: int, size: int, leaf: bytes, proof: Sequence[bytes]) -> Optional[bytes]:
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


# ---- JSON with one spelling -----------------------------------------------------------------------------------------

class Literal(str):
    """A number as it was written."""


def _no_twins(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a member twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def parse(text: str) -> Any:
    """JSON without NaN and without a member twice; numbers are Literals."""
    return json.loads(text, object_pairs_hook=_no_twins, parse_constant=_refuse_constant, parse_int=Literal,
                      parse_float=Literal)


def dump(value: Any) -> str:
    """Compact, members sorted by the bytes of their names, numbers as they were."""
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=lambda member: str(member[0]).encode("utf-8"))
        return "{" + ",".join(_dump_text(name) + ":" + dump(item) for name, item in ordered) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dump(item) for item in value) + "]"
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, str):
        return _dump_text(value)
    return {None: "null", True: "true", False: "false"}[value]


def _dump_text(text: str) -> str:
    text.encode("utf-8")  # a lone surrogate is no text
    return json.dumps(text, ensure_ascii=False)


# ---- Leaves ---------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"[a-z0-9_.]{1,64}")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, Literal)


def is_integer(value: object) -> bool:
    return isinstance(value, Literal) and _INTEGER.fullmatch(value) is not None and abs(int(value)) < 2**63


def read_leaf(line: bytes) -> Dict[str, Any]:
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
        inner = list(value.items()) if name == "detail" and isinstance(value, dict) else [(name, value)]
        for item_name, item in [(name, None), *inner]:
            plain = item is None or isinstance(item, bool) or is_text(item) or is_integer(item)
            if not _NAME.fullmatch(item_name) or not plain:
                raise ValueError("it is not JSON as the log writes it")
    if leaf.get("v") != "1" or is_text(leaf["v"]):
        raise ValueError("its version is not 1")
    if not is_integer(leaf.get("seq")) or int(leaf["seq"]) < 0 or not is_integer(leaf.get("at")) or \
            not is_text(leaf.get("kind")) or not ("tenant" in leaf and (leaf["tenant"] is None or is_text(leaf["tenant"]))):
        raise ValueError("seq, at, kind or tenant is missing or of the wrong type")
    _check_kind(leaf)
    return leaf


def _check_kind(leaf: Dict[str, Any]) -> None:
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
