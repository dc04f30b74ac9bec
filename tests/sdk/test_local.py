# SPDX-License-Identifier: Apache-2.0
"""A private daemon ends with its program, however that ends, and leaves nothing behind."""
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from cofferdam import AsyncCoffer, Coffer, LocalDaemonError
from support import SOURCE, until

PROGRAM = """
import sys
from cofferdam import Coffer
with Coffer.local(private=True) as coffer:
    print(repr(coffer.operations.endpoint)[len("unix:"):], flush=True)
    stream = coffer.stream("bash", {"command": "echo runs; sleep 600"})
    next(event for event in stream if event.text)
    print("runs", flush=True)
    stream.result()
"""
# The same without the keeper between the program and the daemon: the control.
BARE = """
import json, subprocess, sys, time
made = subprocess.Popen([sys.argv[1], "serve", "--state", sys.argv[2], "--listen", "127.0.0.1:0", "--json"],
                        stdout=subprocess.PIPE)
print(json.loads(made.stdout.readline())["socket"], flush=True)
print("runs", flush=True)
time.sleep(600)
"""


def processes_of(state):
    """The processes whose command line names a state directory."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if state.encode() in file.read() and int(name) != os.getpid():
                        found.append(int(name))
            except OSError:
                pass
    return found


class Local(unittest.TestCase):
    def start(self, program, *arguments):
        """A program in a process group of its own; its state directory."""
        child = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(child.stdout.close)
        state = os.path.dirname(child.stdout.readline().strip())
        self.assertEqual(child.stdout.readline(), "runs\n")
        self.assertGreater(len(processes_of(state)), 1)
        return child, state

    def gone(self, state):
        until(lambda: not os.path.exists(state), "the state directory is removed")
        until(lambda: not processes_of(state), "no process is left")

    def test_ctrl_c(self):
        child, state = self.start(PROGRAM)
        os.killpg(child.pid, signal.SIGINT)
        self.assertNotEqual(child.wait(60), 0)
        self.gone(state)

    def test_kill(self):
        child, state = self.start(PROGRAM)
        child.kill()
        child.wait(60)
        self.gone(state)

    def test_without_the_keeper_a_kill_leaves_the_daemon(self):
        coffer = os.environ.get("COFFER_BIN") or shutil.which("coffer")
        with tempfile.TemporaryDirectory(prefix="coffer-") as place:
            child, state = self.start(BARE, coffer, place)
            child.kill()
            child.wait(60)
            left = processes_of(state)
            self.assertTrue(left, "NO-CONTROL: the daemon ends by itself")
            for pid in left:
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass  # one of them ended the others
            until(lambda: not processes_of(state), "no process is left")

    def test_the_end_of_a_block(self):
        with Coffer.local(private=True) as coffer:
            state = os.path.dirname(repr(coffer.operations.endpoint)[len("unix:"):])
            self.assertEqual(os.stat(state).st_mode & 0o077, 0)
            self.assertTrue(processes_of(state))
        self.assertFalse(os.path.exists(state))
        self.gone(state)  # on a busy machine the last of them is killed with the first, and takes a moment
        coffer.close()  # twice is not an error

    def test_asynchronously(self):
        async def work():
            async with await AsyncCoffer.local(private=True) as coffer:
                state = os.path.dirname(repr(coffer.operations.endpoint)[len("unix:"):])
                self.assertTrue((await coffer.call("python", {"code": "1"})).ok)
            self.assertFalse(os.path.exists(state))
            task = asyncio.create_task(AsyncCoffer.local(private=True))
            await asyncio.sleep(0)  # it has begun, and cannot have ended
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o711)  # root's daemon reaches its state directory as another user
            with mock.patch.object(tempfile, "tempdir", place):
                asyncio.run(work())
            self.assertEqual(os.listdir(place), [])

    def test_a_daemon_that_is_there_is_used_and_left(self):
        with tempfile.TemporaryDirectory(prefix="coffer-") as place:
            os.chmod(place, 0o711)  # root's daemon reaches its state directory as another user
            state = os.path.join(place, "state")
            with mock.patch.dict(os.environ, COFFER_STATE=state):
                with Coffer.local(state=state) as mine:
                    with Coffer.local() as found:
                        self.assertEqual(repr(found), repr(mine))
                        call = found.call("python", {"code": "print(1)"})
                    self.assertEqual(mine.get(call.call_id).stdout, "1\n")
                self.assertTrue(os.path.exists(os.path.join(state, "log", "records")), "a named state directory stays")
                with Coffer.local() as private:
                    self.assertNotEqual(repr(private), repr(mine))

    def test_a_long_name_of_the_temporary_directory(self):
        with tempfile.TemporaryDirectory(prefix="long" * 20) as place, mock.patch.object(tempfile, "tempdir", place):
            with Coffer.local(private=True) as coffer:
                self.assertTrue(coffer.call("python", {"code": "1"}).ok)

    def test_tools_of_ones_own(self):
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            text = (SOURCE / "tools/python.toml").read_text(encoding="utf-8").replace('name    = "python"', 'name = "mine"')
            with open(os.path.join(place, "mine.toml"), "w", encoding="utf-8") as file:
                file.write(text)
            with Coffer.local(tools=[place]) as coffer:
                self.assertEqual(coffer.call("mine", {"code": "print(1)"}).stdout, "1\n")

    def test_no_program(self):
        with tempfile.TemporaryDirectory() as place:
            planted = os.path.join(place, "coffer")
            with open(planted, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\ntouch %s\necho '{}'\n" % (place + "/ran"))
            os.chmod(planted, 0o755)
            here = os.getcwd()
            try:
                os.chdir(place)
                with mock.patch.dict(os.environ, PATH=f".:{place}/none::relative"):
                    os.environ.pop("COFFER_BIN", None)
                    with self.assertRaises(LocalDaemonError) as caught:
                        Coffer.local(private=True)
            finally:
                os.chdir(here)
            self.assertIn("COFFER_BIN", str(caught.exception))
            self.assertFalse(os.path.exists(place + "/ran"), "a program of the current directory ran")
            for program in (planted, "/bin/false", place + "/none"):
                with mock.patch.dict(os.environ, COFFER_BIN=program), self.assertRaises(LocalDaemonError):
                    Coffer.local(private=True)
            self.assertTrue(os.path.exists(place + "/ran"), "NO-CONTROL: the planted program cannot run")


if __name__ == "__main__":
    unittest.main()
