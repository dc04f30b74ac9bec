# SPDX-License-Identifier: Apache-2.0
"""What the client does, step by step, without input or output (see _steps.py): calls, retries, streams.

When a request is sent again:
  - no connection could be made, or the daemon refused it for now (429 or 503, as a problem): any request;
  - the connection was cut, or something before the daemon answered for it (502, 503, 504), so that it may have been carried
    out: a request that does the same if it is made twice. GET and PUT do; a call does because every call
    has an idempotency key, and all attempts use the same one, so that the tool runs once.
A server cannot make the client wait longer than MAX_WAIT at a time, nor beyond the operation's timeout.
"""
from __future__ import annotations

import json
import random
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Union
from urllib.parse import urlencode

from . import _reading as read
from ._endpoint import Endpoint
from ._events import EventReader
from ._http import UNBOUNDED, Answer, Request
from ._steps import Items, Open, Operation, Read, Send, Sleep
from .errors import (ApiError, ApprovalRequired, AuthError, BusyError, CallDenied, CallFailed, CallTerminated, CallUnknown,
                     CofferError, ConflictError, ConnectFailed, ConnectionLost, NotFoundError, ProtocolError)
from .receipts import Receipt
from .types import Approval, CallResult, Checkpoint, Event, Limits, ToolInfo

MAX_WAIT = 30.0
STREAM_SILENCE = 60.0  # the server sends a comment every 15 s
_JSON = (("Content-Type", "application/json"),)


def judged(result: CallResult, check: bool) -> CallResult:
    """The result; or, with `check`, an error if the tool did not come to its own end."""
    if not check:
        return result
    if result.outcome == "denied":
        raise CallDenied(result)
    if result.outcome == "terminated":
        raise CallTerminated(result)
    if result.outcome == "unknown":
        raise CallUnknown(result)
    if result.outcome == "error" and result.error is not None:
        raise CallFailed(result)
    return result


