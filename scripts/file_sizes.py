#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the files are. The aim is under 300 lines; over 500 in src/ fails, because by then there are two ideas."""
import sys
from pathlib import Path

AIM, HARD = 300, 500


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    if len(sys.argv) > 1:
        root = Path(sys.argv[1])
    failed = False
    for folder in ("src", "tests", "bench", "scripts", "sdk"):
        files = [p for p in (root / folder).rglob("*") if p.suffix in (".cc", ".h", ".c", ".py", ".sh", ".js")]
        sizes = sorted(((len(p.read_bytes().splitlines()), p.relative_to(root)) for p in files), reverse=True)
        if not sizes:
            continue
        lines = [size for size, _ in sizes]
        nine_in_ten = lines[len(lines) // 10]
        print(f"{folder:8} {len(lines):4} files {sum(lines):6} lines  median {lines[len(lines) // 2]:4}"
              f"  nine in ten under {nine_in_ten + 1:4}  longest {lines[0]} ({sizes[0][1]})")
        for size, path in sizes:
            if folder == "src" and size > HARD:
                failed = True
                print(f"{path}: {size} lines, more than {HARD}: split it along its ideas")
            elif size > AIM and folder == "src":
                print(f"  {path}: {size} lines (aim: {AIM})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
