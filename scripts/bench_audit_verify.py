#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast `coffer audit verify` is as a whole: the log, and every stored receipt compared with it.

usage: bench_audit_verify.py COFFER FILL_STATE [CALLS]
Makes a state directory with that many calls (40,000: two records and a receipt of about 5 KB each), then runs the
program five times and prints the median.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def main():
    coffer, fill = sys.argv[1], sys.argv[2]
    calls = int(sys.argv[3]) if len(sys.argv) > 3 else 40_000
    with tempfile.TemporaryDirectory() as place:
        state = os.path.join(place, "state")
        subprocess.run([fill, state, str(calls)], check=True)
        size = os.path.getsize(os.path.join(state, "coffer.db")) / calls
        for words, what in (([], "with every stored receipt"), (["--log-only"], "the log alone")):
            times = []
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            for _ in range(5):
                start = time.monotonic()
                done = subprocess.run([coffer, "audit", "verify", "--json", "--state", state, *words], check=True,
                                      stdout=subprocess.PIPE)
                times.append(time.monotonic() - start)
            verdict = json.loads(done.stdout)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / 5
            assert verdict["ok"] and verdict["records"] == 2 * calls, verdict
            assert words or verdict["calls_compared"] == calls, verdict
            records = verdict["records"] / statistics.median(times)
            print(f"audit verify, {what:<26} {records:10,.0f} records/s ({verdict['records']} records in "
                  f"{statistics.median(times):.2f} s, {cpu:.2f} s of processor time)")
        print(f"store: {size:,.0f} bytes for each call, its receipt included")


if __name__ == "__main__":
    main()
