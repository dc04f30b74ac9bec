#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cmake/text_order_ARCH.ld: which functions of `coffer` lie first, side by side.

A call runs some 400 functions of several thousand. Scattered over the whole program they cost a page fault for every
64 KiB window, and each waiting supervisor keeps those windows mapped; side by side they are a few windows. What the
watch still uses while the command runs comes first, then whatever else a call runs.

Runs two calls instruction by instruction (ptrace), and looks the addresses up in the linker's map. Needs root and cgroup
v1, so that init is seen too. A name that no longer exists does no harm, and a new one is merely not sorted: run this
again when a release is made, not with every change.

  scripts/order_text.py build/coffer build/coffer.map > order && mv order cmake/text_order_$(uname -m).ld
"""
import bisect
import ctypes
import ctypes.util
import os
import platform
import re
import signal
import sys
import time

TRACEME, PEEK, POKE, CONT, STEP, DETACH = 0, 1, 4, 7, 9, 17
SETOPTIONS, GETREGSET = 0x4200, 0x4204
OPTIONS = 0x2 | 0x4 | 0x8 | 0x10 | 0x100000  # fork, vfork, clone, exec; kill them with us
EVENT_EXEC = 4
WALL = 0x40000000
PC_AT = {"aarch64": 32 * 8, "x86_64": 16 * 8}[platform.machine()]

libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


REGISTERS = ctypes.create_string_buffer(512)
IOVEC = Iovec(ctypes.addressof(REGISTERS), 512)


def program_counter(pid):
    IOVEC.size = 512
    if libc.ptrace(GETREGSET, pid, 1, ctypes.addressof(IOVEC)) < 0:
        return None
    return int.from_bytes(REGISTERS.raw[PC_AT:PC_AT + 8], "little")


def word(pid, at):
    return libc.ptrace(PEEK, pid, at & ~7, None) & (2**64 - 1)


def instruction(pid, at):
    return (word(pid, at) >> (32 if at & 4 else 0)) & 0xFFFFFFFF


def finish_exclusive(pid, pc):
    """A load and store exclusive never succeed one step at a time: runs to the end of their loop."""
    end = next((pc + 4 * (i + 1) for i in range(1, 16)
                if instruction(pid, pc + 4 * i) & 0x7F000000 == 0x35000000), None)
    if end is None:
        return
    kept = word(pid, end)
    trap = 0xD4200000
    changed = (kept & 0xFFFFFFFF) | trap << 32 if end & 4 else (kept & ~0xFFFFFFFF) | trap
    libc.ptrace(POKE, pid, end & ~7, changed)
    libc.ptrace(CONT, pid, None, None)
    os.waitpid(pid, WALL)
    libc.ptrace(POKE, pid, end & ~7, kept)


def trace(command, text, start=None, seconds=None):
    """The addresses inside `text` that the program and its init run; with `start`, from that address on, for so long."""
    child = os.fork()
    if child == 0:
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        libc.ptrace(TRACEME, 0, None, None)
        os.execv(command[0], command)
    os.waitpid(child, 0)
    libc.ptrace(SETOPTIONS, child, None, OPTIONS)
    libc.ptrace(STEP, child, None, None)
    seen = set()
    until = None if start is not None else float("inf")  # None: not yet
    exclusive = platform.machine() == "aarch64"
    while True:
        try:
            pid, status = os.waitpid(-1, WALL)
        except ChildProcessError:
            return seen
        if not os.WIFSTOPPED(status):
            continue
        stop = os.WSTOPSIG(status)
        if stop == signal.SIGTRAP and status >> 16 == EVENT_EXEC:
            libc.ptrace(DETACH, pid, None, None)
            continue
        pc = program_counter(pid)
        if pc is not None and text[0] <= pc < text[1]:
            if until is None and pc == start:
                until = time.monotonic() + seconds
            if until is not None and time.monotonic() < until:
                seen.add(pc)
            if exclusive and instruction(pid, pc) & 0x3FE00000 == 0x08400000:
                finish_exclusive(pid, pc)
        passed_on = 0 if stop in (signal.SIGTRAP, signal.SIGSTOP) else stop
        libc.ptrace(STEP, pid, None, passed_on)


def read_map(path):
    """Input sections with code, as (address, size, name, file)."""
    sections, pending = [], None
    lines = open(path, encoding="utf-8", errors="replace").read().split("Linker script and memory map", 1)[1]
    for line in lines.splitlines():
        whole = re.match(r"^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S.*)$", line)
        rest = re.match(r"^\s+0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+(\S.*)$", line)
        name = re.match(r"^ (\.\S+)\s*$", line)
        if whole:
            sections.append((int(whole[2], 16), int(whole[3], 16), whole[1], whole[4]))
        elif rest and pending and pending.startswith(".text"):
            sections.append((int(rest[1], 16), int(rest[2], 16), pending, rest[3]))
        pending = name[1] if name else None
    return sorted(s for s in sections if s[0] != 0 and s[1] != 0)


def pattern(section):
    _, _, name, file = section
    if name.count(".") > 1 and len(name) > 12:  # -ffunction-sections: the name says it all
        return f"*({name})"
    member = re.match(r"(?:.*/)?([^/]+\.a)\((.*)\)$", file)
    return f"*{member[1]}:{member[2]}({name})" if member else f"*{os.path.basename(file)}({name})"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    coffer, map_file = os.path.abspath(sys.argv[1]), sys.argv[2]
    sections = read_map(map_file)
    starts = [s[0] for s in sections]
    text = (starts[0], sections[-1][0] + sections[-1][1])
    trim = next(s[0] for s in sections if s[2].startswith(".text._ZN6coffer8TrimText"))
    # Long enough: step by step the supervisor takes a while until it watches. What comes after the command's end is seen
    # below; only what a waiting supervisor keeps running belongs in front.
    watching = trace([coffer, "run", "--", "/bin/sleep", "6"], text, trim, 3)
    running = trace([coffer, "run", "--", "/bin/true"], text)
    if not watching or not running:
        sys.exit("order_text.py: nothing was seen; is the map that of this program?")
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Written by scripts/order_text.py, which says what it is for. */")
    print("SECTIONS\n{\n  .text.called :\n  {")
    written = set()
    for what, addresses in (("while the command runs", watching), ("in every call", running)):
        print(f"    /* {what} */")
        used = set()
        for pc in addresses:
            i = bisect.bisect_right(starts, pc) - 1
            if i >= 0 and pc < sections[i][0] + sections[i][1]:
                used.add(i)
        for i in sorted(used):
            line = pattern(sections[i])
            if line not in written:
                written.add(line)
                print(f"    {line}")
    print("  }\n}\nINSERT BEFORE .text;")


main()
