#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perl's core tests, outside and inside a boundary, test by test.

  scripts/compat_perl.py [--who root|user] [--only REGEX] [--write]

The tests are those of Debian's source package (`apt-get source perl`, fetched once into build/compat/perl), run with the
system's perl and its modules. Each file runs outside and then in `coffer run`, in a copy of the tree that is mounted
writable, because the tests write beside themselves. A test counts if it passes outside; it is kept if it passes inside
too. The result is in build/compat/perl-WHO.json. --write puts the summary into docs/COMPATIBILITY.md.
Exit 1 if fewer than 99.5 % are kept.
"""
import argparse
import glob
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from compat_cpython import AIM, LIMITS, ROOT, USER, percent, put_into_page, run

FOLDERS = "base cmd comp io lib mro op opbasic re run uni".split()
PLACE = ROOT / "build/compat/perl"
SCRIPT = 'cd "$1/t" && PERL_CORE=1 LC_ALL=C timeout 240 ./perl -I../lib "$2" 2>/dev/null </dev/null'


def fetch():
    """The unpacked source, in build/compat/perl/perl-VERSION."""
    found = list(PLACE.glob("perl-5*/t/TEST"))
    if not found:
        lists = PLACE / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        sources = PLACE / "sources.list"
        mirror = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
                                 "Identifier: Packages", "Origin: Debian"], capture_output=True, text=True, check=True)
        first = mirror.stdout.splitlines()
        if not first:
            sys.exit("apt knows no Debian mirror: apt-get update, or unpack perl's source below build/compat/perl")
        sources.write_text(f"deb-src {first[0]}\n")
        options = ["-qq", "-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=-",
                   "-o", f"Dir::State::lists={lists}"]
        subprocess.run(["apt-get", *options, "update"], check=True)
        subprocess.run(["apt-get", *options, "source", "--download-only", "perl"], check=True, cwd=PLACE)
        archive = next(PLACE.glob("perl_*.orig.tar.xz"))
        subprocess.run(["tar", "xf", archive], check=True, cwd=PLACE)
        found = list(PLACE.glob("perl-5*/t/TEST"))
    return found[0].parent.parent


def make_tree(source, tree):
    """t/ of the source beside the modules of the system's perl, as after a build."""
    shutil.copytree(source / "t", tree / "t", symlinks=True)
    (tree / "t/perl").symlink_to("/usr/bin/perl")
    (tree / "lib").mkdir()
    for pattern in ("/usr/share/perl/5.*", "/usr/lib/*/perl/5.*", "/usr/lib/*/perl-base"):
        for directory in glob.glob(pattern):
            if not os.path.islink(directory):
                subprocess.run(["cp", "-rT", "--no-preserve=ownership", directory, tree / "lib"], check=True)


def passed(text):
    """Numbers of the tests that passed. A failure that is marked TODO passes, as for Perl's own runner."""
    numbers = set()
    for line in text.splitlines():
        found = re.match(r"(not )?ok (\d+)(.*)", line)
        if found and (not found.group(1) or "# TODO" in found.group(3)) and "# skip" not in found.group(3).lower():
            numbers.add(int(found.group(2)))
    return numbers


def write_page(results):
    lines = []
    for who, result in sorted(results.items()):
        outside = sum(record["outside"] for record in result.values())
        inside = sum(record["inside"] for record in result.values())
        lost = sorted((record["outside"] - record["inside"], name) for name, record in result.items())
        names = ", ".join(f"`{name}` ({count})" for count, name in reversed(lost) if count)
        lines += [f"As {who}, on {platform.machine()}: {inside} of {outside} tests in {len(result)} files that pass outside pass inside, "
                  f"**{percent(inside, outside):.2f} %**. Lost in: {names or 'none'}.", ""]
    put_into_page("perl", lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--who", choices=["root", "user"], default="root" if os.getuid() == 0 else "user")
    parser.add_argument("--only", default=".")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    source = fetch()
    result = {}
    with tempfile.TemporaryDirectory(prefix="coffer-perl.", dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        coffer, home = f"{place}/coffer", f"{place}/home"
        shutil.copy(os.environ.get("COFFER", str(ROOT / "build/coffer")), coffer)
        os.mkdir(home)
        trees = [pathlib.Path(place, "outside"), pathlib.Path(place, "inside")]
        for tree in trees:
            make_tree(source, tree)
        if options.who == "user" and os.getuid() == 0:
            subprocess.run(["chown", "-R", f"{USER}:{USER}", home, *trees], check=True)
        files = [f"{folder}/{file.name}" for folder in FOLDERS for file in sorted((trees[0] / "t" / folder).glob("*.t"))]
        for name in files:
            if not re.search(options.only, name):
                continue
            outside = passed(run(["/bin/sh", "-c", SCRIPT, "sh", str(trees[0]), name], home, options.who))
            inside = passed(run([coffer, "run", *LIMITS, "--output", "64MiB", "--rw", f"{trees[1]}:/perl", "--", "/bin/sh", "-c",
                                 SCRIPT, "sh", "/perl", name], home, options.who)) if outside else set()
            lost = sorted(outside - inside)
            result[name] = {"outside": len(outside), "inside": len(outside & inside), "lost": lost[:50]}
            if lost:
                print(f"{name}: {len(lost)} of {len(outside)} lost: {lost[:10]}", flush=True)
    outside = sum(record["outside"] for record in result.values())
    inside = sum(record["inside"] for record in result.values())
    print(f"as {options.who}: {inside} of {outside} tests that pass outside pass inside: {percent(inside, outside):.2f} %")
    if options.only == ".":
        pathlib.Path(ROOT, f"build/compat/perl-{options.who}.json").write_text(json.dumps(result, indent=1, sort_keys=True))
    if options.write:
        saved = sorted((ROOT / "build/compat").glob("perl-*.json"))
        write_page({file.stem.split("-")[1]: json.loads(file.read_text()) for file in saved})
    return 0 if percent(inside, outside) >= AIM else 1


if __name__ == "__main__":
    sys.exit(main())
