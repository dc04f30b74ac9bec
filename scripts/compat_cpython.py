#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests, outside and inside a boundary, test by test.

  scripts/compat_cpython.py [--who root|user] [--only REGEX] [--short] [--write] [--result FILE] [--again]

Each module of Debian's libpython3.11-testsuite runs twice with the system's python3: outside, then in `coffer run` with the
limits of a project and no mount. A test counts if it passes outside; it is kept if it passes inside too. Tests that
need the network, sound or a display are not asked for (`-u none` of CPython's runner), so they count nowhere.

The result file (build/compat/cpython-WHO.json) holds every module and every test that was lost, with the last line of
its error. A run continues where the last one stopped; --again starts over. tests/compat/cpython_reasons.list says for
lost tests why, by pattern. --write puts the summary into docs/COMPATIBILITY.md. --short is what CI runs: a few modules.
Exit 1 if a test was lost without a reason, or, of the whole, if fewer than 99.5 % are kept. Tests that pass outside only because
root runs them are shown, and do not count for that.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
USER = 48213
WALL = 600
AIM = 99.5
UNEXPLAINED = "not explained yet"
NEEDS_ROOT = "the payload is an ordinary user, also when root starts it"
LIMITS = ["--memory", "2GiB", "--processes", "512", "--open-files", "4096", "--cpu", "590s", "--wall", f"{WALL}s",
          "--tmp", "512MiB", "--disk", "1GiB", "--output", "16MiB", "--quiet"]
# CI runs these: what a boundary is most likely to break, in about two minutes.
SHORT = ["test_asyncore", "test_fcntl", "test_openpty", "test_os", "test_poll", "test_popen", "test_posix", "test_pty",
         "test_pwd", "test_resource", "test_select", "test_selectors", "test_tempfile", "test_threading",
         "test_urllib2_localnet"]
# Of test_socket: on virtual machines it waits for ever, outside, and then nothing of the module is reported.
IGNORED = "-i '*VSOCK*'"
# The markers stand around the XML on stdout, so that no mount is needed to get it out.
SCRIPT = f"""place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT && cd "$place" && {PYTHON} -m test {IGNORED} --timeout 500 --junit-xml="$place/r.xml" "$1" >log 2>&1 </dev/null
echo; echo '<<<xml'; cat r.xml 2>/dev/null; echo; echo 'xml>>>'; tail -c 4000 log"""

SPOKEN = f"""place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT && cd "$place" && {PYTHON} -m test {IGNORED} --timeout 500 -v "$1" 2>&1 </dev/null"""


def environment(home):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8"}


def run(command, home, who):
    """stdout of the command; empty if it took too long."""
    def become_user():
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    drop = become_user if who == "user" and os.getuid() == 0 else None
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               cwd=home, env=environment(home), preexec_fn=drop, start_new_session=True)
    try:
        out = process.communicate(timeout=WALL + 30)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out = process.communicate()[0]
    return out.decode("utf-8", "replace")


def results(text):
    """{test: "" if it passed, "skipped: WHY", or the last line of its error}; and the end of the log."""
    found = re.search(r"<<<xml\n(.*?)\nxml>>>\n?(.*)", text, re.S)
    tests = {}
    if found is None:
        return tests, text[-400:]
    try:
        tree = xml.etree.ElementTree.fromstring(found.group(1).strip() or "<none/>")
    except xml.etree.ElementTree.ParseError as error:
        return tests, f"the report cannot be read: {error}"
    for case in tree.iter("testcase"):
        name = case.get("name")
        if name is None:  # a failed subtest leaves its test without a name: it did not pass
            continue
        why = ""
        for child in case:
            if child.tag == "skipped":
                why = f"skipped: {child.text}"
            elif child.tag in ("error", "failure", "outcome"):
                lines = (child.get("message") or child.text or child.tag).strip().splitlines()
                why = lines[-1][:200] if lines else child.tag
        tests[name] = tests.get(name) or why  # a name that is used twice passes if both do
    return tests, found.group(2)[-400:]


def spoken(text):
    """The same from the lines of `-v`: "" for a test that is followed by "ok", what was said otherwise."""
    tests, last = {}, None
    for line in text.splitlines():
        named = re.match(r"\w+ \((test\.[\w.]+)\)", line)
        if named:
            last = named.group(1)
            tests[last] = "did not run to its end"
        said = re.search(r"(?:^|\.\.\. )(ok|ERROR|FAIL|skipped .*)$", line)
        if last and said:
            tests[last] = "" if said.group(1) == "ok" else said.group(1).replace("skipped ", "skipped: ", 1)
            last = None
    return tests


def one_module(module, coffer, home, who):
    started = time.monotonic()
    outside, log = results(run(["/bin/sh", "-c", SCRIPT, "sh", module], home, who))
    outside_seconds = time.monotonic() - started
    passing = [name for name, why in outside.items() if not why]
    record = {"outside": len(passing), "outside_seconds": round(outside_seconds, 1), "inside": 0, "lost": {}}
    if not passing:
        record["note"] = (log.strip().splitlines() or [""])[-1][:200]
        return record
    started = time.monotonic()
    inside, log = results(run([coffer, "run", *LIMITS, "--", "/bin/sh", "-c", SCRIPT, "sh", module], home, who))
    if not inside:
        # CPython's runner may fall over a thread that fails while it makes the report (test_socket's clients without
        # UDP-Lite). Without a report it prints a line for each test.
        inside = spoken(run([coffer, "run", *LIMITS, "--", "/bin/sh", "-c", SPOKEN, "sh", module], home, who))
    record["inside_seconds"] = round(time.monotonic() - started, 1)
    for name in passing:
        if inside.get(name, "did not run to its end") == "":
            record["inside"] += 1
        else:
            record["lost"][name] = inside.get(name, "did not run to its end")
    if not inside:
        record["note"] = (log.strip().splitlines() or [""])[-1][:200]
    return record


