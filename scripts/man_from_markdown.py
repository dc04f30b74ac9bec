#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the manual pages of section 5, in scdoc's form, of documents in Markdown, so that each text is written once.

Knows what those documents use: headings, paragraphs, lists, fenced code, tables (a row becomes an entry, the first
cell its name), and inline code, emphasis and links.

Usage: man_from_markdown.py manifest|config IN.md OUT.scd
"""
import re
import sys
from pathlib import Path

PAGES = {
    "manifest": ("coffer-manifest(5)", "coffer-manifest - the file that declares a tool", None, None),
    "config": ("coffer.toml(5)", "coffer.toml - quotas, retention, ceilings and receivers of the daemon",
               "### The configuration file", "### Backup"),
}
SEE_ALSO = "*coffer*(1), *coffer-tools*(1), *coffer-call*(1), *coffer-serve*(1), *coffer-manifest*(5), *coffer.toml*(5)"


def escaped(text: str) -> str:
    """Nothing in it is markup for scdoc."""
    return re.sub(r"([\\*_+~#`])", r"\\\1", text)


def inline(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    out = []
    for index, part in enumerate(re.split(r"`([^`]*)`", text)):
        if index % 2:
            out.append("*" + escaped(part) + "*" if part.strip() else escaped(part))
        else:
            out.append(escaped(re.sub(r"\*\*([^*]+)\*\*", r"\1", part)))
    # Two pieces of markup must not touch: scdoc would read them as one.
    return "".join(out).replace("**", "* *")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def convert(lines: list[str]) -> list[str]:
    out: list[str] = []
    fenced = False
    header: list[str] | None = None
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
            out += ["", "```"] if fenced else ["```", ""]
        elif fenced:
            out.append(line)
        elif line.startswith("#"):
            out += ["", "# " + escaped(line.lstrip("#").strip().replace("`", "")).upper(), ""]
        elif line.startswith("|"):
            row = cells(line)
            if header is None:
                header = row
            elif not set(line) <= set("|-: "):
                out += ["", inline(row[0])]
                said = [f"{name}: {value}" if name not in ("what it prevents", "becomes") else value
                        for name, value in zip(header[1:], row[1:]) if value]
                out += ["\t" + inline(". ".join(said))]
            continue
        elif line.startswith("  ") and out and out[-1].startswith("- "):
            out[-1] += " " + inline(line.strip())
        elif line.strip():
            out.append(inline(line.strip()) if not line.startswith("- ") else "- " + inline(line[2:].strip()))
        else:
            out.append("")
        if not line.startswith("|"):
            header = None
    return out


def main() -> int:
    kind, source, target = sys.argv[1:4]
    title, name, begin, end = PAGES[kind]
    text = Path(source).read_text(encoding="utf-8")
    if begin:
        text = text[text.index(begin) + len(begin):text.index(end)]
    lines = text.splitlines()
    if lines and lines[0].startswith("# "):
        lines = lines[1:]
    page = [title, "", "# NAME", "", name, "", "# DESCRIPTION", ""]
    page += convert(lines) + ["", "# SEE ALSO", "", SEE_ALSO, ""]
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    # One empty line in a row is enough, and scdoc wants no more.
    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(page))
    Path(target).write_text(joined, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
