# SPDX-License-Identifier: Apache-2.0
"""What the API answers, as values. Names are those of docs/HTTP.md; times stay texts (UTC, RFC 3339)."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Union

from . import _reading as read
from ._reading import Json
from .errors import ProtocolError

Limits = Mapping[str, Union[str, int]]  # {"memory": "64MiB", "wall": "5s"}, as a manifest writes them


@dataclass(frozen=True)
class ErrorInfo:
    error_class: str  # `class` in JSON
    message: str

    @classmethod
    def read(cls, value: Optional[Json]) -> Optional["ErrorInfo"]:
        return None if value is None else cls(read.text(value, "class"), read.text(value, "message"))


@dataclass(frozen=True)
class Denial:
    surface: str
    operation: str
    target: str
    rule: str
    reason: str
    fix: Optional[str]  # the smallest change that would allow it
    count: int

    @classmethod
    def read(cls, value: Json) -> "Denial":
        return cls(read.text(value, "surface"), read.text(value, "operation"), read.text(value, "target"),
                   read.text(value, "rule"), read.text(value, "reason"), read.optional_text(value, "fix"),
                   read.integer(value, "count"))


@dataclass(frozen=True)
class LogPosition:
    """Where the receipt is in the audit log, and the log's size and root then. Keep it: it shows a later rewrite."""

    index: int
    size: int
    root: str

    @classmethod
    def read(cls, value: Json) -> "LogPosition":
        return cls(read.integer(value, "index"), read.integer(value, "size"), read.text(value, "root"))


@dataclass(frozen=True)
class CallResult:
    """A call as far as it is known. `outcome` is None while it runs."""

    call_id: str
    outcome: Optional[str]  # success | error | denied | terminated | unknown
    stdout: str
    stderr: str
    truncated: bool
    exit_code: Optional[int]
    exit_signal: Optional[int]
    structured: Any
    error: Optional[ErrorInfo]
    denials: List[Denial]
    log: Optional[LogPosition]
    retry_after: Optional[int]
    replayed: bool = False  # an earlier request with the same idempotency key ran it
    state: Optional[str] = None  # of Coffer.get: queued | gated | running | finished
    tool: Optional[str] = None
    reason: Optional[str] = None
    session_id: Optional[str] = None

    @property
    def ok(self) -> bool:
        """True if the tool ran and ended with 0."""
        return self.outcome == "success"

    @classmethod
    def read(cls, value: Json, replayed: bool = False) -> "CallResult":
        ran = value.get("result") is not None
        output = read.member(value, "result") if ran else {}
        leave = read.member(output, "exit") if ran else {}
        error = None if value.get("error") is None else read.member(value, "error")
        return cls(
            call_id=read.answered_id(value, "call_id"), outcome=read.optional_text(value, "outcome"),
            stdout=read.text(output, "stdout") if ran else "", stderr=read.text(output, "stderr") if ran else "",
            truncated=read.boolean(output, "truncated") if ran else False,
            exit_code=read.optional_integer(leave, "code"), exit_signal=read.optional_integer(leave, "signal"),
            structured=output.get("structured"), error=ErrorInfo.read(error),
            denials=[Denial.read(item) for item in read.objects(value, "denials")],
            log=None if value.get("log") is None else LogPosition.read(read.member(value, "log")),
            retry_after=read.optional_integer(value, "retry_after"), replayed=replayed,
            state=read.optional_text(value, "state"), tool=read.optional_text(value, "tool"),
            reason=read.optional_text(value, "reason"), session_id=read.optional_text(value, "session_id"))


@dataclass(frozen=True)
class Approval:
    id: str
    digest: str
    url: str
    expires_at: Optional[str]

    @classmethod
    def read(cls, value: Json) -> "Approval":
        return cls(read.text(value, "id"), read.text(value, "digest"), read.text(value, "url"),
                   read.optional_text(value, "expires_at"))


