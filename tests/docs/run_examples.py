#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of README.md and docs/*.md, and compares what they print with what the page says.

An example is a line in a fenced block that begins with "$ " or with "coffer ". The lines below a "$ " command, up to the
next one, are the output the reader is promised. Ids, hashes, times and keys differ from run to run and match any; "..."
matches any text. A command without promised output must only not be refused (120) and not fail (125 and above).

Each page is run from top to bottom in one scratch directory with a HOME, a state directory and a daemon of its own, so an
example may use what an earlier one made. A command that cannot run in a test is in not_run.list with its reason; a line
there that matches no command is an error, so the list stays true.

Usage: run_examples.py COFFER [PAGE...]      --self-test shows that a wrong example is noticed.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("COFFER_SOURCE") or Path(__file__).resolve().parents[2])
SECONDS_EACH = 60
# Text that differs from run to run, in the order in which it is replaced.
CHANGING = [
    (r"\b[0-9a-f]{4,}\.\.\.", "..."),
    # Without a memory cgroup the figure is a sample, and is said.
    (r"used [0-9.]+[KMG]iB of memory, the cap is (\w+)", r"needed more memory than the cap of \1"),
    (r"coffer_[A-Za-z0-9_.]+", "<key>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
    (r"\b[0-9a-f]{16,}\b", "<hex>"),
    (r'"(index|size)":\d+', r'"\1":<n>'),
    (r"\b\d+ (records|checkpoints)", r"<n> \1"),
]


class Example:
    def __init__(self, page, line, command, promised):
        self.page, self.line, self.command, self.promised = page, line, command, promised

    def name(self):
        return f"{self.page}:{self.line}"


def examples_of(page, text):
    """The examples of one page, from top to bottom."""
    found, block, current = [], False, None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            block, current = not block, None
        elif not block:
            continue
        elif current and current.command.endswith("\\"):
            current.command = current.command[:-1] + line.strip()
        elif current and current.command.count("'") % 2 == 1:
            current.command += "\n" + line
        elif line.startswith("$ "):
            current = Example(page, number, line[2:], [])
            found.append(current)
        elif re.match(r"coffer [a-z]+( |$)", line) and "\\n" not in line:
            found.append(Example(page, number, line, None))
            current = None
        elif current and line.strip():
            current.promised.append(line)
    return found


def normal(text):
    for pattern, put in CHANGING:
        text = re.sub(pattern, put, text)
    return re.sub(r"\s+", "", text)


def keeps_promise(promised, printed):
    """Whether `printed` begins with what was promised. White space does not count: pages break long lines."""
    wanted = re.escape(normal("\n".join(promised))).replace(re.escape("..."), ".*")
    return re.match(wanted, normal(printed), re.DOTALL) is not None


class Page:
    """A scratch directory with what the pages' examples name, and a daemon for those that ask one."""

    def __init__(self, coffer):
        self.coffer = Path(coffer).resolve()
        self.directory = Path(tempfile.mkdtemp(prefix="cofft-docs-"))
        self.directory.chmod(0o755)  # the daemon's roles are other users
        work, home = self.directory / "work", self.directory / "home"
        for path in (work / "invoices", work / "checkout", home / ".ssh", self.directory / "bin"):
            path.mkdir(parents=True)
        (self.directory / "bin" / "coffer").symlink_to(self.coffer)
        (home / ".ssh" / "id_ed25519").write_text("a key that no example may show\n")
        (work / "script.py").write_text("print('the script ran')\n")
        (work / "data.csv").write_text("a,b\n1,2\n")
        (work / "profile.json").write_text('{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}\n')
        (work / "invoices" / "one.txt").write_text("12\n")
        self.env = {"PATH": f"{self.directory}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(home),
                    "COFFER_STATE": str(self.directory / "state"), "LANG": "C.UTF-8", "USER": "reader",
                    "TMPDIR": os.environ.get("TMPDIR", "/tmp"), "XDG_RUNTIME_DIR": str(self.directory)}
        self.status, self.daemon = 0, None

    def start_daemon(self):
        self.daemon = subprocess.Popen([self.coffer, "serve", "--listen", "127.0.0.1:0", "--json"], cwd=self.directory,
                                       env={**self.env, "COFFER_STATE": str(self.directory / "daemon")},
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = json.loads(self.daemon.stdout.readline())
        self.env.update(URL=ready["listen"], KEY=ready["key"], AUTH=f"Authorization: Bearer {ready['key']}",
                        JSON="Content-Type: application/json")

    def run(self, command):
        if ("$URL" in command or "$KEY" in command) and not self.daemon:
            self.start_daemon()
        command = command.replace("http://127.0.0.1:7433", "$URL")
        command = re.sub(r"/v1/calls/[0-9a-f-]{36}", "/v1/calls/$CALL", command)
        if re.search(r"\bCALL\b", command) and "$CALL" not in command:
            command = re.sub(r"\bCALL\b", '"$CALL"', command)
        command = re.sub(r"\bCMD\b.*", "true", command)
        # What one example keeps in a variable, the next may use.
        kept = re.match(r"([A-Z]+)=\$\(", command)
        if kept:
            command += f'; printf %s "${kept[1]}"'
        # The status of one example can be asked for by the next.
        done = subprocess.run(["bash", "-c", f"(exit {self.status}); {command}"], cwd=self.directory / "work", env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SECONDS_EACH)
        self.status = done.returncode
        printed = done.stdout.decode(errors="replace").replace(str(self.env["HOME"]), "/root")
        if kept:
            self.env[kept[1]], printed = printed.strip(), ""
        for name, variable in (("session_id", "S"), ("call_id", "CALL"), ("process_id", "P")):
            for value in re.findall(rf'"{name}":"([0-9a-f-]{{36}})"', printed):
                self.env[variable] = value
        self.find_last_call()
        return printed

    def find_last_call(self):
        if "CALL" not in self.env and os.path.exists(self.env["COFFER_STATE"]):
            listed = subprocess.run([self.coffer, "audit", "list", "--json"], env=self.env, capture_output=True, text=True)
            ids = re.findall(r'"call_id": ?"([0-9a-f-]{36})"', listed.stdout)
            if ids:
                self.env["CALL"] = ids[0]

    def close(self):
        if self.daemon:
            self.daemon.send_signal(signal.SIGTERM)
            self.daemon.wait(30)
        # As root they lie in /var/cache.
        subprocess.run([self.coffer, "cache", "clear", "--project", self.directory / "work"], env=self.env, check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)


def read_not_run(text):
    """Lines of: PAGE | beginning of the command | reason."""
    entries = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            page, command, reason = (part.strip() for part in line.split("|", 2))
            entries.append((page, command, reason))
    return entries


def run_page(page, text, coffer, not_run, used):
    """Prints one line for each example; how many were wrong."""
    place, wrong = Page(coffer), 0
    try:
        for example in examples_of(page, text):
            entry = next((e for e in not_run if e[0] == page and example.command.startswith(e[1])), None)
            if entry:
                used.add(entry)
                print(f"not run {example.name()}: {example.command[:60]} ({entry[2]})")
                continue
            try:
                printed = place.run(example.command)
            except subprocess.TimeoutExpired:
                printed, place.status = f"no end within {SECONDS_EACH} s", 125
            if example.promised:
                good = keeps_promise(example.promised, printed)
            else:
                good = place.status < 120 or 128 <= place.status
            print(("ok      " if good else "WRONG   ") + f"{example.name()}: {example.command[:90]}")
            if not good:
                wrong += 1
                print(f"  promised: {' / '.join(example.promised or ['not to be refused'])}")
                print(f"  printed, status {place.status}: {printed.strip()[:800]}")
    finally:
        place.close()
    return wrong


def self_test(coffer):
    right = "```\n$ echo 4\n4\n$ coffer run -- echo hi\nhi\n$ false\n$ echo $?\n1\n```\n"
    cases = [(right, 0), ("```\n$ echo 5\n4\n```\n", 1), ("```\ncoffer rnu -- true\n```\n", 1),
             ("```\n$ X=$(echo 4)\n$ echo $X\n4\n```\n", 0), ("$ echo outside of a block\nother\n", 0), ("```\n$ echo aXb\na...b\n```\n", 0)]
    for text, expected in cases:
        if run_page("SELF", text, coffer, [], set()) != expected:
            print(f"self-test: expected {expected} wrong examples in {text!r}")
            return 1
    print(f"self-test: {len(cases)} cases")
    return 0


def main():
    arguments = sys.argv[1:]
    if "--self-test" in arguments:
        arguments.remove("--self-test")
        return self_test(arguments[0])
    coffer, pages = arguments[0], arguments[1:]
    not_run = read_not_run((SOURCE / "tests/docs/not_run.list").read_text())
    everything = not pages
    if everything:
        pages = [name for name in ["README.md"] if (SOURCE / name).exists()]
        pages += sorted(f"docs/{path.name}" for path in (SOURCE / "docs").glob("*.md"))
    used, wrong, count = set(), 0, 0
    for page in pages:
        text = (SOURCE / page).read_text()
        count += len(examples_of(page, text))
        wrong += run_page(page, text, coffer, not_run, used)
    if everything:
        for page, command, _ in [entry for entry in not_run if entry not in used]:
            print(f"WRONG   tests/docs/not_run.list: no example of {page} begins with: {command}")
            wrong += 1
    print(f"{count} examples, {wrong} wrong")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
