#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A source of src/ includes what it uses of the headers that are precompiled.

In the presets that compile sources together (cmake/unity.cmake) those headers are known everywhere, so that a missing include
does not show. It shows in the presets that compile each file alone, which take long. Here a name is looked for in the text:
the header that declares it is included by the file itself, or by a header of ours that the file includes.

Usage: check_includes.py [ROOT]; check_includes.py --self-test proves that it can fail.
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The precompiled header: what is used of it. A header that brings another by its definition counts for that one too.
USES = {
    "algorithm": r"std::(ranges::)?(sort|stable_sort|find|find_if|find_if_not|any_of|all_of|none_of|count|count_if|copy|copy_n|transform|"
                 r"replace|reverse|unique|remove_if|equal|mismatch|search|lower_bound|upper_bound|binary_search|includes|set_difference|"
                 r"min_element|max_element|clamp|fill|generate|rotate|partition|is_sorted|for_each)\(",
    "array": r"std::(array<|to_array\b)",
    "charconv": r"std::(from_chars|to_chars)\b",
    "chrono": r"std::chrono\b",
    "functional": r"std::(function|bind_front|ref|cref|hash)\b",
    "map": r"std::(multi)?map<",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared|enable_shared_from_this)\b",
    "optional": r"std::(optional\b|nullopt|make_optional)",
    "set": r"std::(multi)?set<",
    "span": r"std::(span\b|as_bytes|as_writable_bytes)",
    "string": r"std::(string\b(?!_)|to_string)",
    "string_view": r"std::string_view\b",
    "variant": r"std::(variant|visit|holds_alternative|get_if|monostate)\b",
    "vector": r"std::vector\b",
    "fmt/format.h": r"\bfmt::",
    "nlohmann/json.hpp": r"\bnlohmann::",
    "boost/asio/co_spawn.hpp": r"\bco_spawn\(",
    "boost/asio/awaitable.hpp": r"\bawaitable<",
    "boost/asio/io_context.hpp": r"\basio::io_context\b",
}
BRINGS = {
    "string": ["string_view"],
    "fmt/format-inl.h": ["fmt/format.h"], "fmt/ranges.h": ["fmt/format.h"],
    "nlohmann/json_fwd.hpp": ["nlohmann/json.hpp"],  # its names; a use that needs more does not compile
}
PATTERNS = {header: re.compile(pattern) for header, pattern in USES.items()}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//[^\n]*', re.S)


def includes(path: Path, root: Path, known: dict[Path, set[str]]) -> set[str]:
    """The headers of others that `path` includes, itself or through ours."""
    if path in known:
        return known[path]
    known[path] = found = set()
    for ours, other in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if other:
            found |= {other, *BRINGS.get(other, [])}
            continue
        for place in (path.parent / ours, root / "src" / ours):
            if place.is_file():
                found |= includes(place.resolve(), root, known)
                break
    return found


def check(root: Path) -> list[str]:
    problems, known = [], {}
    for path in sorted([*root.glob("src/**/*.cc"), *root.glob("src/**/*.h")]):
        code = NOT_CODE.sub('""', INCLUDE.sub("", path.read_text(encoding="utf-8")))
        have = includes(path.resolve(), root, known)
        problems += [f"{path.relative_to(root)}: uses {match.group(0)} and does not include <{header}>"
                     for header, pattern in PATTERNS.items()
                     if header not in have and (match := pattern.search(code))]
    return problems


def self_test() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "src/base").mkdir(parents=True)
        source, header = root / "src/base/one.cc", root / "src/base/one.h"
        header.write_text("#include <vector>\n")
        own = '#include "base/one.h"\n'
        for text, expected in ((own + "std::vector<int> x;", 0), ("std::vector<int> x;", 1),
                               ("// std::vector\nconst char* x = \"fmt::\";", 0),
                               (own + "std::map<int, int> x;", 1), ("#include <map>\nstd::map<int, int> x;", 0),
                               ('auto x = fmt::format("");', 1), ('#include <fmt/ranges.h>\nauto x = fmt::format("");', 0),
                               ("std::string x;", 1), ("#include <string>\nstd::string_view x;", 0)):
            source.write_text(text + "\n")
            assert len(check(root)) == expected, (text, check(root))
    # Every header that is precompiled is looked for here, but for those that only come with another of Asio's.
    text = (ROOT / "cmake/unity.cmake").read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"<([a-z_]+(?:/[a-z_./]+)?)>", text.split("set(COFFER_ASIO_HEADERS")[0]) if name not in USES]
    assert not missing, missing
    print("check_includes: the self-test passed")


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    problems = check(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
    for problem in problems:
        print(problem)
    if not problems:
        print("sources include what they use of the precompiled headers")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
