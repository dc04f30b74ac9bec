#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two verifiers of the audit log, ours in C++ and the independent one in Python, must say the same.

    compare.py --program log_answer --verifier sdk/python [--seed N] [--mutations N] [--receipts N]

Good logs are made, then each mutation changes one of them: both must call it bad. Forged logs (signed, but against the
rules) must be found by both, for the same reasons. Controls: what was not changed must be good; a verifier that is told
to skip the roots misses mutations, so the comparison can see one that is weak.
"""
import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class Answers:
    """The C++ verifier, one question after the other."""

    def __init__(self, program):
        self.child = subprocess.Popen([program, "verify"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().strip()
        if not answer:
            raise SystemExit(f"log_answer died over {words}")
        return answer


def ask_python(coffer_verify, directory, kept=None):
    try:
        verdict = coffer_verify.verify_log(str(directory), kept=kept.read_bytes() if kept else None)
    except coffer_verify.Unreadable:
        return "unreadable"
    codes = sorted({finding["code"] for finding in verdict["findings"]})
    return " ".join(["good" if verdict["ok"] else "bad", *codes])



def split_lines(data):
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def checkpoints(lines):
    return [i for i, line in enumerate(lines) if line.startswith(b"= ")]


def leaves(lines):
    return [i for i, line in enumerate(lines) if line.startswith(b"{")]


# Each takes the bytes of a log and a source of chance, and returns other bytes, or None if it cannot.

def flip_bit(data, chance, other):
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:]


def replace_byte(data, chance, other):
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.choice(b' \n\r\0={}"09afAF+/')]) + data[at + 1:]


def drop_byte(data, chance, other):
    at = chance.randrange(len(data))
    return data[:at] + data[at + 1:]


def add_byte(data, chance, other):
    at = chance.randrange(len(data) + 1)
    return data[:at] + bytes([chance.choice(b' \n\r\0={}"09afAF+/')]) + data[at:]


def drop_line(data, chance, other):
    lines = split_lines(data)
    # Without the last line, a checkpoint, only records that nobody vouches for are left; without the first, no log.
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def repeat_line(data, chance, other):
    lines = split_lines(data)
    line = chance.choice(lines)
    lines.insert(chance.randrange(1, len(lines) + 1), line)
    return b"".join(lines)


def swap_lines(data, chance, other):
    lines = split_lines(data)
    a, b = chance.sample(range(len(lines)), 2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def swap_neighbours(data, chance, other):
    lines = split_lines(data)
    a = chance.randrange(len(lines) - 1)
    lines[a], lines[a + 1] = lines[a + 1], lines[a]
    return b"".join(lines)


def swap_checkpoints(data, chance, other):
    lines = split_lines(data)
    a, b = chance.sample(checkpoints(lines), 2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def swap_fields(data, chance, other):
    lines = split_lines(data)
    a, b = chance.sample(checkpoints(lines), 2)
    one, two = lines[a].split(b" "), lines[b].split(b" ")
    field = chance.randrange(1, 5)
    one[field], two[field] = two[field], one[field]
    if field == 4:  # they carry the newline, and so does the line
        one[4], two[4] = one[4].strip() + b"\n", two[4].strip() + b"\n"
    lines[a], lines[b] = b" ".join(one), b" ".join(two)
    return b"".join(lines)


def truncate(data, chance, other):
    cut = data[:chance.randrange(len(data))]
    lines = split_lines(cut)
    if lines and lines[-1].startswith(b"= ") and lines[-1].endswith(b"\n"):
        return cut[:-1]  # an earlier state of the log: that is the next one
    return cut


def drop_batches(data, chance, other):
    """Not to be seen in the file: the kept checkpoint shows it."""
    lines = split_lines(data)
    last = chance.choice(checkpoints(lines)[:-1])
    return b"".join(lines[:last + 1])


def drop_inner_batch(data, chance, other):
    lines = split_lines(data)
    at = chance.randrange(1, len(checkpoints(lines)) - 1)
    begin, end = checkpoints(lines)[at - 1] + 1, checkpoints(lines)[at] + 1
    return b"".join(lines[:begin] + lines[end:])


def renumber(data, chance, other):
    lines = split_lines(data)
    at = chance.choice(leaves(lines))
    lines[at] = lines[at].replace(b'"ran":true', b'"ran":false') if b'"ran":true' in lines[at] else \
        lines[at].replace(b'"seq":', b'"seq":1')
    return b"".join(lines)


def graft(data, chance, other):
    """Lines of another log."""
    lines, strange = split_lines(data), split_lines(other)
    at = chance.randrange(len(lines))
    lines[at:at + 1] = strange[at:at + chance.randrange(1, 4)]
    return b"".join(lines)


def append_rubbish(data, chance, other):
    return data + bytes(chance.randrange(256) for _ in range(chance.randrange(1, 200)))


MUTATIONS = [flip_bit, flip_bit, flip_bit, replace_byte, drop_byte, add_byte, drop_line, repeat_line, swap_lines,
             swap_neighbours, swap_checkpoints, swap_fields, truncate, drop_batches, drop_inner_batch, renumber, graft,
             append_rubbish]


class Comparison:
    def __init__(self, arguments, place):
        sys.path.insert(0, arguments.verifier)
        import coffer_verify
        self.python = coffer_verify
        self.place = place
        self.program = arguments.program
        self.ours = Answers(arguments.program)
        self.chance = random.Random(arguments.seed)
        self.problems = []
        self.made = []

    def problem(self, text):
        self.problems.append(text)
        print(text)

    def make(self, count):
        for number in range(count):
            directory = self.place / f"made{number}"
            subprocess.run([self.program, "make", directory, str(self.chance.randrange(10**6))], check=True)
            self.made.append(directory)

    def both(self, directory, kept=None):
        return self.ours.ask("log", directory, *([kept] if kept else [])), ask_python(self.python, directory, kept)

    def controls(self):
        for made in self.made:
            for answer in (*self.both(made / "log"), *self.both(made / "log", made / "checkpoint")):
                if answer != "good":
                    self.problem(f"control: an unchanged log is {answer}")
            for forged in sorted((made / "forged").iterdir()):
                ours, theirs = self.both(forged)
                good = forged.name.startswith("good")
                if ours != theirs or (ours == "good") != good or ours == "unreadable":
                    self.problem(f"forged {forged.name}: C++ {ours}, Python {theirs}")

    def mutate(self, count):
        seen = {}
        for number in range(count):
            made = self.chance.choice(self.made)
            data = (made / "log/records").read_bytes()
            other = (self.chance.choice(self.made) / "log/records").read_bytes()
            mutation = MUTATIONS[number % len(MUTATIONS)]
            changed = mutation(data, self.chance, other)
            while changed == data:
                changed = mutation(data, self.chance, other)
            directory = self.place / "changed"
            directory.mkdir(exist_ok=True)
            (directory / "records").write_bytes(changed)
            shutil.copy(made / "log/key.pub", directory / "key.pub")
            kept = made / "checkpoint" if mutation is drop_batches else None
            ours, theirs = self.both(directory, kept)
            if ours != theirs or not ours.startswith("bad "):
                keep = self.place.parent / f"log_agreement_{number}"
                shutil.copytree(directory, keep, dirs_exist_ok=True)
                self.problem(f"{mutation.__name__} (number {number}): C++ {ours}, Python {theirs}; see {keep}")
            seen.setdefault(mutation.__name__, set()).update(ours.split()[1:])
            if mutation is drop_batches and self.both(directory) != ("good", "good"):
                self.problem("control: an earlier state of the log is good by itself")
        for name, codes in seen.items():
            print(f"{name:18} {' '.join(sorted(codes))}")

    def weak_control(self):
        """A Python verifier without roots and chain must miss something that ours finds."""
        class Weak(self.python.LogVerifier):
            def see_checkpoint(self, line):
                super().see_checkpoint(line)
                self.findings = [f for f in self.findings if f["code"] not in ("log.root", "log.chain")]
        missed = 0
        for _ in range(60):
            made = self.chance.choice(self.made)
            changed = flip_bit((made / "log/records").read_bytes(), self.chance, b"")
            weak = Weak(self.python.read_key(str(made / "log/key.pub")))
            parts = changed.split(b"\n")
            for line in parts[:-1]:
                weak.see(line)
            weak.end(parts[-1])
            missed += not weak.findings
        if missed == 0:
            self.problem("control: a verifier without roots finds as much as one with them")

    def receipts(self, count):
        for number in range(count):
            made = self.chance.choice(self.made)
            key = made / "log/key.pub"
            source = self.chance.choice(sorted((made / "receipts").iterdir()))
            data = source.read_bytes()
            target = self.place / "receipt.json"
            places = [i for i, byte in enumerate(data) if byte not in b" \n"]
            changed = data
            if number % 10 != 0:
                at = self.chance.choice(places)
                while changed == data:
                    changed = data[:at] + bytes([data[at] ^ 1 << self.chance.randrange(8)]) + data[at + 1:]
                    if changed[at] in b" \n\t\r":
                        changed = data
            target.write_bytes(changed)
            ours = self.ours.ask("receipt", target, key)
            try:
                self.python.verify_receipt(changed, self.python.read_key(str(key)))
                theirs = "good"
            except self.python.VerificationError:
                theirs = "bad"
            expected = "good" if changed == data else "bad"
            if (ours, theirs) != (expected, expected):
                self.problem(f"receipt {source} number {number}: C++ {ours}, Python {theirs}, expected {expected}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--verifier", required=True)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--receipts", type=int, default=200)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory() as place:
        comparison = Comparison(arguments, Path(place))
        comparison.make(4)
        comparison.controls()
        comparison.mutate(arguments.mutations)
        comparison.weak_control()
        comparison.receipts(arguments.receipts)
    print(f"{arguments.mutations} mutated logs, {arguments.receipts} receipts, {len(comparison.problems)} problems")
    return 1 if comparison.problems else 0


if __name__ == "__main__":
    sys.exit(main())
