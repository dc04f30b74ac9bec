#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `coffer audit list` takes over many calls, for each filter that has an index.

usage: bench_audit_list.py COFFER [ROWS]
Fills a store of its own with finished and refused calls (a million), then runs the program and prints the median of nine.
"""
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

COLUMNS = ("tenant,id,state,owner,parent_id,session_id,depth,agent,user,tool,args_hash,idempotency_key,requested_at,"
           "started_at,finished_at,outcome,error_class,denials,log_index")
FILTERS = ([], ["--tool", "rare"], ["--outcome", "denied"], ["--class", "policy.tool"], ["--denied"],
           ["--agent", "agent3"], ["--until", "2026-11-07"], ["--tool", "not-there"])


def rows(count):
    for i in range(count):
        millis = 1_794_000_000_000 + i * 100
        digits = f"{millis:012x}"
        call = f"{digits[:8]}-{digits[8:]}-7{i % 4096:03x}-8000-{i:012x}"
        denied = i % 10_000 == 0
        at = millis * 1_000_000
        yield ("local", call, "refused" if denied else "finished", 1, "", "", 0, f"agent{i % 10}", "user",
               "python" if i % 1000 else "rare", "sha256:" + "0" * 64, "", at, None if denied else at, at,
               "denied" if denied else "success", "policy.tool" if denied else None, int(denied), i)


def main():
    coffer, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with tempfile.TemporaryDirectory() as place:
        state = os.path.join(place, "state")
        listing = [coffer, "audit", "list", "--json", "--state", state]
        subprocess.run(listing, check=True, stdout=subprocess.DEVNULL)
        store = sqlite3.connect(os.path.join(state, "coffer.db"))
        store.execute("PRAGMA synchronous = OFF")
        store.executemany(f"INSERT INTO calls ({COLUMNS}) VALUES ({','.join('?' * 19)})", rows(count))
        store.commit()
        store.close()
        for words in FILTERS:
            times = []
            for _ in range(9):
                start = time.monotonic()
                subprocess.run(listing + words, check=True, stdout=subprocess.DEVNULL)
                times.append(time.monotonic() - start)
            print(f"audit list over {count} calls, {' '.join(words) or 'no filter':<22} "
                  f"{statistics.median(times) * 1000:7.1f} ms, most {max(times) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
