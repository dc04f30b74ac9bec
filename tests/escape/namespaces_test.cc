// SPDX-License-Identifier: Apache-2.0
//
// NS: new namespaces, other identities, and everything that connects processes across a boundary.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/host.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

class NamespaceEscape : public LevelTest {};

TEST_P(NamespaceEscape, NS_01_Unshare) {
  // As root of a namespace of its own every kind opens outside, for root and for an ordinary user.
  Expectation expectation;
  expectation.control = Control::kNamespace;
  for (const char* kind : {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"}) {
    expectation.syscalls[kind] = "unshare";
  }
  ExpectContained("NS-01", Flags(), {"unshare", "all"}, expectation);
}

TEST_P(NamespaceEscape, NS_02_CloneNewUser) {
  ExpectContained("NS-02", Flags(), {"clone-newuser"});
}

TEST_P(NamespaceEscape, NS_03_Clone3HidesItsFlags) {
  ExpectContained("NS-03", Flags(), {"clone3-newuser"}, {.errnos = {"ENOSYS"}});
}

TEST_P(NamespaceEscape, NS_04_Setns) {
  Expectation expectation;
  expectation.control_verb = {"setns-all", std::to_string(getpid())};
  for (const char* kind : {"user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "pidfd"}) {
    expectation.syscalls[kind] = "setns";
  }
  ExpectContained("NS-04", Flags(), {"setns-all", "1"}, expectation);
}

TEST_P(NamespaceEscape, NS_07_NoOtherIdentity) {
  Expectation expectation;
  expectation.control = Control::kNamespace;
  expectation.labels = {"setuid",  "setgid",     "setresuid", "setgroups",  "capset",
                        "ambient", "securebits", "chroot",    "sethostname"};
  expectation.errnos = {"EPERM", "EINVAL"};  // an id that has no mapping is EINVAL
  expectation.syscalls = {{"ambient", "prctl"}, {"securebits", "prctl"}};
  const RunResult result = RunProbe(Flags(), {"identity"});
  const auto inside = ParseAttempts(result.out);
  const auto outside = ParseAttempts(RunOutsideInNamespace({"identity"}).out);
  for (const std::string& label : expectation.labels) {
    ASSERT_TRUE(inside.contains(label)) << result.Describe();
    // EINVAL is a refusal here: the id does not exist inside.
    EXPECT_NE(inside.at(label).state, Attempt::State::kOpen) << "NS-07 " << label << "\n"
                                                             << result.Describe();
    EXPECT_TRUE(expectation.errnos.contains(inside.at(label).detail))
        << label << " " << inside.at(label).detail;
    // setgroups is denied in an ordinary user's namespace: that one has its control as root only.
    EXPECT_TRUE(outside.at(label).state == Attempt::State::kOpen ||
                (label == "setgroups" && !IsRoot()))
        << "NO-CONTROL " << label;
  }
}

TEST_P(NamespaceEscape, NS_08_Keyrings) {
  const std::string name = NewToken();
  const long key = syscall(SYS_add_key, "user", name.c_str(), "secret", 6UL, KEY_SPEC_USER_KEYRING);
  ASSERT_GE(key, 0);
  EXPECT_TRUE(Contains(RunOutside({"keys", name}).out, "search-user: OPEN")) << "NO-CONTROL";
  Expectation expectation;
  expectation.errnos = {"EPERM", "ENOSYS"};
  expectation.labels = {"add_key",        "search-user", "search-user-session",
                        "search-session", "describe",    "request_key"};
  expectation.syscalls = {{"search-user", "keyctl"},
                          {"search-user-session", "keyctl"},
                          {"search-session", "keyctl"},
                          {"describe", "keyctl"}};
  ExpectContained("NS-08", Flags(), {"keys", name}, expectation);
  syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
}

TEST_P(NamespaceEscape, NS_11_KillEverybody) {
  // A process of the host, with the caller's uid, that anything unconfined of that uid could end.
  Background control({ProbePath(), "wait", "control"});
  ASSERT_TRUE(control.WaitForOutput("ready"));
  EXPECT_TRUE(Contains(RunOutside({"kill", std::to_string(control.pid()), "9"}).out, "OPEN"))
      << "NO-CONTROL";
  EXPECT_EQ(control.Wait(Seconds(20)).signal, SIGKILL);
  if (!SignalsStayInside()) {
    GTEST_SKIP()
        << "an ordinary user has one uid, and this kernel's Landlock does not scope signals "
           "(ABI 6, Linux 6.12)";
  }

  Background witness({ProbePath(), "wait", "witness"});
  ASSERT_TRUE(witness.WaitForOutput("ready"));
  for (const char* number : {"9", "15", "19", "0"}) {
    const RunResult result = RunProbe(Flags(), {"kill", std::to_string(witness.pid()), number});
    EXPECT_TRUE(Contains(result.out, "REFUSED")) << result.Describe();
  }
  EXPECT_FALSE(witness.ended()) << "OPEN: a process of the host was killed";
  if (container()) {
    // Only here, where a pid namespace limits what -1 means if a layer should fail.
    const RunResult result = RunProbe(Flags(), {"kill-everyone"});
    EXPECT_TRUE(Contains(result.out, "still here")) << result.Describe();
    EXPECT_EQ(result.exit, 0) << "init or the supervisor was hurt\n" << result.Describe();
    EXPECT_TRUE(result.receipt.is_object());
  }
}

TEST_P(NamespaceEscape, NS_11_KillingTheParentSetsNobodyFree) {
  // In a pid namespace init cannot be killed from inside; without one it can, and then everything must go with it.
  const std::string free = NewToken();
  RunProgram(
      {"sh", "-c", "sh -c 'kill -9 $PPID; sleep 1' " + free + " >/dev/null 2>&1 </dev/null; true"});
  const std::vector<pid_t> survivors = FindProcesses(free);
  EXPECT_FALSE(survivors.empty()) << "NO-CONTROL: outside, the child lives on";
  for (const pid_t pid : survivors) {
    kill(pid, SIGKILL);
  }
  const std::string token = NewToken();
  const RunResult result =
      RunCoffer(Flags({"--wall", "10s"}),
                {"sh", "-c", "kill -9 $PPID; sleep 0.2; echo alive; exit 0", token});
  EXPECT_EQ(result.exit, container() ? 0 : 128 + SIGKILL) << result.Describe();
  EXPECT_TRUE(result.receipt.is_object()) << "the run must still report\n" << result.Describe();
  EXPECT_TRUE(FindProcesses(token).empty()) << "the payload outlived its boundary";
  if (container()) {
    EXPECT_EQ(result.out, "alive\n") << result.Describe();
  }
}

TEST_P(NamespaceEscape, NS_18_SystemVSharedMemory) {
  const key_t key = static_cast<key_t>(0x40000000 | (getpid() & 0xffffff));
  const int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(id, 0);
  Expectation expectation;
  expectation.errnos = {"ENOENT", "EPERM", "ENOSYS", "EACCES"};
  ExpectContained("NS-18", Flags(), {"sysv-shm", std::to_string(key)}, expectation);
  shmctl(id, IPC_RMID, nullptr);
}

TEST_P(NamespaceEscape, NS_18_MessageQueues) {
  const std::string name = "/" + NewToken();
  const mqd_t queue = mq_open(name.c_str(), O_CREAT | O_RDWR, 0666, nullptr);
  ASSERT_GE(queue, 0);
  ExpectContained("NS-18", Flags(), {"mq", name},
                  {.errnos = {"ENOENT", "EPERM", "ENOSYS", "EACCES"}});
  mq_close(queue);
  mq_unlink(name.c_str());
}

TEST_P(NamespaceEscape, NS_18_PosixSharedMemory) {
  const std::string name = "/" + NewToken();
  const int fd = shm_open(name.c_str(), O_CREAT | O_RDWR, 0666);
  ASSERT_GE(fd, 0);
  ExpectContained("NS-18", Flags(), {"shm-open", name}, {.errnos = {"ENOENT", "EPERM", "EACCES"}});
  close(fd);
  shm_unlink(name.c_str());
}

TEST_P(NamespaceEscape, NS_18_UnixSockets) {
  TempDir dir;
  const std::string path = dir / "s";
  const std::string abstract = NewToken();
  const auto listen_at = [](const std::string& name, bool is_abstract) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path + (is_abstract ? 1 : 0), name.c_str(), sizeof address.sun_path - 2);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(fd, 8), 0);
    return fd;
  };
  const int by_path = listen_at(path, false);
  const int by_name = listen_at(abstract, true);
  const std::set<std::string> refusals = {"ENOENT", "ECONNREFUSED", "EPERM", "EACCES"};
  ExpectContained("NS-18", Flags(), {"connect-unix", path}, {.errnos = refusals});
  ExpectContained("NS-18", Flags(), {"abstract-unix", abstract}, {.errnos = refusals});
  // The control connected once to each; nobody else did.
  EXPECT_GE(accept(by_path, nullptr, nullptr), 0);
  EXPECT_LT(accept(by_path, nullptr, nullptr), 0);
  EXPECT_GE(accept(by_name, nullptr, nullptr), 0);
  EXPECT_LT(accept(by_name, nullptr, nullptr), 0);
  close(by_path);
  close(by_name);
}

TEST_P(NamespaceEscape, PersonalityIsLocked) {
  Expectation expectation;
  expectation.syscalls = {{"addr-no-randomize", "personality"},
                          {"read-implies-exec", "personality"}};
  ExpectContained("personality", Flags(), {"personality"}, expectation);
}

INSTANTIATE_TEST_SUITE_P(Level, NamespaceEscape, ::testing::Values("container", "process"),
                         LevelTestName);

}  // namespace
}  // namespace coffer::test
