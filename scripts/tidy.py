#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over src/, in parallel, remembering what was clean.

The key of a file is a hash of clang-tidy's version, .clang-tidy, the compile command, the file and every header of
ours that it includes, directly or not. Only clean files are remembered, so a finding shows until it is mended. The marks
are in ~/.cache/cofferdam-tidy (or below XDG_CACHE_HOME), so that a new checkout finds them; older than 30 days they go.

Usage: tidy.py BUILD-DIR [--since COMMIT] [FILE...]
--since: only sources that changed after COMMIT, and those that include a header that did. If the rules themselves changed,
or git does not know COMMIT: all of them.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-19")
# The analyzer follows calls into our own functions and not into those of the standard library, where it spends two
# thirds of its time and finds nothing of ours.
ARGS = ["-Wno-unknown-warning-option", "-Wno-ignored-gch", "-Xclang", "-analyzer-config", "-Xclang",
        "c++-stdlib-inlining=false"]
# The analyzer takes the frame of a coroutine for a leak, in Boost's awaitable.hpp where no comment of ours can say so:
# what spawns them goes without it.
ASIO = re.compile(rb"^\s*#\s*include\s*<boost/asio/(awaitable|co_spawn)", re.M)
NOISE = re.compile(r"^(\d+ (warnings?|errors?)[^\n]*(generated|treated as errors?)|Suppressed|Use -header-filter)[^\n]*\n?",
                   re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


def closure(path: Path, search: list[Path], seen: dict[Path, bytes]) -> dict[Path, bytes]:
    """Every file of ours that `path` reads, with its bytes. System headers change only with their packages."""
    if path in seen:
        return seen
    seen[path] = path.read_bytes()
    for name in INCLUDE.findall(seen[path].decode("utf-8", errors="replace")):
        for directory in [path.parent, *search]:
            if (directory / name).is_file():
                closure((directory / name).resolve(), search, seen)
                break
    return seen


def key_of(entry: dict, fixed: bytes, build: Path) -> tuple[str, bool]:
    """Its key, the same in every checkout, and whether it includes Asio."""
    words = shlex.split(entry["command"])
    search = [Path(entry["directory"], w[2:]) for w in words if w.startswith("-I")]
    command = entry["command"].replace(str(build), "BUILD").replace(str(ROOT), "ROOT")
    digest = hashlib.sha256(fixed + command.encode())
    asio = False
    for path, data in sorted(closure(Path(entry["file"]), search, {}).items()):
        digest.update(str(path).replace(str(build), "BUILD").replace(str(ROOT), "ROOT").encode() + b"\0" + data)
        asio = asio or ASIO.search(data) is not None
    return digest.hexdigest(), asio


def changed_since(commit: str) -> set[str] | None:
    """Absolute paths below src/ that changed after the commit; None: take everything."""
    told = subprocess.run(["git", "-C", str(ROOT), "diff", "--name-only", commit, "--"], capture_output=True, text=True,
                          check=False)
    names = set(told.stdout.splitlines())
    if told.returncode != 0 or names & {".clang-tidy", "scripts/tidy.py"}:
        return None
    return {name for name in names if name.startswith("src/")}


def includes_one(path: Path, changed: set[str]) -> bool:
    """Whether the file is one of them, or includes one directly."""
    if str(path.relative_to(ROOT)) in changed:
        return True
    return any(f"src/{name}" in changed for name in INCLUDE.findall(path.read_text(encoding="utf-8")))


def main() -> int:
    arguments = sys.argv[2:]
    build = Path(sys.argv[1]).resolve()
    changed = None
    if arguments[:1] == ["--since"]:
        changed = changed_since(arguments[1])
        arguments = arguments[2:]
    only = {str(Path(name).resolve()) for name in arguments}
    entries = {e["file"]: e for e in json.loads((build / "compile_commands.json").read_text())}
    entries = [e for f, e in sorted(entries.items()) if f.startswith(f"{ROOT}/src/") and (not only or f in only)]
    if not entries:
        print(f"tidy: no file of src/ in {build}/compile_commands.json", file=sys.stderr)
        return 1
    if changed is not None:
        entries = [e for e in entries if includes_one(Path(e["file"]), changed)]
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    fixed = version + (ROOT / ".clang-tidy").read_bytes() + repr((ARGS, ASIO.pattern)).encode()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cofferdam-tidy"
    cache.mkdir(parents=True, exist_ok=True)
    for mark in cache.iterdir():
        if mark.stat().st_mtime < time.time() - 30 * 86400:
            mark.unlink(missing_ok=True)

    def run(entry: dict) -> tuple[str, int, str]:
        key, asio = key_of(entry, fixed, build)
        mark = cache / key
        if mark.exists():
            mark.touch()
            return entry["file"], 0, ""
        checks = ["--checks=-clang-analyzer-*"] if asio else []
        command = [TIDY, "-p", str(build), "--quiet", *checks, *(f"--extra-arg={a}" for a in ARGS), entry["file"]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            mark.touch()
            return entry["file"], 1, ""
        return entry["file"], 1, (done.stdout + done.stderr).strip()

    findings, ran, shown = 0, 0, set()
    with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 2))) as pool:
        for _, fresh, text in pool.map(run, entries):
            ran += fresh
            if text:
                findings += 1
                # A finding in a header comes up in each file that includes it; once is enough.
                for block in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning))", NOISE.sub("", text)):
                    if block.strip() and block not in shown:
                        shown.add(block)
                        print(block.rstrip().replace(f"{ROOT}/", ""), flush=True)
    print(f"{len(entries)} files, {len(entries) - ran} already known to be clean" +
          (f", {findings} with findings" if findings else ""))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
