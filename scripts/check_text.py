#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks on the text of every file in the repository:

  licence   every source starts with an SPDX line
  words     no paths of somebody's machine, no package-registry hosts, nothing about how a file came to be
  packages  every Debian package that a script or document tells people to install is in deploy/packages.txt
  flags     the manual pages and the three completions know the same flags as the program's verbs do
  controls  every test in tests/escape shows that its attack works without the barrier: it calls ExpectContained or
            ExpectNoSwapShows, or an assertion of its own says NO-CONTROL; one that attacks nothing says why, with
            NothingIsAttacked
  promises  every test that docs/PROMISES.md names exists, in the file that it names, and is not switched off

Usage: check_text.py [ROOT]; check_text.py --self-test proves that each check can fail.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP_DIRS = re.compile(r"^(\.git|build|build-.*|__pycache__|\.mypy_cache|node_modules|\.cache)$")
SPDX_SUFFIXES = {".cc", ".h", ".c", ".py", ".sh", ".cmake", ".js", ".mjs", ".ts"}
SPDX_NAMES = {"CMakeLists.txt", "Makefile", "Dockerfile", "run"}

# The brackets keep this file from flagging itself.
WORDS = [
    (re.compile(r"(?<![\w.])/w[o]rk/"), "path of a build machine"),
    (re.compile(r"(?<![\w.])/f[a]rm\b"), "path of a build machine"),
    (re.compile(r"(?<![\w])\.l[i]brary\b"), "path of a build machine"),
    (re.compile(r"/tmp/(?:b[r]ief|build-)"), "path of a build machine"),
    (re.compile(r"https?://[a-z0-9.-]*\b(?:debian|npmjs|pypi|pythonhosted|crates)\.(?:org|io)"), "registry host"),
    (re.compile(r"\bregistry\.[a-z0-9.-]+\.(?:org|com|io)\b"), "registry host"),
    (re.compile(r"\bsub-?[a]gents?\b", re.I), "how the file was made"),
    (re.compile(r"\b(?:generated|written|produced) (?:by|with) (?:an? )?(?:AI|LLM|language model)\b", re.I),
     "how the file was made"),
]


# Verbs whose help lists their flags; those of coffer itself and of doctor and runtimes are few.
VERBS = ("run", "call", "tools", "audit", "key", "sessions", "serve", "shell", "cache", "switch", "access", "mcp", "mcp wrap",
         "mcp review", "mcp install")
OTHER_VERBS = {"--json", "--sweep", "--help", "--version"}


def files_of(root: Path):
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not SKIP_DIRS.match(n))
        for name in sorted(files):
            path = Path(directory, name)
            if not path.is_symlink() and name != ".git":  # a file, in a worktree
                yield path


def text_of(path: Path):
    data = path.read_bytes()
    if b"\0" in data[:8192]:
        return None
    return data.decode("utf-8", errors="replace")


def check_licence(relative: Path, text: str) -> list[str]:
    if relative.suffix not in SPDX_SUFFIXES and relative.name not in SPDX_NAMES:
        return []
    if "corpus" in relative.parts or not text or relative.name.endswith(".d.ts"):  # which the compiler writes
        return []
    first = text.splitlines()[:2]
    if any("SPDX-License-Identifier: Apache-2.0" in line for line in first):
        return []
    return [f"{relative}:1: the first line should be: SPDX-License-Identifier: Apache-2.0"]


def check_words(relative: Path, text: str) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in WORDS:
            match = pattern.search(line)
            if match:
                found.append(f"{relative}:{number}: '{match.group()}': {what}")
    return found


def listed_packages(root: Path) -> set[str]:
    names = set()
    for line in (root / "deploy/packages.txt").read_text(encoding="utf-8").splitlines():
        line = line.split("#")[0].strip()
        if line and line[0] not in "[@":
            names.add(line.split()[0].rstrip("?"))
    return names


def check_packages(relative: Path, text: str, listed: set[str]) -> list[str]:
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(r"apt(?:-get)? (?:-\S+ )*install ((?:-\S+ )*)([a-z0-9][a-z0-9.+ -]*)", line):
            for name in match.group(2).split():
                if not name.startswith("-") and name not in listed and name not in ("sudo", "git"):
                    found.append(f"{relative}:{number}: package '{name}' is not in deploy/packages.txt")
    return found


