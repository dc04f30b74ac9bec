# SPDX-License-Identifier: Apache-2.0
"""Receipts, and their verification without the daemon: signature, hash, and place in the audit log.

A good receipt shows that the log's key sealed exactly this text for exactly this call. Where the public key comes from
decides what that is worth: a key that the same server handed out shows only that the server agrees with itself. Take
`key.pub` of the daemon's log directory once, over a way that you trust, and keep it.
"""
from __future__ import annotations

import re
from typing import Any, Dict, Optional, Union

from . import _reading
from ._canonical import (MAX_DEPTH, Key, Unreadable, dump, from_base64, is_integer, is_text, leaf_hash, parse, read_leaf,
                         root_from_proof, sha256)
from .errors import ProtocolError, VerificationError

_HASH = re.compile(r"[0-9a-f]{64}")


class Receipt:
    """One receipt as it was fetched. Nothing in it is to be believed before `verify`."""

    def __init__(self, raw: bytes, call_id: str) -> None:
        self.raw = raw
        self.call_id = call_id
        self.document: Dict[str, Any] = _reading.parse_object(raw)
        if self.document.get("call_id") != call_id:
            raise ProtocolError("the server sent the receipt of another call")

    def verify(self, key: str) -> None:
        """Raises VerificationError if the receipt does not hold against the public key (the line of `key.pub`)."""
        verify_receipt(self.raw, key, call_id=self.call_id)

    def __repr__(self) -> str:
        return f"Receipt(call_id={self.call_id!r})"


def verify_receipt(data: Union[bytes, str], key: Union[Key, str], *, call_id: Optional[str] = None) -> str:
    """Returns the call's id; VerificationError says what does not hold. With `call_id` it must be the receipt of that call."""
    try:
        public = Key(key) if isinstance(key, str) else key
    except Unreadable as error:
        raise VerificationError(str(error)) from None
    found = _verify(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data, public)
    if call_id is not None and found != call_id:
        raise VerificationError("this is the receipt of another call")
    return found


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _text(value: Dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not is_text(found):
        raise VerificationError("the receipt's seal is incomplete")
    return str(found)


def _count(value: Dict[str, Any], name: str) -> int:
    found = value.get(name)
    if not is_integer(found) or int(str(found)) < 0:
        raise VerificationError("the receipt's seal is incomplete")
    return int(str(found))


def _verify(data: bytes, key: Key) -> str:
    try:
        document = parse(data.decode("utf-8"))
        canonical = dump({**document, "log": None, "signature": None}).encode() if isinstance(document, dict) else None
        deep = _depth(document) > MAX_DEPTH
    except (ValueError, RecursionError) as failure:
        raise VerificationError(f"not a receipt: {failure}") from None
    if canonical is None or deep:
        raise VerificationError("not a receipt")
    log, signature = document.get("log"), document.get("signature")
    if not isinstance(log, dict) or not isinstance(signature, dict):
        raise VerificationError("the receipt is not sealed")
    index, size, root, line = _count(log, "index"), _count(log, "size"), _text(log, "root"), _text(log, "leaf")
    proof, value = log.get("proof"), from_base64(_text(signature, "value"))
    if signature.get("algorithm") != "ed25519" or value is None or len(log) != 5 or len(signature) != 3 or \
            not isinstance(proof, list):
        raise VerificationError("the receipt's seal is incomplete")
    if not all(is_text(part) and _HASH.fullmatch(part) for part in [root, *proof]) or len(proof) > 64:
        raise VerificationError("the receipt's proof is not made of hashes")
    if _text(signature, "key_id") != key.id.hex():
        raise VerificationError(f"the receipt was sealed with the key {signature['key_id']}, this is {key.id.hex()}")
    if not key.verify(f"coffer receipt 1\n{root}\n{size}\n{index}\n".encode() + canonical, value):
        raise VerificationError("the receipt was changed after it was sealed: its signature does not verify")
    return _check_place(document, canonical, index, size, root, line.encode("utf-8", "replace"), [bytes.fromhex(part) for part in proof])


def _check_place(document: Dict[str, Any], canonical: bytes, index: int, size: int, root: str, line: bytes,
                 proof: "list[bytes]") -> str:
    try:
        leaf = read_leaf(line)
    except ValueError as problem:
        raise VerificationError(f"the log's line in the receipt cannot be read: {problem}") from None
    if leaf["kind"] != "receipt" or int(leaf["seq"]) != index:
        raise VerificationError("the log's line in the receipt is not about a receipt")
    if leaf["body"] != "sha256:" + sha256(canonical).hex():
        raise VerificationError("the receipt is not the one that the log recorded: its hash differs")
    if leaf["call"] != document.get("call_id") or leaf["tenant"] != document.get("tenant"):
        raise VerificationError("the log's line in the receipt is about another call")
    found = root_from_proof(index, size, leaf_hash(line), proof)
    if found is None or found.hex() != root:
        raise VerificationError("the log's line in the receipt is not under the root it names")
    return str(leaf["call"])
