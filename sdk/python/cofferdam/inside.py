# SPDX-License-Identifier: Apache-2.0
"""Calling tools from code that runs in `coffer run --tools NAME,...`.

    from cofferdam.inside import call
    print(call("bash", command="wc -l *.csv")["stdout"])

The run offers a UNIX socket, which COFFER_TOOLS_SOCKET names, and nothing else: no key and no daemon. A result has `stdout`,
`stderr`, `exit_code`, `outcome`, `call_id` and `error`. A tool that fails has a result too; what cannot be called raises.
"""
from __future__ import annotations

import json
import os
import socket
from typing import Any, Dict, List, cast

from .errors import CofferError, ConnectFailed, ConnectionLost, ProtocolError

VARIABLE = "COFFER_TOOLS_SOCKET"
_MAX_ANSWER = 64 << 20
_META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def _request(method: str, params: Dict[str, Any]) -> Dict[str, Any]:
    path = os.environ.get(VARIABLE, "")
    if not path:
        raise ConnectFailed(f"{VARIABLE} is not set: this does not run in `coffer run --tools`")
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError as error:
            raise ConnectFailed(f"{path}: {error}") from error
        try:
            connection.sendall(json.dumps(message).encode() + b"\n")
            answer = connection.makefile("rb").readline(_MAX_ANSWER)
        except OSError as error:
            raise ConnectionLost(str(error)) from error
    if not answer.endswith(b"\n"):
        raise ConnectionLost("the connection ended before the answer; the call may have run")
    try:
        said = json.loads(answer)
    except ValueError as error:
        raise ProtocolError("the answer is not JSON") from error
    if isinstance(said, dict) and isinstance(said.get("error"), dict):
        raise CofferError(str(said["error"].get("message")), "policy.tools")
    if not isinstance(said, dict) or not isinstance(said.get("result"), dict):
        raise ProtocolError("the answer has no result")
    return cast(Dict[str, Any], said["result"])


def call(tool: str, **arguments: Any) -> Dict[str, Any]:
    """Calls a tool that the run offers and waits for its result."""
    result = _request("tools/call", {"name": tool, "arguments": arguments}).get("structuredContent")
    if not isinstance(result, dict):
        raise ProtocolError("the answer has no structured content")
    return result


def tools() -> List[Dict[str, Any]]:
    """The definitions of the tools that the run offers."""
    listed = _request("tools/list", {}).get("tools")
    if not isinstance(listed, list):
        raise ProtocolError("the answer has no tools")
    return listed
