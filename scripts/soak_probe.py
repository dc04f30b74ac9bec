#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks /healthz for soak.py: reads a port, answers with the status and the seconds that it took, line by line."""
import os
import socket
import sys
import time

TIMEOUT = 10


def ask(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as one:
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            words = one.recv(4096).split(b" ", 2)
            return words[1].decode() if len(words) == 3 else "0"
    except OSError:
        return "0"


def main():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # an ordinary user: the waits for a processor count too
    for line in sys.stdin:
        began = time.monotonic()
        status = ask(int(line))
        print(status, time.monotonic() - began, flush=True)


if __name__ == "__main__":
    main()
