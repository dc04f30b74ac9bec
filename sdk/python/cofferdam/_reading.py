# SPDX-License-Identifier: Apache-2.0
"""Reads what a server answered. Everything is checked before it is used: a wrong type is a ProtocolError, never a KeyError.

Ids and encoded paths that a server chose go into later requests, so they must look like ids and paths. Otherwise a hostile
server could choose which request the client makes next.
"""
from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional
from urllib.parse import quote, unquote_to_bytes

from ._endpoint import Secret
from .errors import ProtocolError

_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ENCODED = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+")
_TOOL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")

Json = Dict[str, Any]


def parse_object(body: bytes, secret: Optional[Secret] = None) -> Json:
    """The JSON object that a body is. `secret` is taken out of every text in it, however it was spelled."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ProtocolError("the server's answer is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("the server's answer is not a JSON object")
    found: Json = value
    if secret is not None and (secret.reveal().encode() in body or b"\\u" in body):
        try:
            found = _without(value, secret)
        except RecursionError:
            raise ProtocolError("the server's answer is nested too deeply") from None
    return found


def _without(value: Any, secret: Secret) -> Any:
    if isinstance(value, str):
        return value.replace(secret.reveal(), "<key>")
    if isinstance(value, list):
        return [_without(item, secret) for item in value]
    if isinstance(value, dict):
        return {name.replace(secret.reveal(), "<key>"): _without(item, secret) for name, item in value.items()}
    return value


def _wrong(name: str) -> ProtocolError:
    return ProtocolError(f"the member {name} of the server's answer is missing or of the wrong type")


def text(value: Json, name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise _wrong(name)
    return found


def word(value: Json, name: str) -> str:
    found = text(value, name)
    if not re.fullmatch(r"[a-z]{1,32}", found):
        raise _wrong(name)
    return found


def optional_text(value: Json, name: str) -> Optional[str]:
    return None if value.get(name) is None else text(value, name)


def integer(value: Json, name: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not -2**63 <= found < 2**63:
        raise _wrong(name)
    return found


def optional_integer(value: Json, name: str) -> Optional[int]:
    return None if value.get(name) is None else integer(value, name)


def boolean(value: Json, name: str) -> bool:
    found = value.get(name)
    if not isinstance(found, bool):
        raise _wrong(name)
    return found


def member(value: Json, name: str) -> Json:
    found = value.get(name)
    if not isinstance(found, dict):
        raise _wrong(name)
    return found


def objects(value: Json, name: str) -> List[Json]:
    found = value.get(name)
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise _wrong(name)
    return found


def answered_id(value: Json, name: str) -> str:
    """An id that the server chose."""
    found = text(value, name)
    if not _ID.fullmatch(found):
        raise ProtocolError(f"the member {name} of the server's answer is not an id")
    return found


def answered_cursor(value: Json) -> Optional[str]:
    """`next` of a list, which goes into the next request."""
    found = optional_text(value, "next")
    if found is not None and not (found.isascii() and found.isprintable() and 0 < len(found) <= 2048):
        raise ProtocolError("the server's cursor is not one")
    return found


def answered_tool(value: Json) -> str:
    found = text(value, "name")
    if not _TOOL.fullmatch(found):
        raise ProtocolError("the server named a tool by something that is not a name")
    return found


def given_id(value: str) -> str:
    """An id that the caller of this package gave."""
    if not _ID.fullmatch(value):
        raise ValueError("this is not an id of Cofferdam: it should look like 01a1ddf1-a908-7323-9069-8724c9a25bb1")
    return value


def given_tool(name: str) -> str:
    if not _TOOL.fullmatch(name):
        raise ValueError("this is not the name of a tool: a-z, 0-9 and -, at most 63 characters")
    return name


def _climbs(encoded: str) -> bool:
    return any(unquote_to_bytes(part) in (b"", b".", b"..") for part in encoded.split("/"))


def answered_path(value: Json) -> str:
    """`encoded_path` of a file in a list."""
    found = text(value, "encoded_path")
    if not _ENCODED.fullmatch(found) or _climbs(found):
        raise ProtocolError("the server named a file by something that is not a path")
    return found


def given_path(path: str) -> str:
    """A path of the caller's, as it goes into the URL."""
    encoded = quote(path, safe="/")
    if not path or _climbs(encoded):
        raise ValueError("a path is relative to the workspace and has no empty part, no . and no ..: in/data.csv")
    return encoded