def reasons():
    """[(pattern of "TEST: ERROR", reason)]"""
    found = []
    for line in (ROOT / "tests/compat/cpython_reasons.list").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, reason = line.split(" | ", 1)
            found.append((re.compile(pattern), reason))
    return found


def percent(inside, outside):
    """Rounded down, so that 100.00 means all."""
    return 10000 * inside // outside / 100 if outside else 0.0


def summary(result):
    modules = result["modules"]
    outside = sum(record["outside"] for record in modules.values())
    inside = sum(record["inside"] for record in modules.values())
    known = reasons()
    classes = {}
    for module, record in modules.items():
        for name, why in record["lost"].items():
            text = f"{name}: {why}"
            reason = next((reason for pattern, reason in known if pattern.search(text)), UNEXPLAINED)
            classes.setdefault(reason, []).append(text)
    silent = [module for module, record in modules.items() if record["outside"] == 0]
    return outside, inside, classes, silent


def put_into_page(section, lines):
    """Replaces what stands between the markers of `section` in docs/COMPATIBILITY.md."""
    page = ROOT / "docs/COMPATIBILITY.md"
    text = page.read_text()
    start, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    head, tail = text.split(start)[0], text.split(end)[1]
    page.write_text(head + start + "\n\n" + "\n".join(lines) + "\n" + end + tail)


def fair_percent(outside, inside, classes):
    """Without the tests that no ordinary user passes."""
    return percent(inside, outside - len(classes.get(NEEDS_ROOT, [])))


def write_page(all_results):
    lines = []
    for who, result in all_results.items():
        outside, inside, classes, silent = summary(result)
        lines += [f"As {who}, on {platform.machine()}: {inside} of {outside} tests that pass outside pass inside, **{percent(inside, outside):.2f} %** "
                  f"({len(result['modules'])} of {result['listed']} modules of {result['python']}; "
                  f"{len(silent)} of them have no test that passes outside, offline).", ""]
        if NEEDS_ROOT in classes:
            lines[-1:] = [f"Without the {len(classes[NEEDS_ROOT])} that need root's own powers, which no payload has, it is "
                          f"**{fair_percent(outside, inside, classes):.2f} %**.", ""]
        if classes:
            lines += ["| lost | why | for instance |", "|---|---|---|"]
            for reason, tests in sorted(classes.items(), key=lambda item: -len(item[1])):
                example = tests[0].split(": ")[0].replace("|", "\\|")
                lines.append(f"| {len(tests)} | {reason} | `{example}` |")
            lines.append("")
    put_into_page("cpython", lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--who", choices=["root", "user"], default="root" if os.getuid() == 0 else "user")
    parser.add_argument("--only", default=".")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--result", type=pathlib.Path)
    options = parser.parse_args()
    result_file = options.result or ROOT / f"build/compat/cpython-{options.who}.json"
    result_file.parent.mkdir(parents=True, exist_ok=True)
    listing = subprocess.run([PYTHON, "-m", "test", "--list-tests"], capture_output=True, text=True)
    listed = listing.stdout.split()
    if len(listed) < 100:
        sys.exit("CPython's tests are missing: apt-get install libpython3.11-testsuite")
    wanted = [m for m in (SHORT if options.short else listed) if re.search(options.only, m)]
    version = subprocess.run([PYTHON, "--version"], capture_output=True, text=True).stdout.strip()
    result = {"python": version, "who": options.who, "listed": len(listed), "modules": {}}
    if result_file.exists() and not options.again:
        result = json.loads(result_file.read_text())
    with tempfile.TemporaryDirectory(prefix="coffer-cpython.", dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        coffer = f"{place}/coffer"
        subprocess.run(["cp", os.environ.get("COFFER", str(ROOT / "build/coffer")), coffer], check=True)
        home = f"{place}/home"
        os.mkdir(home)
        if options.who == "user" and os.getuid() == 0:
            os.chown(home, USER, USER)
        for module in wanted:
            if module in result["modules"]:
                continue
            record = one_module(module, coffer, home, options.who)
            result["modules"][module] = record
            print(f"{module}: {record['inside']} of {record['outside']} {record.get('note', '')}", flush=True)
            for name, why in list(record["lost"].items())[:20]:
                print(f"    {name}: {why}", flush=True)
            result_file.write_text(json.dumps(result, indent=1, sort_keys=True))
    outside, inside, classes, _ = summary(result)
    for reason, tests in sorted(classes.items(), key=lambda item: -len(item[1])):
        print(f"{len(tests):6} {reason}")
    print(f"as {options.who}: {inside} of {outside} tests that pass outside pass inside: {percent(inside, outside):.2f} %")
    if options.write:
        files = sorted(result_file.parent.glob("cpython-*.json"))
        write_page({f.stem.split("-")[1]: json.loads(f.read_text()) for f in files})
    for text in classes.get(UNEXPLAINED, []):
        print(f"no reason is known for: {text}")
    narrowed = options.short or options.only != "."
    return 0 if UNEXPLAINED not in classes and (narrowed or percent(inside, outside) >= AIM) else 1


if __name__ == "__main__":
    sys.exit(main())
