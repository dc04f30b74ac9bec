// SPDX-License-Identifier: Apache-2.0
//
// Every file that the caller names, replaced by something that is not a file: a fifo, a directory,
// a device, a file of the kernel, a file larger than any disk. The answer comes at once, is the one
// expected, and nothing was read from it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"
#include "tests/support/host.h"

namespace coffer::test {
namespace {

constexpr Seconds kAtOnce(30);  // a loaded machine is slow; what hangs does not end at all

struct Use {
  const char* name;
  // The command line that names the file, given the test's directory.
  Strings (*words)(const std::string& directory, const std::string& file);
  int exit;              // when the file is hostile
  bool written = false;  // otherwise read
};

std::string State(const std::string& directory) { return directory + "/state"; }

// The same text in the middle of each: what to run if it were not refused.
Strings Run(const Strings& flags) {
  Strings words = {"run"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.insert(words.end(), {"--", ProbePath(), "args", "it-ran"});
  return words;
}

Strings Call(const std::string& directory, const Strings& flags) {
  Strings words = {"call", "python", "--state", State(directory)};
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

const Use kUses[] = {
    {"RunReceipt", [](auto&, auto& file) { return Run({"--receipt", file}); }, 120, true},
    {"RunSeccomp", [](auto&, auto& file) { return Run({"--seccomp", file}); }, 120},
    {"RunIn", [](auto&, auto& file) { return Run({"--in", file}); }, 120},
    {"RunRecordedReceipt",
     [](auto& directory, auto& file) {
       return Run({"--receipt", file, "--state", State(directory)});
     },
     120, true},
    {"CallReceipt",
     [](auto& directory, auto& file) {
       return Call(directory, {"--args", R"j({"code":"print('it-ran')"})j", "--receipt", file});
     },
     120, true},
    {"CallArgs",
     [](auto& directory, auto& file) { return Call(directory, {"--args", "@" + file}); }, 120},
    {"CallConfig",
     [](auto& directory, auto& file) {
       return Call(directory, {"--args", R"j({"code":"print('it-ran')"})j", "--config", file});
     },
     120},
    {"ToolsCheck", [](auto&, auto& file) { return Strings{"tools", "check", file}; }, 1},
    {"VerifyKey",
     [](auto& directory, auto& file) {
       return Strings{"audit", "verify", "--state", State(directory), "--key", file};
     },
     120},
    {"VerifyCheckpoint",
     [](auto& directory, auto& file) {
       return Strings{"audit", "verify", "--state", State(directory), "--checkpoint", file};
     },
     120},
    {"VerifyReceipt",
     [](auto& directory, auto& file) {
       return Strings{"audit", "verify-receipt", file, "--key", State(directory) + "/log/key.pub"};
     },
     120},
    {"VerifyReceiptKey",
     [](auto& directory, auto& file) {
       return Strings{"audit", "verify-receipt", directory + "/receipt", "--key", file};
     },
     120},
};

class NamedFile : public HostWatchTest, public ::testing::WithParamInterface<Use> {
 protected:
  void SetUp() override {
    HostWatchTest::SetUp();
    const RunResult made = Coffer({"call", "python", "--args", R"j({"code":"print(1)"})j",
                                   "--state", State(dir_.path()), "--receipt", dir_ / "receipt"});
    ASSERT_EQ(made.exit, 0) << made.Describe();
  }
  static RunResult Coffer(Strings words) {
    words.insert(words.begin(), CofferPath());
    return RunProgram(words, {.timeout = kAtOnce});
  }
  void ExpectAnsweredAtOnce(const std::string& file) {
    const RunResult result = Coffer(GetParam().words(dir_.path(), file));
    EXPECT_FALSE(result.timed_out) << "it hangs on " << file;
    EXPECT_EQ(result.exit, GetParam().exit) << file << "\n" << result.Describe();
    EXPECT_TRUE(Contains(result.err + result.out, file)) << "not named\n" << result.Describe();
    EXPECT_FALSE(Contains(result.out, "it-ran")) << result.Describe();
  }

  TempDir dir_;
};

TEST_P(NamedFile, AFifo) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  ExpectAnsweredAtOnce(fifo);
  // The control: opening it waits. A fifo takes a writer that will not wait only while a reader has it open.
  Background reader({"cat", fifo});
  UniqueFd writer;
  EXPECT_TRUE(WaitUntil([&] {
    writer = UniqueFd(open(fifo.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return writer.valid();
  }));
  EXPECT_FALSE(reader.ended());
  writer.Reset();
  EXPECT_EQ(reader.Wait(kAtOnce).exit, 0);
}

TEST_P(NamedFile, AFifoWithAWriterThatWaits) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  Background writer({"sh", "-c", "echo waits; echo {} > \"$0\"; echo released", fifo});
  ASSERT_TRUE(writer.WaitForOutput("waits\n"));
  ExpectAnsweredAtOnce(fifo);
  EXPECT_EQ(RunProgram({"cat", fifo}).out, "{}\n") << "its bytes were taken";
  EXPECT_TRUE(writer.WaitForOutput("released\n"));
}

TEST_P(NamedFile, ADirectory) { ExpectAnsweredAtOnce(dir_.MakeDir("directory")); }

TEST_P(NamedFile, AnEndlessDevice) { ExpectAnsweredAtOnce("/dev/zero"); }

TEST_P(NamedFile, AFileOfTheKernel) {
  // /proc/kmsg says that it is a regular file, and makes root wait for the next message.
  ExpectAnsweredAtOnce("/proc/kmsg");
}

TEST_P(NamedFile, AFileLargerThanAnyDisk) {
  const std::string sparse = dir_.Write("sparse", "");
  ASSERT_EQ(truncate(sparse.c_str(), 1LL << 42), 0);
  if (GetParam().written) {
    // It holds no receipt, so none takes its place; its start is enough to tell.
    const RunResult result = Coffer(GetParam().words(dir_.path(), sparse));
    EXPECT_EQ(result.exit, 120) << result.Describe();
    EXPECT_TRUE(Contains(result.err, "holds something else")) << result.Describe();
    return;
  }
  ExpectAnsweredAtOnce(sparse);
}

INSTANTIATE_TEST_SUITE_P(Use, NamedFile, ::testing::ValuesIn(kUses),
                         [](const auto& use) { return std::string(use.param.name); });

// What lies in a state directory is opened in the same way: a fifo in the place of each file is an
// answer, not a wait.
struct Part {
  const char* name;
  int call;    // the exit of a call
  int verify;  // and of `coffer audit verify`
};

class StateFile : public ::testing::TestWithParam<Part> {};

TEST_P(StateFile, AFifoInItsPlace) {
  const Part& part = GetParam();
  TempDir dir;
  const Strings call = {CofferPath(),
                        "call",
                        "python",
                        "--args",
                        R"j({"code":"print(1)"})j",
                        "--state",
                        dir / "s",
                        "--tools",
                        dir.MakeDir("tools")};
  ASSERT_EQ(RunProgram(call).exit, 0);
  const std::string path = dir / part.name;
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const RunResult again = RunProgram(call, {.timeout = kAtOnce});
  EXPECT_FALSE(again.timed_out) << path;
  EXPECT_EQ(again.exit, part.call) << again.Describe();
  const RunResult verify =
      RunProgram({CofferPath(), "audit", "verify", "--state", dir / "s"}, {.timeout = kAtOnce});
  EXPECT_FALSE(verify.timed_out) << path;
  EXPECT_EQ(verify.exit, part.verify) << verify.Describe();
}

INSTANTIATE_TEST_SUITE_P(Name, StateFile,
                         ::testing::Values(Part{"s/log/key", 125, 0}, Part{"s/log/key.pub", 0, 120},
                                           Part{"s/log/records", 125, 120},
                                           Part{"s/log/tree", 0, 0}, Part{"s/coffer.toml", 120, 0},
                                           Part{"s/coffer.db", 125, 125},
                                           Part{"s/coffer.db-wal", 125, 125},
                                           Part{"s/owners", 125, 125},
                                           Part{"tools/broken.toml", 0, 0}),
                         [](const auto& file) {
                           std::string name = file.param.name;
                           std::erase_if(name, [](char c) { return isalnum(c) == 0; });
                           return name;
                         });

// A pipe of the test's that nobody reads, and that is full.
class FullPipe {
 public:
  FullPipe() {
    if (pipe2(ends_, O_CLOEXEC | O_NONBLOCK) != 0) {
      abort();
    }
    const std::string block(4096, 'x');
    while (write(ends_[1], block.data(), block.size()) > 0) {
    }
    fcntl(ends_[1], F_SETFL, 0);
  }
  ~FullPipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  int write_end() const { return ends_[1]; }
  // What comes out when it is read after all, until `part` is in it.
  bool Delivers(const std::string& part) const {
    std::string got;
    return WaitUntil([&] {
      char buffer[65536];
      const ssize_t n = read(ends_[0], buffer, sizeof buffer);
      got.append(buffer, n > 0 ? static_cast<size_t>(n) : 0);
      return Contains(got, part);
    });
  }

 private:
  int ends_[2] = {-1, -1};
};

class Unread : public LevelTest {
 protected:
  // The call itself ends at once; its receipt goes to descriptor `number`, which is full.
  Strings Words(const std::string& receipt) const {
    return {CofferPath(), "run", "--level",   level(), "--receipt",
            receipt,      "--",  ProbePath(), "args",  "it-ran"};
  }
  static RunOptions WithDescriptor(const FullPipe& pipe, int number) {
    RunOptions options;
    options.in_child = [fd = pipe.write_end(), number] { dup2(fd, number); };
    return options;
  }
};

TEST_P(Unread, SigtermEndsTheWaitForTheReceiptsReader) {
  for (const auto& [number, name] : {std::pair{3, "/dev/fd/3"}, {2, "-"}, {2, "/dev/stderr"}}) {
    const FullPipe pipe;
    Background run(Words(name), WithDescriptor(pipe, number));
    ASSERT_TRUE(run.WaitForOutput("it-ran")) << run.err();
    EXPECT_FALSE(WaitUntil([&] { return run.ended(); }, Seconds(0.2))) << "it does wait";
    run.Signal(SIGTERM);
    const RunResult result = run.Wait(kAtOnce);
    EXPECT_FALSE(result.timed_out) << name;
    EXPECT_EQ(result.signal, SIGTERM) << name << "\n" << result.Describe();
  }
}

TEST_P(Unread, AReaderThatComesLateGetsIt) {
  const FullPipe pipe;
  Background run(Words("/dev/fd/3"), WithDescriptor(pipe, 3));
  ASSERT_TRUE(run.WaitForOutput("it-ran")) << run.err();
  EXPECT_TRUE(pipe.Delivers("\"signature\": null"));
  EXPECT_EQ(run.Wait(kAtOnce).exit, 0);
}

// A program that writes until it is told to end leaves output behind that its reader does not take.
TEST_P(Unread, OneSigtermEndsAProgramWhoseOutputNobodyReads) {
  const FullPipe pipe;
  Background run({CofferPath(), "run", "--level", level(), "--", "yes"}, WithDescriptor(pipe, 1));
  EXPECT_FALSE(WaitUntil([&] { return run.ended(); }, Seconds(1))) << "it does wait";
  run.Signal(SIGTERM);
  const RunResult result = run.Wait(kAtOnce);
  EXPECT_FALSE(result.timed_out) << result.Describe();
}

INSTANTIATE_TEST_SUITE_P(Level, Unread, ::testing::Values("container", "process"), LevelTestName);

TEST(UnreadCall, SigtermEndsAToolWhoseOutputNobodyReads) {
  TempDir dir;
  const FullPipe pipe;
  RunOptions options;
  options.in_child = [&] { dup2(pipe.write_end(), 1); };
  Background call({CofferPath(), "call", "python", "--state", dir / "s", "--args",
                   R"j({"code":"print('x' * 100000)"})j"},
                  options);
  EXPECT_FALSE(WaitUntil([&] { return call.ended(); }, Seconds(0.7))) << "it does wait";
  call.Signal(SIGTERM);
  EXPECT_FALSE(call.Wait(kAtOnce).timed_out);
}

// A receipt in a directory that the payload may write could be kept from being written, so the call is refused.
TEST(ReceiptInAWritableDirectory, IsRefusedBeforeAnythingRuns) {
  TempDir dir;
  const std::string shared = dir.MakeDir("shared", 0777);
  const std::vector<std::string> command = {"python3", "-c", "open('/shared/ran', 'w')"};
  RunOptions options;
  options.receipt = dir.path() + "/receipt.json";
  const RunResult control = RunCoffer({"--rw", shared + ":/shared"}, command, options);
  EXPECT_EQ(control.exit, 0) << control.Describe();
  ASSERT_TRUE(Exists(shared + "/ran"));
  std::filesystem::remove(shared + "/ran");

  options.receipt = shared + "/receipt.json";
  const RunResult refused = RunCoffer({"--rw", shared + ":/shared"}, command, options);
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_EQ(refused.ErrorClass(), "policy.receipt");
  EXPECT_FALSE(Exists(shared + "/ran"));
}

}  // namespace
}  // namespace coffer::test
