# SPDX-License-Identifier: Apache-2.0
"""A private daemon for one program: started when it is needed, gone when the program is.

A small shell process stands between the two. It holds the reading end of a pipe whose writing end only this program has. The
kernel closes that end however the program ends, also by SIGKILL; then the shell ends the daemon and removes its state. The
daemon is in a session of its own, so that Ctrl-C reaches the program and not the daemon under it.

The client talks to the daemon over the unix socket in the state directory, which only this user can enter. It needs no key.
"""
from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from typing import IO, List, Optional

from .errors import LocalDaemonError

_READY_SECONDS = 60.0
_END_SECONDS = 20.0
# $1: what to remove at the end, or nothing. $2: seconds from SIGTERM to SIGKILL. The rest: the daemon's command.
_KEEPER = """
remove=$1; grace=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- & daemon=$!
( read -r _ <&3; kill -TERM $daemon
  while [ "$grace" -gt 0 ]; do sleep 1; grace=$((grace - 1)); done; kill -KILL $daemon ) >/dev/null 2>&1 & watch=$!
exec 3<&- >/dev/null 2>&1
wait $daemon
kill $watch
[ -n "$remove" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$remove" && exit 0; sleep 1; done
"""


def find_coffer() -> str:
    """The program: COFFER_BIN, or `coffer` on PATH. Relative places of PATH do not count: what lies there is not ours."""
    named = os.environ.get("COFFER_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise LocalDaemonError("COFFER_BIN does not name a program that can be run")
        return os.path.abspath(named)
    places = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place.startswith("/")]
    found = shutil.which("coffer", path=os.pathsep.join(places)) if places else None
    if found is None:
        raise LocalDaemonError("there is no program coffer on PATH: install it, or set COFFER_BIN to where it is")
    return found


def default_socket() -> Optional[str]:
    """Where a daemon of this user listens if one runs. None without a home: the current directory is not ours."""
    state = os.environ.get("COFFER_STATE")
    if not state:
        home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        state = "/var/lib/coffer" if os.geteuid() == 0 else os.path.join(home, "coffer")
        if not state.startswith("/"):
            return None
    return os.path.join(os.path.abspath(state), "coffer.sock")


def is_listening(path: str) -> bool:
    """Whether a daemon listens there."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5)
            probe.connect(path)
            return True
    except OSError:
        return False


def _short(place: str) -> str:
    """A directory for temporary files; a unix socket's path has at most 107 bytes."""
    return place if len(os.fsencode(place)) <= 80 else "/tmp"


class LocalDaemon:
    """A daemon that this object owns. `url` is where it listens."""

    def __init__(self, *, state: Optional[str] = None, tools: Optional[List[str]] = None) -> None:
        coffer = find_coffer()
        self._made = None if state is not None else tempfile.mkdtemp(prefix="coffer-", dir=_short(tempfile.gettempdir()))
        self.state = os.path.abspath(state) if state is not None else str(self._made)
        words = [coffer, "serve", "--state", self.state, "--listen", "127.0.0.1:0", "--json"]
        for place in tools or []:
            words += ["--tools", os.path.abspath(place)]
        self._log = tempfile.TemporaryFile()
        grace = "15" if state is not None else "3"
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "coffer-local", self._made or "", grace, *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True)
        except OSError as error:
            self._remove()
            raise LocalDaemonError(f"cannot start /bin/sh: {error}") from None
        try:
            self.url = "unix:" + self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def _wait_until_ready(self) -> str:
        """Reads the one line that `coffer serve --json` prints. The key in it is not kept."""
        out = self._process.stdout
        assert out is not None
        line, until = b"", time.monotonic() + _READY_SECONDS
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or len(line) > 65536 or not select.select([out], [], [], left)[0]:
                raise LocalDaemonError("the daemon did not become ready" + self._said())
            more = os.read(out.fileno(), 4096)
            if not more:
                raise LocalDaemonError("the daemon ended before it was ready" + self._said())
            line += more
        out.close()
        try:
            return str(json.loads(line)["socket"])
        except (ValueError, KeyError, TypeError):
            raise LocalDaemonError("the daemon did not say where it listens: is this program coffer?") from None

    def _said(self) -> str:
        self._log.seek(0)
        text = self._log.read(4096).decode("utf-8", "replace").strip()
        return f": {text}" if text else ""

    def close(self) -> None:
        """Ends the daemon and waits for it. May be called twice."""
        streams: List[Optional[IO[bytes]]] = [self._process.stdin, self._process.stdout]
        for stream in streams:
            if stream is not None:
                stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()
        self._remove()

    def _remove(self) -> None:
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