def check_controls(relative: Path, text: str) -> list[str]:
    if relative.parts[:2] != ("tests", "escape") or relative.suffix != ".cc":
        return []
    found = []
    code = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    starts = list(re.finditer(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", code, flags=re.M))
    for start, after in zip(starts, starts[1:] + [None]):
        body = code[start.end():after.start() if after else len(code)]
        # A test ends with its closing brace; what follows belongs to nobody or to the next one.
        end = re.search(r"^}", body, flags=re.M)
        body = body[:end.start()] if end and "\n" in body[:end.start()] else body.splitlines()[0]
        # What is streamed behind an assertion is its message; nothing else here writes to a stream.
        if not re.search(r"\bExpect(?:Contained|NoSwapShows)\(|\bNothingIsAttacked\(\s*\"\w|<<\s*\"NO-CONTROL", body):
            line = code[:start.start()].count("\n") + 1
            found.append(f"{relative}:{line}: {start.group(2)} has no control: show that the attack works without the "
                         "barrier (NO-CONTROL in the assertion, or ExpectContained)")
    return found


def flags_of_program(root: Path) -> set[str]:
    coffer = root / "build/coffer"
    if not coffer.exists():
        return set()
    flags = set()
    for verb in VERBS:
        out = subprocess.run([coffer, *verb.split(), "--help"], capture_output=True, text=True, timeout=20, check=False)
        flags |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", out.stdout + out.stderr))
    return flags


def check_flags(root: Path, flags: set[str]) -> list[str]:
    found = []
    for name in ("docs/man", "deploy/completions/coffer.bash", "deploy/completions/_coffer",
                 "deploy/completions/coffer.fish"):
        pages = sorted((root / name).glob("*.scd")) if (root / name).is_dir() else [root / name]
        text = "\n".join(page.read_text(encoding="utf-8") for page in pages).replace("\\-", "-")
        if name.endswith(".fish"):
            text = re.sub(r" -l ([a-z-]+)", r" --\1", text.replace("set -l", ""))
        known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        for flag in sorted(flags - known):
            found.append(f"{name}:1: does not know the flag {flag} of the program")
        for flag in sorted(known - flags - OTHER_VERBS):
            found.append(f"{name}:1: names {flag}, which no verb's --help does")
    return found


def tests_of(root: Path, file: str):
    """The names of the tests in tests/FILE_test.cc, or of `sdk/x` in tests/sdk/test_x.py; None if there is no such file, or an
    empty set for a folder."""
    place = root / "tests" / file
    script = place.with_name(f"test_{place.name}.py")
    if script.exists():
        return set(re.findall(r"^    def (test_\w+)\(self", script.read_text(encoding="utf-8"), re.M))
    source = place.with_name(place.name + "_test.cc")
    if not source.exists():  # `posture` stands for posture/posture_test.cc
        source = place / (place.name + "_test.cc")
    if source.exists():
        text = source.read_text(encoding="utf-8")
        return set(re.findall(r"^\s*(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*\w+,\s*(\w+)", text, re.M))
    return set() if place.is_dir() else None


def check_promises(root: Path) -> list[str]:
    document = root / "docs/PROMISES.md"
    if not document.exists():
        return []
    found = []
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if not re.match(r"\| \d+ \|", line):
            continue
        where = f"docs/PROMISES.md:{number}:"
        file = None
        for item in re.findall(r"`([^`]+)`", line.rstrip(" |").rsplit("|", 1)[1]):
            if item.startswith("make "):
                continue
            path, colon, name = item.partition(": ")
            if colon or "/" in item or not item[0].isupper():
                file = path
                if tests_of(root, file) is None:
                    found.append(f"{where} there is no tests/{file}_test.cc")
                    file = None
                if not colon:
                    continue
            else:
                name = item
            if file is None:
                found.append(f"{where} {name} stands behind no file of tests")
            elif name not in tests_of(root, file):
                found.append(f"{where} there is no test {name} in tests/{file}_test.cc")
    return found


def check(root: Path, flags=None) -> tuple[int, list[str]]:
    count, problems = 0, []
    listed = listed_packages(root)
    for path in files_of(root):
        text = text_of(path)
        if text is None:
            continue
        count += 1
        relative = path.relative_to(root)
        problems += check_licence(relative, text)
        problems += check_words(relative, text)
        problems += check_controls(relative, text)
        problems += check_packages(relative, text, listed)
    problems += check_promises(root)
    flags = flags_of_program(root) if flags is None else flags
    if flags:
        problems += check_flags(root, flags)
    return count, problems


SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


def self_test() -> int:
    cases = [
        ("src/base/a.cc", "int x;\n", "SPDX", set()),
        ("src/base/a.cc", "// SPDX-License-Identifier: Apache-2.0\n", None, set()),
        ("sdk/a.js", "let x;\n", "SPDX", set()),
        ("sdk/a.d.ts", "let x: number;\n", None, set()),
        ("docs/a.md", "see /wo" + "rk/main\n", "build machine", set()),
        ("docs/a.md", "see /workspace/x and a/work/b\n", None, set()),
        ("docs/a.md", "from https://deb.deb" + "ian.org/debian\n", "registry", set()),
        ("docs/a.md", "a sub" + "agent wrote this\n", "how the file was made", set()),
        ("docs/a.md", "apt-get install" + " -y no-such-package\n", "not in deploy/packages.txt", set()),
        ("docs/a.md", "apt-get install -y make\n", None, set()),
        ("docs/a.md", "", "does not know the flag --frobnicate", {"--frobnicate", "--known"}),
        ("docs/a.md", "", "names --known", {"--other"}),
        ("docs/a.md", "", None, {"--known"}),
        ("tests/escape/a.cc", SPDX + 'TEST(A, B) {\n  EXPECT_FALSE(x);\n}\n', "B has no control", set()),
        ("tests/escape/a.cc", SPDX + 'TEST(A, B) {\n  // NO-CONTROL\n  EXPECT_FALSE(x) << "no";\n}\n', "B has no control",
         set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) {\n  EXPECT_TRUE(y) << "NO-CONTROL";\n}\nTEST_P(A, C) {\n  Run();\n}\n',
         "C has no control", set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) {\n  EXPECT_EQ(f("a; b"), 1)\n      << "NO-CONTROL: x";\n}\n', None, set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) {\n  const char* x = "NO-CONTROL";\n}\n', "B has no control", set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) { Run(); }\nvoid F() { ExpectContained(); }\n', "B has no control", set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) { ExpectContained("x"); }\n', None, set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) { ExpectNoSwapShows("x"); }\n', None, set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) {\n  NothingIsAttacked("a receipt");\n}\n', None, set()),
        ("tests/escape/a.cc", SPDX + 'TEST_P(A, B) {\n  NothingIsAttacked("");\n}\n', "B has no control", set()),
        ("tests/unit/a.cc", SPDX + 'TEST(A, B) {\n  EXPECT_FALSE(x);\n}\n', None, set()),
        ("docs/PROMISES.md", "| 1 | `x` | `unit/known: Holds`, `HoldsToo`; `unit/known` |\n", None, set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/known: Gone` |\n", "no test Gone", set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/known: Holds`, `Gone` |\n", "no test Gone", set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/known: Off` |\n", "no test Off", set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/gone: Holds` |\n", "no tests/unit/gone_test.cc", set()),
        ("docs/PROMISES.md", "| 1 | it holds | `Holds` |\n", "behind no file", set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/script: test_it` |\n", None, set()),
        ("docs/PROMISES.md", "| 1 | it holds | `unit/script: test_gone` |\n", "no test test_gone", set()),
    ]
    failures = 0
    for name, text, reason, flags in cases:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for other, content in (("deploy/packages.txt", "[build]\nmake\n"), ("docs/man/coffer.1.scd", "*--known*"),
                                   ("deploy/completions/coffer.bash", "--known"), ("deploy/completions/_coffer", "--known"),
                                   ("deploy/completions/coffer.fish", "complete -l known"),
                                   ("tests/unit/known_test.cc", "// SPDX-License-Identifier: Apache-2.0\n"
                                    "TEST(K, Holds) {}\nTEST_P(K, HoldsToo) {}\nTEST(K, DISABLED_Off) {}\n"),
                                   ("tests/unit/test_script.py", "# SPDX-License-Identifier: Apache-2.0\n"
                                    "class A:\n    def test_it(self):\n        pass\n"),
                                   (name, text)):
                (root / other).parent.mkdir(parents=True, exist_ok=True)
                (root / other).write_text(content, encoding="utf-8")
            _, problems = check(root, flags)
        if not (not problems if reason is None else any(reason in p for p in problems)):
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
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
