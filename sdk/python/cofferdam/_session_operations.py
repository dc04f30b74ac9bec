# SPDX-License-Identifier: Apache-2.0
"""What the client does with sessions, their files and their processes; see _operations.py."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _reading as read
from ._http import MAX_FILE, Request
from ._operations import CallOperations
from ._steps import Items, Operation, Sleep, T
from .errors import CallDenied, ConflictError, ProtocolError
from .types import CallResult, FileInfo, Limits, LogPage, ProcessInfo, SessionInfo

_SIGNALS = ("TERM", "INT", "QUIT", "HUP", "USR1", "USR2")


class Operations(CallOperations):
    # ---- Lists and files: `place` is /v1/sessions/ID or /v1/calls/ID ------------------------------------------------

    def _pages(self, target: str, name: str, make: Callable[[Dict[str, Any]], T], **query: Optional[str]) -> Items[T]:
        cursor: Optional[str] = None
        while True:
            value = yield from self.get_json(target, cursor=cursor, **query)
            for item in read.objects(value, name):
                yield make(item)
            before, cursor = cursor, read.answered_cursor(value)
            if cursor is None:
                return
            if cursor == before:
                raise ProtocolError("the server's list goes round in a circle")

    def place_of_call(self, call_id: str) -> str:
        return "/v1/calls/" + read.given_id(call_id)

    def files(self, place: str, prefix: Optional[str]) -> Items[FileInfo]:
        return self._pages(place + "/files", "files", FileInfo.read, prefix=prefix)

    def read_file(self, place: str, path: Union[str, FileInfo], max_bytes: Optional[int]) -> Operation[bytes]:
        bound = MAX_FILE if max_bytes is None else max_bytes
        answer = yield from self.send_request(Request("GET", f"{place}/files/{_encoded(path)}", max_body=bound), True)
        return answer.body

    def write_file(self, place: str, path: Union[str, FileInfo], data: bytes) -> Operation[FileInfo]:
        headers = (("Content-Type", "application/octet-stream"),)
        answer = yield from self.send_request(Request("PUT", f"{place}/files/{_encoded(path)}", headers, data), True)
        return FileInfo.read(self.parse(answer))

    def remove_file(self, place: str, path: Union[str, FileInfo]) -> Operation[None]:
        yield from self.send_request(Request("DELETE", f"{place}/files/{_encoded(path)}"), False)

    # ---- Sessions ---------------------------------------------------------------------------------------------------

    def new_session(self, lifetime: Optional[int], max_calls: Optional[int], label: Optional[str]) -> Operation[SessionInfo]:
        body = {"lifetime_seconds": lifetime, "max_calls": max_calls, "label": label}
        answer = yield from self.post_json("/v1/sessions", body)
        return SessionInfo.read(self.parse(answer))

    def sessions(self) -> Items[SessionInfo]:
        return self._pages("/v1/sessions", "sessions", SessionInfo.read)

    def session(self, session_id: str) -> Operation[SessionInfo]:
        return SessionInfo.read((yield from self.get_json("/v1/sessions/" + read.given_id(session_id))))

    def extend_session(self, session_id: str, lifetime: int) -> Operation[SessionInfo]:
        target = f"/v1/sessions/{read.given_id(session_id)}/extend"
        return SessionInfo.read(self.parse((yield from self.post_json(target, {"lifetime_seconds": lifetime}, True))))

    def end_session(self, session_id: str) -> Operation[None]:
        try:
            yield from self.send_request(Request("DELETE", "/v1/sessions/" + read.given_id(session_id)), False)
        except ConflictError as error:
            if error.error_class != "session.ended":
                raise

    # ---- Processes in the background --------------------------------------------------------------------------------

    def start_process(self, session_id: str, tool: str, args: Optional[Mapping[str, Any]], ports: Sequence[int],
                      limits: Optional[Limits], reason: Optional[str]) -> Operation[ProcessInfo]:
        body: Dict[str, Any] = {"tool": read.given_tool(tool), "args": dict(args or {}), "ports": list(ports)}
        if limits is not None:
            body["limits"] = dict(limits)
        if reason is not None:
            body["reason"] = reason
        answer = yield from self.post_json(f"/v1/sessions/{read.given_id(session_id)}/processes", body)
        value = self.parse(answer)
        if answer.status != 201:
            raise CallDenied(CallResult.read(value))
        return ProcessInfo.read(value)

    def processes(self, session_id: str) -> Operation[List[ProcessInfo]]:
        value = yield from self.get_json(f"/v1/sessions/{read.given_id(session_id)}/processes")
        return [ProcessInfo.read(item) for item in read.objects(value, "processes")]

    def process(self, place: str) -> Operation[ProcessInfo]:
        return ProcessInfo.read((yield from self.get_json(place)))

    def process_log(self, place: str, offset: int, follow: int) -> Operation[LogPage]:
        return LogPage.read((yield from self.get_json(place + "/log", offset=offset, follow=follow)))

    def follow_log(self, place: str, offset: int) -> Items[LogPage]:
        while True:
            page = yield from self.process_log(place, offset, 10)
            if page.text:
                yield page
            if page.ended:
                return
            if page.next < offset:
                raise ProtocolError("the server's log goes backwards")
            offset = page.next
            if not page.text:
                yield Sleep(0.05)  # a server that does not wait is not asked all the time

    def signal_process(self, place: str, name: str) -> Operation[None]:
        if name not in _SIGNALS:
            raise ValueError("the signal must be one of " + ", ".join(_SIGNALS))
        yield from self.post_json(place + "/signal", {"signal": name})

    def kill_process(self, place: str) -> Operation[None]:
        try:
            yield from self.send_request(Request("DELETE", place), False)
        except ConflictError as error:
            if error.error_class != "process.ended":
                raise


def place_of_process(session_id: str, process_id: str) -> str:
    return f"/v1/sessions/{read.given_id(session_id)}/processes/{read.given_id(process_id)}"


def _encoded(path: Union[str, FileInfo]) -> str:
    return path.encoded_path if isinstance(path, FileInfo) else read.given_path(path)
