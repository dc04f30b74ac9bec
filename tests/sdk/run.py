#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of sdk/: `run.py python` or `run.py typescript`. COFFER_BIN names the program that they start as a daemon.

Each test file is a program of its own. They have an empty state directory, so that none of them finds a daemon of the host.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = Path(os.environ.get("COFFER_SOURCE") or HERE.parents[1])


def main() -> int:
    language = sys.argv[1]
    if language == "typescript" and shutil.which("node") is None:
        if os.environ.get("CI") == "true":
            print("Node.js is missing: scripts/setup.sh conformance")
            return 1
        # The form in which GoogleTest says it: scripts/run_tests.sh looks for that.
        print("run.py:1: Skipped\nNode.js is missing: scripts/setup.sh conformance")
        return 77
    failed = []
    with tempfile.TemporaryDirectory(prefix="sdk-") as scratch:
        environment = {**os.environ, "COFFER_STATE": scratch + "/none", "COFFER_SOURCE": str(SOURCE),
                       "PYTHONPATH": f"{SOURCE / 'sdk/python'}:{HERE}", "PYTHONDONTWRITEBYTECODE": "1"}
        for name in ("COFFER_URL", "COFFER_KEY", "COFFER_TOOLS", "COFFER_CONFIG"):
            environment.pop(name, None)
        for file in sorted(HERE.glob("test_*.py" if language == "python" else "*.test.mjs")):
            command = [sys.executable, "-W", "error::ResourceWarning", str(file)] if language == "python" else ["node", str(file)]
            print(f"== {file.name}", flush=True)
            if subprocess.run(command, env=environment, cwd=scratch, check=False).returncode != 0:
                failed.append(file.name)
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
