#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is declared in an unnamed namespace has a name of its own in its folder.

Sources of one folder are compiled several at a time (cmake/unity.cmake). Two functions of one name may become overloads
then, and a call can silently mean the other one. So the name of such a function may not be that of another file's in the
folder, nor that of a function or type which a header declares in the same namespace or in coffer. Two constants or types of one name
do not compile, nor does a constant of a function that hides another file's, but only when their files meet: that is when a
third one is added, so it is said here.

Usage: check_names.py [ROOT]; check_names.py --self-test proves that it can fail.
"""
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# As in cmake/unity.cmake and cmake/testing.cmake.
TOGETHER = re.compile(r"^(src|tests/(unit|gateway|daemon))/")
ALONE = re.compile(r"/main\.cc$|/toml_read\.cc$|^src/base/(clone|fault|format|sys)\.cc$")
RAW_TEXT = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
NAMESPACE = re.compile(r"^namespace (coffer[\w:]*) \{", re.M)
# The code has clang-format's shape: what is declared in a namespace begins in the first column.
FUNCTION = re.compile(r"^(?!TEST|INSTANTIATE|RC_|using|struct|class|enum|namespace|#|return)[A-Za-z\[][^=({;]*?[ &*>](\w+)\(")
CONSTANT = re.compile(r"^(?:inline |static )?(?:constexpr|constinit|const)\b[^=({;]*?[ &*>](\w+)(?:\[[^\]]*\])*(?: =|\{|;|$)")
LOCAL = re.compile(r"^ +(?:static )?(?:constexpr|const)\b[^=({;]*?[ &*>](k[A-Z]\w*)(?:\[[^\]]*\])*(?: =|\{|;|$)")
LOCAL_TYPE = re.compile(r"^ +(?:struct|class|enum class|enum|union) (\w+)(?: \{|;|$)")
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)(?: |;|$)")
ENUMERATORS = re.compile(r"^enum (?!class)[^{]*\{(.*)\};")
ALIAS = re.compile(r"^(?:using|namespace) (\w+) = (.*);")


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


def others(text: str) -> dict[str, str]:
    """Constants, types and aliases, each with what it stands for: two that stand for the same are one."""
    found: dict[str, str] = {}
    unnamed = False
    for line in RAW_TEXT.sub('""', text).splitlines():
        if line == "namespace {":
            unnamed = True
        elif line.startswith("}  // namespace"):
            unnamed = False
        elif match := ALIAS.match(line):
            found[match.group(1)] = match.group(2)
        elif unnamed and (match := CONSTANT.match(line) or TYPE.match(line)):
            found[match.group(1)] = ""
        if unnamed and (match := ENUMERATORS.match(line)):
            found |= dict.fromkeys(re.findall(r"k\w+", match.group(1)), "")
    return found


def check(root: Path) -> list[str]:
    declared = defaultdict(set)  # (namespace, name): headers
    for header in sorted(root.glob("src/**/*.h")):
        text = header.read_text(encoding="utf-8")
        namespace = NAMESPACE.search(text)
        types = {match.group(1) for line in text.splitlines() if (match := TYPE.match(line)) and not line.endswith(";")}
        for name in functions(text, False) | types if namespace else ():
            declared[namespace.group(1), name].add(str(header.relative_to(root / "src")))
    problems = []
    for folder in sorted({path.parent for top in ("src", "tests") for path in root.glob(f"{top}/**/*.cc")}):
        seen: dict[str, str] = {}
        known: dict[tuple[str, str], tuple[str, str]] = {}  # (namespace, name): file, meaning
        types: dict[str, str] = {}  # and constants, of any file of the folder: a function may come before them
        for source in sorted(folder.glob("*.cc")):
            where = str(source.relative_to(root))
            if TOGETHER.match(where) and not ALONE.search(where):
                types |= dict.fromkeys(others(source.read_text(encoding="utf-8")), where)
        for source in sorted(folder.glob("*.cc")):
            where = str(source.relative_to(root))
            if not TOGETHER.match(where) or ALONE.search(where):
                continue
            text = source.read_text(encoding="utf-8")
            namespace = NAMESPACE.search(text)
            spaces = {"coffer", namespace.group(1) if namespace else ""}
            for name, meaning in sorted(others(text).items()):
                place = (namespace.group(1) if namespace else "", name)
                file, before = known.setdefault(place, (where, meaning))
                if file != where and (not meaning or meaning != before):
                    problems.append(f"{where}: {name} is a constant or type of {file} too")
            # A constant or type of a function hides one of a file before; those of a class do not.
            body = re.sub(r"(?ms)^(?:class|struct) .*?^};", "", RAW_TEXT.sub('""', text))
            local = {match.group(1) for line in body.splitlines() if (match := LOCAL.match(line) or LOCAL_TYPE.match(line))}
            problems += [f"{where}: {name} of a function is a constant or type of {file} too"
                         for (_, name), (file, _) in sorted(known.items()) if name in local and file != where]
            for name in sorted(functions(text, True)):
                if name in seen:
                    problems.append(f"{where}: {name} is a function of {seen[name]} too")
                seen[name] = where
                if (other := types.get(name, where)) != where:
                    problems.append(f"{where}: {name} is a constant or type of {other} too")
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
        header.write_text("namespace coffer {\ntemplate <class T>\nclass [[nodiscard]] Theirs {\n};\n}  // namespace coffer\n")
        assert len(check(root)) == 1, check(root)
        two.write_text(source % "Yours" + "using A = int;\n")
        for more, expected in (("using A = int;", 0), ("using A = long;", 1)):
            one.write_text(source % "Mine" + more + "\n")
            assert len(check(root)) == expected, check(root)
        for more in ("constexpr int kOne = 1;", "const char* const kOne[] = {", "struct One {", "enum class One { kA };", "enum { kOne };"):
            for file, name in ((one, "Mine"), (two, "Yours")):
                file.write_text((source % name).replace("\n\n}", "\n" + more + "\n}"))
            assert len(check(root)) == 1, (more, check(root))
        one.write_text(source % "Mine")
        two.write_text((source % "Yours").replace("\n\n}", "\nstruct Mine {\n};\n}"))
        assert len(check(root)) == 1, check(root)
        one.write_text((source % "Mine").replace("\n\n}", "\nconstexpr int kOne = 1;\n}"))
        two.write_text((source % "Yours").replace("{\n}", "{\n  static constexpr int kOne = 2;\n}"))
        assert len(check(root)) == 1, check(root)
        one.write_text((source % "Mine").replace("\n\n}", "\nstruct One {\n};\n}"))
        two.write_text((source % "Yours").replace("{\n}", "{\n  struct One {\n  };\n}"))
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
