#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""coffer inside containers as Docker, Podman and Kubernetes make them: which level and which layers stand.

docs/OPERATIONS.md ("Inside Docker or Kubernetes") says the same to users; both change together. Each kind of container
is also attacked: a file that the container's user can read, and that no boundary was given, must not be readable in one.
The control reads it without coffer, in the same container.
"""
import json
import os
import shutil
import sys
import tempfile
import unittest

from container import DOCKER_CAPABILITIES, Container

PROCESS = {"uid", "capabilities", "no-new-privs", "seccomp", "landlock", "rlimits"}
CONTAINER = PROCESS | {"userns", "mountns", "pidns", "netns", "ipcns", "utsns", "cgroupns", "private-root",
                       "private-proc", "disk-quota"}
USER = 1000
COFFER = "/opt/coffer"
SECRET = "/home/secret"
ATTACK = ["sh", "-c", f"cat {SECRET} 2>/dev/null && echo OPEN || echo held"]


def lacks(isolation):
    return {entry["layer"] for entry in isolation["missing"]}


class Containers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Copies: the checkout may lie where the container's user may not go.
        cls.place = tempfile.TemporaryDirectory(prefix="cofft-containers.", dir="/var/tmp")
        os.chmod(cls.place.name, 0o755)
        coffer, secret = f"{cls.place.name}/coffer", f"{cls.place.name}/secret"
        shutil.copy(os.environ["COFFER_BIN"], coffer)
        os.chmod(coffer, 0o755)
        with open(secret, "w", encoding="ascii") as file:
            file.write("a secret of the container\n")
        cls.files = {"/usr": "/usr", COFFER: coffer, SECRET: secret}

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def container(self, **kind):
        return Container(self.files, **kind)

    def isolation(self, container, *flags):
        """The receipt's part about isolation, of a call that attacks and is held."""
        ended = container.run(COFFER, "run", *flags, "--receipt", "-", "--", *ATTACK)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stdout.strip(), "held")
        control = container.run(*ATTACK)
        self.assertIn("OPEN", control.stdout, "the control: without coffer the file can be read")
        return json.loads(ended.stderr[ended.stderr.index("{"):])["isolation"]

    def refused(self, container, *flags):
        ended = container.run(COFFER, "run", *flags, "--", "true")
        self.assertIn(ended.returncode, (120, 125), ended.stderr)
        return ended.stderr

    def test_docker_by_default_as_a_user(self):
        for more in ({}, {"no_new_privileges": True}):  # Kubernetes: allowPrivilegeEscalation: false
            container = self.container(uid=USER, **more)
            self.assertIn("--security-opt seccomp=unconfined", self.refused(container))
            self.assertIn("--level process", self.refused(container))
            isolation = self.isolation(container, "--level", "process")
            self.assertEqual((isolation["level"], set(isolation["layers"])), ("process", PROCESS))
            self.assertIn("read-only-locks", lacks(isolation), "Docker's filter forbids pidfd_getfd")
            isolation = self.isolation(container, "--floor", "seccomp,landlock")
            self.assertEqual((isolation["level"], set(isolation["layers"])), ("process", PROCESS))

    def test_docker_by_default_as_root(self):
        container = self.container()
        self.assertIn("--user 1000", self.refused(container))
        # Refused at the start. A boundary that cannot be supervised would only be ended later, by its first sample.
        self.assertIn("CAP_SYS_PTRACE", self.refused(container, "--level", "process"))
        with_ptrace = self.container(capabilities=DOCKER_CAPABILITIES + ["CAP_SYS_PTRACE"])
        isolation = self.isolation(with_ptrace, "--level", "process")
        self.assertEqual((isolation["level"], set(isolation["layers"])), ("process", PROCESS))

    def test_doctor_says_what_works(self):
        for kind, process in (({"uid": USER}, True), ({}, False)):
            ended = self.container(**kind).run(COFFER, "doctor", "--json")
            self.assertEqual(ended.returncode, 1)
            found = json.loads(ended.stdout)
            self.assertFalse(found["levels"]["container"]["reachable"])
            self.assertFalse(found["read_only_locks"]["refused"])
            self.assertIn("SYS_PTRACE", found["read_only_locks"]["fix"])
            self.assertEqual(found["levels"]["process"]["reachable"], process, found["levels"]["process"]["error"])

    def test_without_the_filter_a_user_has_the_container_level(self):
        container = self.container(uid=USER, seccomp="unconfined")
        isolation = self.isolation(container)
        self.assertEqual((isolation["level"], set(isolation["layers"])), ("container", CONTAINER))
        self.assertNotIn("read-only-locks", lacks(isolation))
        # /proc is partly covered, so the kernel gives no other one: private-proc means none at all.
        ended = container.run(COFFER, "run", "--", "sh", "-c", "ls /proc | wc -l")
        self.assertEqual(ended.stdout.strip(), "0")

    def test_with_all_of_proc_boundaries_have_one(self):
        for more in ({}, {"user_namespace": True}):  # Kubernetes: procMount: Unmasked with hostUsers: false
            container = self.container(uid=USER, seccomp="unconfined", masked=False, **more)
            isolation = self.isolation(container)
            self.assertEqual((isolation["level"], set(isolation["layers"])), ("container", CONTAINER))
            ended = container.run(COFFER, "run", "--", "sh", "-c", "test -e /proc/self/status && echo proc")
            self.assertEqual(ended.stdout.strip(), "proc")

    def test_rootless_engines(self):
        container = self.container(uid=USER, user_namespace=True)
        isolation = self.isolation(container, "--level", "process")
        self.assertEqual((isolation["level"], set(isolation["layers"])), ("process", PROCESS))
        container = self.container(uid=USER, user_namespace=True, seccomp="unconfined")
        self.assertEqual(self.isolation(container)["level"], "container")

    def test_root_of_a_container_is_told_to_be_a_user(self):
        container = self.container(seccomp="unconfined", masked=False)
        self.assertIn("ordinary user", self.refused(container))

    def test_the_filter_is_there(self):
        # The control of the harness: what Docker's filter refuses is refused, and only with it.
        probe = "import ctypes, os; print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())"
        python = ["/usr/bin/python3", "-c", probe]
        self.assertEqual(self.container(uid=USER).run(*python).stdout.split(), ["-1", "1"])
        self.assertEqual(self.container(uid=USER, seccomp="unconfined").run(*python).stdout.split()[0], "0")


def skip(reason):
    if os.environ.get("CI") == "true" and os.getuid() == 0:
        sys.exit(f"test_containers.py: {reason}")
    print(f"test_containers.py:1: Skipped\n{reason}")
    sys.exit(77)


if __name__ == "__main__":
    if os.getuid() != 0:
        skip("crun makes containers like Docker's only as root")
    if shutil.which("crun") is None:
        skip("crun is missing: scripts/setup.sh test")
    unittest.main(verbosity=2)
