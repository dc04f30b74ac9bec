# SPDX-License-Identifier: Apache-2.0
"""The package: typed, installed without a network, and its quick start as the README has it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import SOURCE

PACKAGE = SOURCE / "sdk/python"


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **options)


class Package(unittest.TestCase):
    def setUp(self):
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)

    def test_types(self):
        self.assertIsNotNone(shutil.which("mypy"), "mypy is missing: scripts/setup.sh test")
        shutil.copytree(PACKAGE / "cofferdam", self.place / "cofferdam")
        (self.place / "wrong.py").write_text("from cofferdam import Coffer\nCoffer.local().call(1).stdot\n", encoding="utf-8")
        command = ("mypy", "--strict", "--cache-dir", self.place / "cache")
        checked = run(*command, "-p", "cofferdam", cwd=self.place)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        wrong = run(*command, "wrong.py", cwd=self.place)
        self.assertIn('has no attribute "stdot"', wrong.stdout)
        self.assertIn("arg-type", wrong.stdout, "NO-CONTROL: mistakes are not noticed")

    def test_only_the_standard_library_is_used(self):
        for file in (PACKAGE / "cofferdam").glob("*.py"):
            for name in re.findall(r"^(?:import|from) ([a-zA-Z_]\w*)", file.read_text(encoding="utf-8"), re.M):
                self.assertIn(name, sys.stdlib_module_names, file.name)

    def test_the_quick_start_with_the_installed_package(self):
        made = run(sys.executable, "-m", "venv", self.place / "venv")
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        # Nothing may be fetched: no index, and a proxy that does not answer.
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                       "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "HOME": str(self.place)}
        environment.pop("PYTHONPATH", None)
        python = self.place / "venv/bin/python"
        installed = run(python, "-m", "pip", "install", PACKAGE, env=environment)
        self.assertEqual(installed.returncode, 0, installed.stdout + installed.stderr)
        blocks = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(encoding="utf-8"), re.S)
        self.assertEqual(len(blocks[0].splitlines()), 3, "the quick start has three lines")
        for number, block in enumerate(blocks):
            program = self.place / f"example_{number}.py"
            program.write_text(block, encoding="utf-8")
            done = run(python, program, env=environment, cwd=self.place)
            self.assertEqual(done.returncode, 0, block + done.stderr)
            wanted = [line.split("#", 1)[1].strip() for line in block.splitlines() if line.lstrip().startswith("print(") and "#" in line]
            self.assertTrue(wanted, "an example says what it prints")
            self.assertEqual(done.stdout.split("\n")[:len(wanted)], wanted, block)


if __name__ == "__main__":
    unittest.main()
