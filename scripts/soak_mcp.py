#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls over MCP for scripts/soak.py and scripts/soak_large.py: their answers say the output twice."""
import json


def mcp_call(key, code, number, when):
    """A request that runs `code` at a time of day, in seconds."""
    code = f"import time  # {number}\ntime.sleep(max(0, {when} - time.time()))\n{code}"
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                       "params": {"name": "python", "arguments": {"code": code}, "_meta": meta}})
    return (f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
            f"Mcp-Name: python\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()
