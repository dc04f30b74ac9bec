#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of unnamed namespaces have a name of their own in their folder.

Sources of one folder are compiled several at a time (cmake/unity.cmake). Two constants or types of one name do not compile
then. Two functions of one name may: they become overloads, and a call can silently mean the other one. So the name of such
a function may not be that of another file's in the folder, nor that of a function which a header declares in the same
namespace or in coffer.

Usage: check_names.py [ROOT]; check_names.py --self-test proves that it can fail.
"""
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# As in cmake/unity.cmake.
TOGETHER = re.compile(r"^src/(audit|daemon|gateway/http|gateway/mcp|policy)/")
ALONE = re.compile(r"/toml_read\.cc$|/http/(connection|connection_read|server)\.cc$")
RAW_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
NAMESPACE = re.compile(r"^namespace (coffer[\w:]*) \{", re.M)
# The code has clang-format's shape: what is declared in a namespace begins in the first column.
FUNCTION = re.compile(r"^(?!TEST|INSTANTIATE|RC_|using|struct|class|enum|namespace|#|return)[A-Za-z\[][^=({;]*?[ &*>](\w+)\(")


def functions(text: str, only_unnamed: bool) -> set[str]:
    found, inside = set(), not only_unnamed
    for line in RAW_TEXT.sub('""', text).splitlines():
        if line == "namespace {":
            inside = True
        elif line.startswith("}  // namespace"):
            inside = not only_unnamed
        elif inside or line.startswith("static "):
            match = FUNCTION.match(line)
            if match and match.group(1) != "operator":
                found.add(match.group(1))
    return found


def check(root: Path) -> list[str]:
    declared = defaultdict(set)  # (namespace, name): headers
    for header in sorted(root.glob("src/**/*.h")):
        text = header.read_text(encoding="utf-8")
        namespace = NAMESPACE.search(text)
        for name in functions(text, False) if namespace else ():
            declared[namespace.group(1), name].add(str(header.relative_to(root / "src")))
    problems = []
    for folder in sorted({path.parent for path in root.glob("src/**/*.cc")}):
        seen: dict[str, str] = {}
        for source in sorted(folder.glob("*.cc")):
            where = str(source.relative_to(root))
            if not TOGETHER.match(where) or ALONE.search(where):
                continue
            text = source.read_text(encoding="utf-8")
            namespace = NAMESPACE.search(text)
            spaces = {"coffer", namespace.group(1) if namespace else ""}
            for name in sorted(functions(text, True)):
                if name in seen:
                    problems.append(f"{where}: {name} is a function of {seen[name]} too")
                seen[name] = where
                headers = set().union(*(declared.get((around, name), set()) for around in spaces))
                if headers:
                    problems.append(f"{where}: {name} is declared by {', '.join(sorted(headers))} too")
    return problems


def self_test() -> None:
    source = "namespace coffer::a {\nnamespace {\n\nbool %s(int x) {\n}\n\n}  // namespace\n}  // namespace coffer::a\n"
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "src/policy").mkdir(parents=True)
        one, two, header = root / "src/policy/one.cc", root / "src/policy/two.cc", root / "src/policy/h.h"
        one.write_text(source % "Mine")
        two.write_text(source % "Yours")
        header.write_text("namespace coffer::a {\nint Theirs(long x);\n}  // namespace coffer::a\n")
        assert check(root) == [], check(root)
        two.write_text(source % "Mine")
        assert len(check(root)) == 1, check(root)
        two.write_text(source % "Theirs")
        assert len(check(root)) == 1, check(root)
        header.write_text("namespace coffer {\nint Theirs(long x);\n}  // namespace coffer\n")
        assert len(check(root)) == 1, check(root)
    print("check_names: the self-test passed")


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    problems = check(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
    for problem in problems:
        print(problem)
    if not problems:
        print("names of one folder's files are their own")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