@dataclass(frozen=True)
class Event:
    """Something that a running call said: `state`, `stdout`, `stderr`, or `gap` where events were lost."""

    kind: str
    data: bytes = field(default=b"", repr=False)
    state: Optional[str] = None
    id: Optional[int] = None

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @classmethod
    def read(cls, kind: str, number: Optional[int], value: Json) -> "Event":
        if kind == "state":
            return cls(kind, state=read.word(value, "state"), id=number)
        if kind == "gap":
            return cls(kind, id=number)
        if "base64" in value:
            try:
                return cls(kind, base64.b64decode(read.text(value, "base64"), validate=True), id=number)
            except ValueError:
                raise ProtocolError("an event of the server is not base64") from None
        return cls(kind, read.text(value, "text").encode("utf-8", "replace"), id=number)


@dataclass(frozen=True)
class ToolInfo:
    name: str
    version: str
    summary: str
    effect: str  # read-only | reversible | irreversible | privileged
    state: str  # ready | disabled | stale
    problem: Optional[str]
    manifest_hash: Optional[str]
    input_schema: Optional[Dict[str, Any]] = None  # of Coffer.tool
    blast_radius: Optional[str] = None

    @classmethod
    def read(cls, value: Json) -> "ToolInfo":
        radius = read.text(read.member(value, "blast_radius"), "sentence") if "blast_radius" in value else None
        schema = None if value.get("input_schema") is None else read.member(value, "input_schema")
        return cls(read.answered_tool(value), read.text(value, "version"), read.text(value, "summary"),
                   read.text(value, "effect"), read.text(value, "state"), read.optional_text(value, "problem"),
                   read.optional_text(value, "manifest_hash"), schema, radius)


@dataclass(frozen=True)
class FileInfo:
    path: str  # for people
    encoded_path: str  # exact; what reading and removing use
    size: int
    sha256: Optional[str]
    modified_at: Optional[str]

    @classmethod
    def read(cls, value: Json) -> "FileInfo":
        return cls(read.text(value, "path"), read.answered_path(value), read.integer(value, "size"),
                   read.optional_text(value, "sha256"), read.optional_text(value, "modified_at"))


@dataclass(frozen=True)
class SessionInfo:
    session_id: str
    state: str  # open | ending | ended
    agent: str
    label: Optional[str]
    expires_at: Optional[str]
    calls: int
    max_calls: Optional[int]
    max_bytes: int

    @classmethod
    def read(cls, value: Json) -> "SessionInfo":
        return cls(read.answered_id(value, "session_id"), read.text(value, "state"), read.text(value, "agent"),
                   read.optional_text(value, "label"), read.optional_text(value, "expires_at"),
                   read.integer(value, "calls"), read.optional_integer(value, "max_calls"),
                   read.integer(read.member(value, "files"), "max_bytes"))


@dataclass(frozen=True)
class ProcessInfo:
    process_id: str
    session_id: str
    tool: str
    state: str  # running | ended
    ports: List[int]
    outcome: Optional[str]
    exit_code: Optional[int]
    exit_signal: Optional[int]
    error: Optional[ErrorInfo]

    @classmethod
    def read(cls, value: Json) -> "ProcessInfo":
        leave = read.member(value, "exit")
        ports = value.get("ports")
        if not isinstance(ports, list) or not all(type(port) is int for port in ports):
            raise ProtocolError("the member ports of the server's answer is missing or of the wrong type")
        error = None if value.get("error") is None else read.member(value, "error")
        return cls(read.answered_id(value, "process_id"), read.answered_id(value, "session_id"), read.text(value, "tool"),
                   read.text(value, "state"), ports, read.optional_text(value, "outcome"),
                   read.optional_integer(leave, "code"), read.optional_integer(leave, "signal"), ErrorInfo.read(error))


@dataclass(frozen=True)
class LogPage:
    offset: int
    next: int
    text: str
    ended: bool

    @classmethod
    def read(cls, value: Json) -> "LogPage":
        return cls(read.integer(value, "offset"), read.integer(value, "next"), read.text(value, "text"),
                   read.boolean(value, "ended"))


@dataclass(frozen=True)
class Checkpoint:
    """The log's newest signed checkpoint, and the public key that the server says is the log's."""

    checkpoint: str
    key: str
