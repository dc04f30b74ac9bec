// SPDX-License-Identifier: Apache-2.0
#include "policy/manifest/starter.h"

namespace coffer::policy {
namespace {

constexpr std::string_view kStarter =
    R"~(# A tool, declared. `coffer tools check FILE` says what is wrong with it; `coffer help manifest` describes every key.
# What is not granted here is refused: no files, no network, no credentials, small limits.
[tool]
name    = "@NAME@"
version = "0.1.0"
owner   = "your-team"               # who answers for it
summary = "Say what it does in one sentence; agents read this."
effect  = "read-only"               # read-only | reversible | irreversible | privileged; missing counts as irreversible

[input.schema]                      # JSON Schema 2020-12; a parameter that is not declared is refused
type = "object"
required = ["text"]
properties.text = { type = "string", minLength = 1, maxLength = 65536, description = "What to work on." }
# properties.file = { type = "string", maxLength = 1024, description = "Relative, such as notes/a.txt." }

[run]
runtime = "python3"                 # the only thing that is executable inside; `coffer runtimes` lists them
# Words are literal, or a whole parameter: "{text}". No shell, no splitting. {{ and }} are braces that mean themselves.
# A group is left out when its parameter was not given: ["-n", "{lines}"]. "{names...}" is one word for each element.
argv = ["python3", "-I", "-c", "import sys; print(sys.stdin.read().upper(), end='')"]
stdin = "{text}"                    # or "{@args}": all arguments as one line of JSON
# env = { LANG = "C.UTF-8" }
# cwd = "/workspace"

# [run.paths]                       # parameters that name files: resolved beneath a place, or refused
# file = { mount = "/data", mode = "read" }

[isolation]
level = "container"
# floor = ["netns", "seccomp", "landlock", "cgroup-memory"]   # refuse to run without these
# syscalls = "strict"               # strict | default | compat

[limits]                            # what the work needs and a little more
cpu = "5s"
wall = "10s"
memory = "128MiB"
processes = 16
disk = "16MiB"
output = "256KiB"

# [files]
# workspace = "session-read"        # fresh | session-read | session-write

# [[files.mount]]
# host = "/srv/reports"             # never a whole tree such as /, /home or /etc
# at   = "/data"
# mode = "read"                     # read | staged | write

# [rate]
# calls = ["10/s", "1000/h"]
# concurrency = 4

[[examples.allow]]                  # checked whenever the manifest is loaded
args = { text = "hello" }
why  = "the common case"

[[examples.deny]]
args = { text = "" }
why  = "nothing to work on"

[[examples.deny]]
args = { text = "hello", shell = "id" }
why  = "a parameter that the schema does not declare"
)~";

}  // namespace

std::string StarterManifest(std::string_view name) {
  static constexpr std::string_view kSlot = "@NAME@";
  std::string text(kStarter);
  text.replace(text.find(kSlot), kSlot.size(), name);
  return text;
}

}  // namespace coffer::policy
