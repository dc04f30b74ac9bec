// SPDX-License-Identifier: Apache-2.0
#include "cli/foreign_flags.h"

namespace coffer::cli {
namespace {

struct Foreign {
  std::string_view flag;
  std::string_view own;
};

constexpr std::string_view kMount = "--ro PATH[:AT] or --rw PATH[:AT]";
constexpr Foreign kForeign[] = {
    {"--timeout", "--wall TIME"},
    {"--volume", kMount},
    {"-v", kMount},
    {"--mount", kMount},
    {"--bind", kMount},
    {"--ro-bind", kMount},
    {"--dir", kMount},
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
};

}  // namespace

std::string_view OwnFlagFor(std::string_view flag) {
  for (const Foreign& foreign : kForeign) {
    if (foreign.flag == flag) {
      return foreign.own;
    }
  }
  return {};
}

}  // namespace coffer::cli
