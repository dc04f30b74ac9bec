// SPDX-License-Identifier: Apache-2.0
//
// Manifests that several tests start from.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "policy/manifest/parse.h"

namespace coffer::policy {

// Six lines.
inline constexpr std::string_view kSmallest = R"([tool]
name = "x"
version = "1"
[run]
runtime = "sh"
argv = ["cat"]
)";

// For putting text behind it. Not inlined: g++ 12 then warns about bounds that are kept.
[[gnu::noinline]] inline std::string SmallestText() { return std::string(kSmallest); }

// Every key that is not dangerous.
inline constexpr std::string_view kEverything = R"([tool]
name    = "invoice-report"
version = "1.2.0"
owner   = "billing-platform"
summary = "Summarise the invoices of one customer."
effect  = "reversible"
[input.schema]
type = "object"
required = ["code", "file"]
properties.code = { type = "string", maxLength = 65536 }
properties.file = { type = "string" }
properties.lines = { type = "integer" }
properties.mood = { type = "string" }
[run]
runtime = "python3"
argv = ["python3", "-I", ["-n", "{lines}"], "-", "{file}"]
env = { LANG = "C.UTF-8", MOOD = "{mood}" }
stdin = "{code}"
cwd = "/data"
[run.paths]
file = { mount = "/data", mode = "read" }
[isolation]
level = "container"
floor = ["userns", "netns", "seccomp", "landlock", "cgroup-memory"]
syscalls = "strict"
[limits]
cpu = "11s"
wall = "31s"
memory = "300MiB"
processes = 33
open_files = 101
disk = "101MiB"
inodes = 77
tmp = "17MiB"
connections = 16
io = "2GiB"
output = "2MiB"
[files]
workspace = "session-read"
[[files.mount]]
host = "/srv/invoices"
at = "/data"
mode = "read"
[[files.mount]]
host = "/srv/drafts"
at = "/drafts"
mode = "staged"
[[network.allow]]
host = "api.example.com"
ports = [443]
methods = ["GET"]
paths = ["/v1/invoices/**"]
rate = "10/s"
[[credentials]]
name = "billing"
scope = "invoices:read"
hosts = ["api.example.com"]
header = "Authorization: Bearer {}"
[approval]
when = "diff"
approvers = ["role:billing-oncall"]
quorum = 2
expires = "20m"
window = "0s"
[output]
schema = { type = "object" }
[rate]
calls = ["10/s"]
burst = 5
concurrency = 4
[[examples.allow]]
args = { code = "1", file = "a.txt" }
why = "a small program"
[[examples.deny]]
args = { code = "" }
why = "nothing to run"
)";

inline Manifest MustParse(std::string_view text) {
  ParsedManifest parsed = ParseManifest(text, "f");
  for (const Mistake& mistake : parsed.mistakes) {
    ADD_FAILURE() << FormatMistake("f", mistake);
  }
  return parsed.manifest ? std::move(*parsed.manifest) : Manifest();
}

}  // namespace coffer::policy
