#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over src/, in parallel, remembering what was clean.

The key of a file is a hash of clang-tidy's version, .clang-tidy, the compile command, the file and every header of
ours that it includes, directly or not. Only clean files are remembered, so a finding shows until it is mended. The marks
are in ~/.cache/cofferdam-tidy (or below XDG_CACHE_HOME), so that a new checkout finds them; older than 30 days they go.

Usage: tidy.py BUILD-DIR [--since COMMIT] [--most NUMBER] [FILE...]
--since: only sources that changed after COMMIT, and for each header that did its own source and some that include it: a
finding in a header is the same in each of them. If the rules themselves changed, or git does not know COMMIT: all of them.
--most: if that is more than NUMBER files, those that changed last; of all of them, those that read what others wrote. The
others are counted in the last line, and `make tidy` looks at them.
"""
import argparse
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
# What g++ gets for the sake of its own speed: precompiled headers, room for its garbage.
ONLY_SPEED = re.compile(r" -Winvalid-pch -include \S+/cmake_pch\.hxx(?= )| --param=ggc-\S+")
USERS_OF_A_HEADER = 3  # that --since looks at
READS_WHAT_OTHERS_WROTE = re.compile(r"^src/(call/warden|egress|gateway|net|policy)/")
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
    command = re.sub(r" -o \S+", "", entry["command"]).replace(str(build), "BUILD").replace(str(ROOT), "ROOT")
    digest = hashlib.sha256(fixed + command.encode())
    asio = False
    for path, data in sorted(closure(Path(entry["file"]), search, {}).items()):
        digest.update(str(path).replace(str(build), "BUILD").replace(str(ROOT), "ROOT").encode() + b"\0" + data)
        asio = asio or ASIO.search(data) is not None
    return digest.hexdigest(), asio


def git(*words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def changed_since(commit: str) -> list[str] | None:
    """Paths below src/ that changed after the commit, the last change first; None: take everything."""
    now = git("diff", "--name-only", commit, "--")
    if now is None or set(now.splitlines()) & {".clang-tidy", "scripts/tidy.py"}:
        return None
    # What is not committed is newer than any commit.
    order = (git("diff", "--name-only", "HEAD", "--") or "") + (git("log", "--format=", "--name-only", f"{commit}..HEAD") or "")
    rank = {name: number for number, name in reversed(list(enumerate(order.splitlines())))}
    names = [name for name in now.splitlines() if name.startswith("src/")]
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def touched_by(changed: list[str], sources: list[str]) -> list[str]:
    """Those of the sources (relative to ROOT) that changed, and a few for each header that did, in the order of `changed`."""
    chosen: dict[str, None] = {}
    includes = {s: set(INCLUDE.findall((ROOT / s).read_text(encoding="utf-8"))) for s in sources}
    for name in changed:
        if name in includes:
            chosen[name] = None
        elif name.endswith(".h"):
            users = [s for s in sources if name.removeprefix("src/") in includes[s]]
            own = name.removesuffix(".h") + ".cc"
            chosen |= dict.fromkeys([s for s in users if s == own] + [s for s in users if s != own][:USERS_OF_A_HEADER])
    return list(chosen)


def commands_of(build: Path) -> dict[str, dict]:
    """How each file is compiled. Of sources that are compiled together (cmake/unity.cmake) CMake names only what includes
    them; each is looked at alone, with the same flags but without precompiled headers, so that a missing include shows."""
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        parts = [entry["file"]]
        if "/Unity/unity_" in entry["file"]:
            parts = INCLUDE.findall(Path(entry["file"]).read_text(encoding="utf-8"))
        for part in parts:
            command = ONLY_SPEED.sub("", entry["command"]).replace(entry["file"], part)
            entries[part] = {**entry, "file": part, "command": command}
    return entries


def main() -> int:
    parser = argparse.ArgumentParser(description="clang-tidy over src/")
    parser.add_argument("build", type=lambda name: Path(name).resolve())
    parser.add_argument("--since", default="")
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    build = options.build
    only = {str(Path(name).resolve()) for name in options.files}
    commands = commands_of(build)
    sources = {f.removeprefix(f"{ROOT}/"): e for f, e in sorted(commands.items())
               if f.startswith(f"{ROOT}/src/") and (not only or f in only)}
    if not sources:
        print(f"tidy: no file of src/ in {build}/compile_commands.json", file=sys.stderr)
        return 1
    changed = changed_since(options.since) if options.since else None
    if changed is None:
        chosen = sorted(sources, key=lambda name: (READS_WHAT_OTHERS_WROTE.match(name) is None, name))
    else:
        chosen = touched_by(changed, list(sources))
    left = max(0, len(chosen) - options.most) if options.most else 0
    entries = [sources[name] for name in chosen[:len(chosen) - left]]
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
        command = [TIDY, "-p", str(alone), "--quiet", *checks, *(f"--extra-arg={a}" for a in ARGS), entry["file"]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            mark.touch()
            return entry["file"], 1, ""
        return entry["file"], 1, (done.stdout + done.stderr).strip()

    alone = build / "tidy"  # where clang-tidy looks for the commands
    alone.mkdir(exist_ok=True)
    (alone / "compile_commands.json").write_text(json.dumps(list(commands.values()), indent=1))
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
          (f", {findings} with findings" if findings else "") + (f"; {left} more were left to `make tidy`" if left else ""))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
