#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Enforces the direction of dependencies in src/, from the #include lines.

    base <- net, policy <- store <- mechanisms <- call <- gateway, fleet <- daemon, cli

A folder may include itself and what is left of it. Mechanisms never include each other: call/ puts them together.
Some folders may include only what ONLY lists for them. An include in angle brackets counts like one in quotes.
A few rules about single headers keep start time, build time and the code after clone() as they should be.

Usage: check_layers.py [ROOT]; check_layers.py --self-test proves that each rule can fail.
"""
import re
import sys
import tempfile
from pathlib import Path

MECHANISMS = "isolation limits egress credentials approval scan output audit watch".split()
RANK = {"base": 0, "net": 1, "policy": 1, "store": 2, **{name: 3 for name in MECHANISMS},
        "call": 4, "gateway": 5, "fleet": 5, "daemon": 6, "cli": 6}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ERRNO = re.compile(r"(?<![\w.>:])errno\b")
COMMENT = re.compile(r'//.*|"(?:[^"\\]|\\.)*"')

# Headers with static constructors or locale: forbidden in everything that starts with the program.
SLOW_START = {"iostream", "locale", "regex"}
# Heavy headers: one .cc pays for them, never everybody who includes a header.
CC_ONLY = ("fmt/", "nlohmann/json.hpp", "spdlog/")
# Folders that may include no more than this of src/: whole folders (with a slash at the end) and single headers.
ONLY = {
    # Protocol only: its Service answers it, so it sees no store, path or process.
    "gateway/": ("base/", "policy/", "net/", "gateway/", "audit/receipt.h", "call/tool_call.h",
                 "store/call_identity.h", "store/key.h", "store/role.h", "store/tenant_id.h"),
    # What runs after clone() takes values that were made before it.
    "isolation/child/": ("base/", "isolation/child/", "isolation/plan.h", "isolation/landlock.h",
                         "isolation/seccomp/install.h"),
}
# After clone() there is no heap, no lock and no formatting.
NOT_IN_CHILD = {"vector", "map", "unordered_map", "set", "mutex", "thread", "sstream", "memory", "functional"}
# The only places that read errno: the seam itself, and its fault injection.
READS_ERRNO = {"base/sys.cc", "base/fault.cc"}


def room(name: str) -> int:
    """The order inside call/: one boundary, the privileged role, the ladder."""
    inner = name.split("/")[1]
    return {"run": 0, "warden": 1}.get(inner, 2)


def is_one_of(name: str, listed: tuple[str, ...]) -> bool:
    return any(name.startswith(one) if one.endswith("/") else name == one for one in listed)


def check_file(path: Path, src: Path) -> list[str]:
    relative = path.relative_to(src)
    here = relative.parts[0]
    problems = []

    def problem(line: int, text: str) -> None:
        problems.append(f"src/{relative}:{line}: {text}")

    if len(relative.parts) < 2:
        return [f"src/{relative}:1: every file belongs to a folder that docs/ARCHITECTURE.md lists"]
    if here not in RANK:
        return [f"src/{relative}:1: folder '{here}' has no place in the layers; add it to scripts/check_layers.py"]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if str(relative) not in READS_ERRNO and "include" not in line and ERRNO.search(COMMENT.sub("", line)):
            problem(number, "errno is read in base/sys.cc and nowhere else: use raw:: or sys::")
        found = INCLUDE.match(line)
        if not found:
            continue
        kind, target = found.groups()
        there = target.split("/")[0]
        # <net/if.h> and <net/route.h> are the C library's: of net/, what exists in src/ counts.
        own = "/" in target and there in RANK and (there != "net" or (src / target).is_file())
        if kind == '"' or own:
            if "/" not in target:
                if not target.endswith(".inc"):
                    problem(number, f'write the whole path from src/, not "{target}"')
            elif here == there == "call" and room(target) > room(str(relative)):
                problem(number, f"{relative} includes {target}: call/run/ is below call/warden/, and both below the ladder")
            elif there in RANK and there != here and RANK[there] >= RANK[here]:
                reason = "mechanisms do not include each other" if RANK[there] == RANK[here] == 3 else "wrong direction"
                problem(number, f"{here}/ includes {target}: {reason}")
            elif there not in RANK and not target.endswith(".inc") and not target.startswith(CC_ONLY):
                problem(number, f'"{target}" is in no known folder')
            else:
                for folder, listed in ONLY.items():
                    if own and str(relative).startswith(folder) and not is_one_of(target, listed):
                        problem(number, f"{folder} includes {target}: of src/ it may include only {', '.join(listed)}")
        if target in SLOW_START:
            problem(number, f"<{target}> costs start time on every call")
        if path.suffix == ".h" and target.startswith(CC_ONLY):
            problem(number, f"<{target}> belongs in a .cc: everybody who includes this header pays for it")
        if "child" in relative.parts[1:-1] and (target in NOT_IN_CHILD or target.startswith(CC_ONLY)):
            problem(number, f"<{target}> after clone(): no heap, no locks, no formatting there")
    return problems


def check(root: Path) -> tuple[int, list[str]]:
    src = root / "src"
    files = sorted(p for p in src.rglob("*") if p.suffix in (".cc", ".h"))
    return len(files), [text for path in files for text in check_file(path, src)]


def self_test() -> int:
    """Each case is a file that must be refused (with a word of the reason) or must pass (None)."""
    cases = [
        ("base/a.h", '#include "policy/envelope.h"\n', "wrong direction"),
        ("policy/a.cc", '#include "isolation/plan.h"\n', "wrong direction"),
        ("isolation/a.cc", '#include "limits/cgroup/cgroup.h"\n', "do not include each other"),
        ("isolation/child/a.cc", '#include "limits/cgroup/cgroup.h"\n', "do not include each other"),
        ("output/a.cc", '#include "call/run/run_call.h"\n', "wrong direction"),
        ("cli/a.cc", '#include "daemon/wiring.h"\n', "wrong direction"),
        ("call/run/a.cc", '#include "call/ladder.h"\n', "below the ladder"),
        ("call/run/a.cc", '#include "call/warden/wire.h"\n', "below"),
        ("call/warden/a.cc", '#include "call/ladder.h"\n', "below the ladder"),
        ("call/warden/a.cc", '#include "call/run/launch.h"\n', None),
        ("call/a.cc", '#include "call/warden/wire.h"\n', None),
        ("call/a.cc", '#include "isolation/plan.h"\n#include "limits/cgroup/cgroup.h"\n', None),
        ("isolation/a.cc", '#include "isolation/plan.h"\n#include "base/sys.h"\n#include "policy/layer.h"\n', None),
        ("isolation/a.cc", '#include "isolation/table.inc"\n#include "table.inc"\n', None),
        ("base/a.cc", "#include <cli/verbs.h>\n", "wrong direction"),
        ("base/a.cc", "#include <net/if.h>\n", None),
        ("gateway/a.cc", '#include "store/store.h"\n', "may include only"),
        ("gateway/http/a.cc", '#include "store/key.h"\n#include "policy/tool.h"\n', None),
        ("isolation/child/a.cc", '#include "isolation/host_path.h"\n', "may include only"),
        ("isolation/child/a.cc", '#include "isolation/plan.h"\n#include "isolation/child/root.h"\n', None),
        ("misc/a.cc", "", "no place in the layers"),
        ("a.cc", "", "belongs to a folder"),
        ("base/a.cc", '#include "sys.h"\n', "whole path"),
        ("base/a.cc", '#include "nowhere/sys.h"\n', "no known folder"),
        ("cli/a.cc", "#include <iostream>\n", "start time"),
        ("base/a.h", "#include <fmt/format.h>\n", "belongs in a .cc"),
        ("base/a.cc", "#include <fmt/format.h>\n", None),
        ("base/a.h", "#include <nlohmann/json_fwd.hpp>\n", None),
        ("isolation/child/a.cc", "#include <vector>\n", "after clone"),
        ("isolation/child/a.cc", "#include <fmt/format.h>\n", "after clone"),
        ("limits/a.cc", "if (errno == 2) {}\n", "errno is read"),
        ("limits/a.cc", "// errno is mentioned\n#include <errno.h>\nx.sys_errno = 0; say(\"errno\");\n", None),
        ("base/sys.cc", "return -errno;\n", None),
    ]
    failures = 0
    for name, text, reason in cases:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "src", name)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            _, problems = check(Path(directory))
        good = not problems if reason is None else any(reason in p for p in problems)
        if not good:
            failures += 1
            print(f"self-test: {name}: {text!r}: expected {reason!r}, got {problems}")
    if failures == 0:
        print(f"self-test: {len(cases)} cases")
    return 1 if failures else 0


def main() -> int:
    if "--self-test" in sys.argv:
        return self_test()
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    count, problems = check(root)
    print("\n".join(problems) if problems else f"{count} files")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
