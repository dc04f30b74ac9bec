// SPDX-License-Identifier: Apache-2.0
//
// Runs that offer tools to their command (`coffer run --tools`), with a state directory and manifests of the test's own.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/host.h"

namespace coffer::test {

// The manifest of a tool that runs `script` with bash; `more` is TOML that follows. Its one argument is `word`, which is $1.
inline std::string BashToolText(const std::string& name, const std::string& script,
                                const std::string& more = "") {
  return "[tool]\nname = \"" + name +
         "\"\nversion = \"1.0.0\"\nowner = \"tests\"\nsummary = \"For a test.\"\n"
         "effect = \"reversible\"\n"
         "[input.schema]\ntype = \"object\"\n"
         "properties.word = { type = \"string\", maxLength = 65536 }\n"
         "[run]\nruntime = \"bash\"\nargv = [\"bash\", \"-c\", '''" +
         script + "''', \"" + name + "\", [\"{word}\"]]\n[isolation]\nlevel = \"container\"\n" +
         more +
         "[[examples.allow]]\nargs = {}\nwhy = \"any\"\n"
         "[[examples.deny]]\nargs = { a = 1 }\nwhy = \"not declared\"\n";
}

// The same for a tool whose calls cannot be taken back, so that each needs a key.
inline std::string IrreversibleToolText(const std::string& name, const std::string& script,
                                        const std::string& more = "") {
  std::string text = BashToolText(name, script, "[approval]\nwhen = \"never\"\n" + more);
  const std::string effect = "\"reversible\"";
  return text.replace(text.find(effect), effect.size(), "\"irreversible\"");
}

// Python that has `ask(method, params)`, `call(tool, **args)` and `connect()`.
inline const std::string kPythonInside = R"(
import json, os, socket, sys, time
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    for _ in range(200):
        try:
            s.connect(os.environ["COFFER_TOOLS_SOCKET"])
            return s
        except BlockingIOError:  # a full queue, for a socket with a timeout
            time.sleep(0.1)
    raise TimeoutError("connect")
def line(method, params, id=1):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": META}}).encode() + b"\n"
def ask(method, params, s=None):
    s = s or connect()
    s.sendall(line(method, params))
    return json.loads(s.makefile("rb").readline())
def call(tool, **args):
    answer = ask("tools/call", {"name": tool, "arguments": args})
    return answer["result"]["structuredContent"] if "result" in answer else answer["error"]
)";

class ToolsInside : public HostWatchTest {
 protected:
  // BashToolText among the manifests.
  void Declare(const std::string& name, const std::string& script, const std::string& more = "") {
    manifests_.Write(name + ".toml", BashToolText(name, script, more));
  }

  // The manifests are in a directory of their own: a directory that a run may write cannot hold them.
  Strings Offer(const std::string& tools, const Strings& flags = {}) {
    Strings all = {"--state", state_, "--tools", tools, "--tools-dir", manifests_.path()};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  RunResult Run(const std::string& tools, const Strings& flags, const Strings& command,
                const RunOptions& options = {}) {
    return RunCoffer(Offer(tools, flags), command, options);
  }
  RunResult RunBash(const std::string& tools, const std::string& script,
                    const Strings& flags = {}) {
    return Run(tools, flags, {"bash", "-c", script});
  }
  // kPythonInside before it.
  RunResult RunPython(const std::string& tools, const std::string& script,
                      const Strings& flags = {}) {
    return Run(tools, flags, {"python3", "-c", kPythonInside + script});
  }

  RunResult Audit(Strings words) {
    words.insert(words.begin(), {CofferPath(), "audit"});
    words.insert(words.end(), {"--state", state_});
    return RunProgram(words);
  }
  // As `coffer audit list` has them, the newest first.
  Json Calls() { return Json::parse(Audit({"list", "--json"}).out).at("calls"); }

  TempDir dir_;
  TempDir manifests_;
  std::string state_ = dir_ / "state";
};

}  // namespace coffer::test
