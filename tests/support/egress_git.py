# SPDX-License-Identifier: Apache-2.0
"""The repositories of DIR/git over HTTP, below /git/: what `git http-backend` answers, so clones, fetches and pushes.

serve(handler, body) answers a request and says True, or says False if the path is none of these.
"""
import os
import subprocess
import sys

PREFIX = "/git/"
FIELDS = {"CONTENT_TYPE": "Content-Type", "HTTP_CONTENT_ENCODING": "Content-Encoding", "GIT_PROTOCOL": "Git-Protocol"}


def read_body(handler):
    """Of a known length, or in chunks, as git sends what is longer than its buffer."""
    if handler.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    body = b""
    while size := int(handler.rfile.readline(), 16):
        body += handler.rfile.read(size)
        handler.rfile.readline()
    handler.rfile.readline()
    return body


def serve(handler, body):
    path, _, query = handler.path.partition("?")
    if not path.startswith(PREFIX):
        return False
    environment = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": sys.argv[1] + "/git", "GIT_HTTP_EXPORT_ALL": "1",
                   "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "REMOTE_ADDR": "127.0.0.1",
                   "REQUEST_METHOD": handler.command, "PATH_INFO": path[len(PREFIX) - 1:], "QUERY_STRING": query,
                   "CONTENT_LENGTH": str(len(body))}
    environment.update({name: handler.headers[field] for name, field in FIELDS.items() if handler.headers[field]})
    answer = subprocess.run(["git", "http-backend"], input=body, stdout=subprocess.PIPE, env=environment).stdout
    head, _, text = answer.partition(b"\r\n\r\n")
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    handler.send_response(int(fields.pop("Status", "200 OK").split()[0]))
    for name, value in {**fields, "Content-Length": str(len(text))}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(text)
    return True
