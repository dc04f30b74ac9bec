# SPDX-License-Identifier: Apache-2.0
"""A container as Docker, Podman and Kubernetes make one, by crun: what the engine forbids, and the flags that lift it.

The rest of an engine (images, networks, storage) does not matter to a boundary. What matters: the seccomp filter, the
covered parts of /proc and /sys, the capabilities, no_new_privs, and whether the container has a user namespace.
"""
import json
import os
import pathlib
import subprocess
import tempfile

# What Docker's default filter refuses to a process without further capabilities, of the calls that this kernel has. The
# filter itself lists what is allowed; the two say the same, and this one is the part that decides what coffer can do.
REFUSED = """
acct add_key bpf clock_settime delete_module fanotify_init finit_module fsconfig fsmount fsopen fspick get_mempolicy
init_module io_uring_enter io_uring_register io_uring_setup kcmp kexec_file_load kexec_load keyctl mbind migrate_pages
mount mount_setattr move_mount move_pages open_by_handle_at open_tree perf_event_open pidfd_getfd pivot_root
process_madvise quotactl quotactl_fd reboot request_key set_mempolicy set_mempolicy_home_node setdomainname sethostname
setns settimeofday swapoff swapon syslog umount2 unshare userfaultfd vhangup
""".split()
NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW* that clone(2) takes
EPERM, ENOSYS, AF_VSOCK = 1, 38, 40
DOCKER_CAPABILITIES = ["CAP_" + name for name in (
    "AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE NET_RAW SETFCAP SETGID SETPCAP SETUID "
    "SYS_CHROOT").split()]
MASKED = ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]

# crun takes no hosts that mount cgroup v2 beside v1. It gets a mount namespace in which they do not.
WITHOUT_HYBRID = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                  "if mountpoint -q /sys/fs/cgroup/unified; then umount -R /sys/fs/cgroup/unified; fi; exec \"$@\"", "sh"]


def default_filter():
    clone = [{"index": 0, "value": 1 << bit, "valueTwo": 1 << bit, "op": "SCMP_CMP_MASKED_EQ"}
             for bit in range(32) if NAMESPACE_FLAGS >> bit & 1]
    rules = [{"names": REFUSED, "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM},
             {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS},
             {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM,
              "args": [{"index": 0, "value": AF_VSOCK, "op": "SCMP_CMP_EQ"}]}]
    rules += [{"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": EPERM, "args": [flag]} for flag in clone]
    return {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules}


class Container:
    """One kind of container; run() starts it, once for each command, with crun."""

    def __init__(self, files, *, uid=0, seccomp="default", masked=True, user_namespace=False, capabilities=None,
                 no_new_privileges=False, cgroups=True):
        self.files = files  # {path inside: path on the host}, read-only
        self.cgroups = cgroups
        capabilities = (DOCKER_CAPABILITIES if uid == 0 else []) if capabilities is None else capabilities
        namespaces = ["pid", "network", "ipc", "uts", "mount"] + (["user"] if user_namespace else [])
        mounts = [{"destination": "/proc", "type": "proc", "source": "proc"},
                  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                  {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                   "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]},
                  {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["nosuid", "nodev", "mode=1777"]},
                  {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "nodev", "ro"]},
                  {"destination": "/tmp", "type": "tmpfs", "source": "tmp", "options": ["nosuid", "nodev", "mode=1777"]}]
        if user_namespace:  # sysfs belongs to the network namespace's owner; engines bind it then
            mounts[4] = {"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]}
        mounts += [{"destination": inside, "type": "bind", "source": outside, "options": ["rbind", "ro"]}
                   for inside, outside in files.items()]
        linux = {"namespaces": [{"type": kind} for kind in namespaces]}
        if masked:
            linux |= {"maskedPaths": MASKED, "readonlyPaths": READ_ONLY}
        if seccomp == "default":
            linux["seccomp"] = default_filter()
        if user_namespace:
            linux |= {"uidMappings": [{"containerID": 0, "hostID": 700000, "size": 65536}],
                      "gidMappings": [{"containerID": 0, "hostID": 700000, "size": 65536}]}
        kinds = ("bounding", "effective", "permitted") if uid == 0 else ("bounding",)
        self.config = {
            "ociVersion": "1.0.2", "hostname": "container", "mounts": mounts, "linux": linux,
            "root": {"path": "rootfs", "readonly": False},
            "process": {"terminal": False, "cwd": "/", "user": {"uid": uid, "gid": uid},
                        "env": ["PATH=/usr/bin:/bin", "HOME=/tmp"], "noNewPrivileges": no_new_privileges,
                        "capabilities": {kind: capabilities for kind in kinds}}}

    def run(self, *command, timeout=120):
        with tempfile.TemporaryDirectory(prefix="cofft-container.", dir="/var/tmp") as place:
            os.chmod(place, 0o755)
            rootfs = pathlib.Path(place, "rootfs")
            for name in ("proc", "dev", "sys", "tmp", "usr", "etc", "home"):
                (rootfs / name).mkdir(parents=True)
            for name in ("bin", "lib", "lib64", "sbin"):
                if os.path.islink(f"/{name}"):
                    (rootfs / name).symlink_to(os.readlink(f"/{name}"))
            (rootfs / "etc/passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")
            for inside, outside in self.files.items():
                target = rootfs / inside.lstrip("/")
                if os.path.isdir(outside):
                    target.mkdir(parents=True, exist_ok=True)
                else:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.touch()
            self.config["process"]["args"] = list(command)
            pathlib.Path(place, "config.json").write_text(json.dumps(self.config))
            name = f"coffer-test-{os.getpid()}-{os.urandom(4).hex()}"
            manager = [] if self.cgroups else ["--cgroup-manager=disabled"]
            # A pipe as stdin: crun gives what it gets to the container's user, and /dev/null belongs to the host.
            return subprocess.run([*WITHOUT_HYBRID, "crun", *manager, "--root", f"{place}/state", "run", "--bundle", place, name],
                                  capture_output=True, text=True, timeout=timeout, input="")
