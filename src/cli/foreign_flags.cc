// SPDX-License-Identifier: Apache-2.0
#include "cli/foreign_flags.h"

#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "cli/run_flags.h"
#include "policy/manifest/mistake.h"

namespace coffer::cli {
namespace {

struct Foreign {
  std::string_view flag;
  std::string_view own;
};

constexpr std::string_view kMount = "--ro PATH[:AT] or --rw PATH[:AT]";
constexpr Foreign kForeign[] = {
    {"--timeout", "--wall TIME"},
    {"--time", "--wall TIME"},
    {"--volume", kMount},
    {"-v", kMount},
    {"--mount", kMount},
    {"--bind", kMount},
    {"--ro-bind", kMount},
    {"--dir", kMount},
    {"--readonly", "--ro PATH[:AT]"},
    {"--read-only", "--ro PATH[:AT]"},
    {"--network", "--allow HOST"},
    {"--net", "--allow HOST"},
    {"--allow-net", "--allow HOST"},
    {"--share-net", "--allow HOST"},
    {"--workdir", "--cwd PATH"},
    {"--chdir", "--cwd PATH"},
    {"-w", "--cwd PATH"},
    {"--user", "--uid N"},
    {"-e", "--env K=V"},
    {"--setenv", "--env K=V"},
    {"-it", "--tty"},
    {"-t", "--tty"},
    {"--interactive", "--tty"},
    {"-p", "--publish PORT"},
    {"--mem", "--memory SIZE"},
    {"-m", "--memory SIZE"},
    {"--pids-limit", "--processes N"},
    {"--ulimit", "--processes N, --open-files N and the like"},
    {"-q", "--quiet"},
    {"--silent", "--quiet"},
    {"--verbose", "--trace"},
    {"--shell", "-- sh -c 'LINE', or coffer shell"},
};

// What needs no flag, or does not exist.
struct Needless {
  std::string_view flag;
  std::string_view hint;
};
constexpr std::string_view kNoNetwork =
    "leave it out: no network is the default; --allow HOST opens one host";
constexpr Needless kNeedless[] = {
    {"--rm", "leave it out: nothing of a call stays but what it wrote to --rw, --out or --project"},
    {"--no-network", kNoNetwork},
    {"--no-net", kNoNetwork},
    {"--unshare-net", kNoNetwork},
    {"--image", "there are no images: the programs of this host are shown; --runtime narrows them"},
    {"--dry-run", "there is none; `coffer doctor` looks at this host, --trace shows each step"},
};

// "did you mean --wall TIME?" for "--timeout", or why "--rm" is not needed; empty for an unknown flag.
std::string HintForForeignFlag(std::string_view flag) {
  for (const Foreign& foreign : kForeign) {
    if (foreign.flag == flag) {
      return fmt::format("did you mean {}?", foreign.own);
    }
  }
  for (const Needless& needless : kNeedless) {
    if (needless.flag == flag) {
      return std::string(needless.hint);
    }
  }
  return {};
}

}  // namespace

Error UnknownRunFlag(std::string_view flag) {
  std::vector<std::string_view> known = RunFlagNames();
  known.push_back("--port");  // of `coffer sessions start`
  const std::string foreign = HintForForeignFlag(flag);
  const std::string_view nearest =
      foreign.empty() ? policy::NearestWord(flag, known) : std::string_view();
  return Refused(
      "policy.usage", fmt::format("there is no flag called {}", Printable(flag)),
      !foreign.empty() ? foreign
      : nearest.empty()
          ? "`coffer run --help` lists the flags; the command's own go after the file or after --"
          : fmt::format("did you mean {}?", nearest));
}

}  // namespace coffer::cli