class CallOperations:
    def __init__(self, endpoint: Endpoint, timeout: float, retries: int) -> None:
        self.endpoint = endpoint
        self._timeout = timeout
        self._retries = retries

    # ---- One request ------------------------------------------------------------------------------------------------

    def deadline(self, timeout: Optional[float] = None) -> float:
        return time.monotonic() + (self._timeout if timeout is None else timeout)

    def send_request(self, request: Request, again: bool, deadline: Optional[float] = None) -> Operation[Answer]:
        until = self.deadline() if deadline is None else deadline
        attempt = 0
        while True:
            attempt += 1
            wait = min(0.1 * 2**attempt, 5.0) * (0.5 + random.random() / 2)
            failure: CofferError
            try:
                answer: Answer = yield Send(request, until)
                if answer.status < 400:
                    return answer
                failure = self._problem(answer)
            except (ConnectFailed, ConnectionLost) as error:
                failure = error
            if isinstance(failure, ConflictError) and failure.error_class == "idempotency.in_flight":
                attempt -= 1  # the first attempt still runs: its answer comes when it has ended
                wait = float(failure.retry_after or 1)
            elif isinstance(failure, BusyError) and (again or failure.refused):
                wait = max(wait, float(failure.retry_after or 0))
            elif not isinstance(failure, ConnectFailed) and not (again and isinstance(failure, ConnectionLost)):
                raise failure
            if attempt > self._retries or wait > MAX_WAIT or time.monotonic() + wait >= until:
                raise failure
            yield Sleep(wait)

    def _problem(self, answer: Answer) -> CofferError:
        busy = answer.status in (502, 503, 504)
        try:
            value = self.parse(answer)
            code, detail = read.text(value, "code"), read.text(value, "detail")
            hint = read.optional_text(value, "hint")
            wait = read.optional_integer(value, "retry_after")
            known = read.answered_id(value, "call_id") if value.get("call_id") is not None else None
            pointers = tuple((read.text(item, "pointer"), read.text(item, "message"))
                             for item in read.objects(value, "errors")) if "errors" in value else ()
        except ProtocolError:
            if not busy:
                return ProtocolError(f"the server answered with status {answer.status} and something that is not a problem")
            return BusyError(answer.status, "client.unavailable", "something before the server answers for it")
        kind = {401: AuthError, 403: AuthError, 404: NotFoundError, 409: ConflictError, 422: ConflictError,
                429: BusyError if wait is not None else ApiError}.get(answer.status, BusyError if busy else ApiError)
        return kind(answer.status, code, detail, hint=hint,
                    retry_after=None if wait is None else max(0, wait), call_id=known, pointers=pointers)

    def parse(self, answer: Answer) -> Dict[str, Any]:
        """The answer's JSON, without the key: a server may send it back, and texts of answers end up in logs."""
        return read.parse_object(answer.body, self.endpoint.key)

    def get_json(self, target: str, **query: Union[str, int, None]) -> Operation[Dict[str, Any]]:
        given = {name: str(value) for name, value in query.items() if value is not None}
        answer = yield from self.send_request(Request("GET", target + ("?" + urlencode(given) if given else "")), True)
        return self.parse(answer)

    def post_json(self, target: str, body: Mapping[str, Any], again: bool = False) -> Operation[Answer]:
        return (yield from self.send_request(Request("POST", target, _JSON, _print(body)), again))

    # ---- Calls ------------------------------------------------------------------------------------------------------

    def call(self, tool: str, args: Optional[Mapping[str, Any]], *, session_id: Optional[str], parent_id: Optional[str],
             dry_run: bool, limits: Optional[Limits], reason: Optional[str], idempotency_key: Optional[str],
             timeout: Optional[float], later: bool, check: bool,
             on_approval: Optional[Callable[[Approval], object]] = None) -> Operation[CallResult]:
        """The call's end; with `later`, its beginning (outcome None), or its end if it was refused at once."""
        body: Dict[str, Any] = {"tool": read.given_tool(tool), "args": dict(args or {})}
        if session_id is not None:
            body["session_id"] = read.given_id(session_id)
        if parent_id is not None:
            body["parent_id"] = read.given_id(parent_id)
        if dry_run:
            body["dry_run"] = True
        if limits is not None:
            body["limits"] = dict(limits)
        if reason is not None:
            body["reason"] = reason
        headers = [*_JSON, ("Idempotency-Key", _quoted(idempotency_key or str(uuid.uuid4())))]
        if later:
            headers.append(("Prefer", "respond-async"))
        until = self.deadline(timeout)
        answer = yield from self.send_request(Request("POST", "/v1/calls", tuple(headers), _print(body)), True, until)
        value = self.parse(answer)
        if value.get("outcome") == "gated":
            call_id, approval = read.answered_id(value, "call_id"), Approval.read(read.member(value, "approval"))
            if on_approval is None:
                raise ApprovalRequired(call_id, approval)
            on_approval(approval)
            if not later:
                return (yield from self.wait(call_id, until - time.monotonic(), check))
            return CallResult.read({"call_id": call_id, "outcome": None, "denials": []})
        if answer.status == 202:
            if not later:
                raise ProtocolError("the server answered before the call has ended, which was not asked for")
            return CallResult.read({**value, "result": None, "error": None, "denials": [], "log": None})
        return judged(CallResult.read(value, answer.headers.get("idempotency-replayed") == "true"), check)

    def get(self, call_id: str) -> Operation[CallResult]:
        return CallResult.read((yield from self.get_json("/v1/calls/" + read.given_id(call_id))))

    def wait(self, call_id: str, timeout: Optional[float], check: bool) -> Operation[CallResult]:
        until, pause = self.deadline(timeout), 0.02
        while True:
            result = yield from self.get(call_id)
            if result.state == "finished":
                return judged(result, check)
            if time.monotonic() + pause >= until:
                raise ConnectionLost("the call has not ended in time; it goes on")
            yield Sleep(pause)
            pause = min(pause * 1.5, 1.0)

    def cancel(self, call_id: str) -> Operation[None]:
        yield from self.post_json(f"/v1/calls/{read.given_id(call_id)}/cancel", {}, True)

    def events(self, call_id: str) -> Items[Event]:
        """Everything that the call says until it has ended; goes on where it was when the connection is cut."""
        reader, idle = EventReader(), 0
        while True:
            before = reader.last_id
            try:
                headers = (("Last-Event-ID", str(before)),) if before is not None else ()
                request = Request("GET", f"/v1/calls/{read.given_id(call_id)}/events", headers, max_body=UNBOUNDED)
                answer: Answer = yield Open(request, self.deadline(STREAM_SILENCE))
                if answer.status == 204:
                    return
                if answer.status != 200:
                    raise self._problem(answer)
                while data := (yield Read(self.deadline(STREAM_SILENCE))):
                    for event in reader.feed(data):
                        yield event
                        if event.state == "finished":
                            return
                failure: CofferError = ConnectionLost("the events ended before the call did")
            except (ConnectFailed, ConnectionLost, BusyError) as error:
                failure = error
            idle = idle + 1 if reader.last_id == before else 0
            if idle > self._retries:
                raise failure
            reader = EventReader(reader.last_id)  # half an event comes again
            yield Sleep(min(0.1 * 2**idle, 5.0))

    def receipt(self, call_id: str) -> Operation[Receipt]:
        answer = yield from self.send_request(Request("GET", f"/v1/calls/{read.given_id(call_id)}/receipt"), True)
        return Receipt(answer.body, call_id)

    def transcript(self, call_id: str) -> Operation[Optional[Dict[str, Any]]]:
        value = yield from self.get_json(f"/v1/calls/{read.given_id(call_id)}/transcript")
        return read.member(value, "transcript") if value.get("transcript") is not None else None

    def checkpoint(self) -> Operation[Checkpoint]:
        value = yield from self.get_json("/v1/audit/checkpoint")
        return Checkpoint(read.text(value, "checkpoint"), read.text(value, "key"))

    # ---- Tools ------------------------------------------------------------------------------------------------------

    def tools(self) -> Operation[List[ToolInfo]]:
        return [ToolInfo.read(item) for item in read.objects((yield from self.get_json("/v1/tools")), "tools")]

    def tool(self, name: str) -> Operation[ToolInfo]:
        return ToolInfo.read((yield from self.get_json("/v1/tools/" + read.given_tool(name))))


def _print(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None


def _quoted(key: str) -> str:
    if not 0 < len(key) <= 255 or not all("!" <= c <= "~" for c in key):
        raise ValueError("an idempotency key has 1 to 255 visible ASCII characters")
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


