// SPDX-License-Identifier: Apache-2.0
//
// Any text as a manifest: no crash; mistakes are in order, inside the file and safe to print; what is accepted has a
// stable hash, grants nothing broad without saying so, and its own first example, as arguments, makes a call or a
// refusal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "policy/blast_radius.h"
#include "policy/manifest/diff.h"
#include "policy/manifest/hash.h"
#include "policy/manifest/parse.h"
#include "policy/narrowing.h"
#include "policy/tool.h"

namespace {

using namespace coffer::policy;

void Require(bool good, const char* what) {
  if (!good) {
    std::fprintf(stderr, "not so: %s\n", what);
    std::abort();
  }
}

void CheckMistakes(const std::vector<Mistake>& mistakes, std::string_view text) {
  const auto lines = static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  Position last;
  for (const Mistake& mistake : mistakes) {
    Require(last <= mistake.at, "mistakes in order");
    Require(mistake.at.line >= 1 && mistake.at.line <= lines, "a line of the file");
    last = mistake.at;
    for (const char c : FormatMistake("f", mistake)) {
      Require(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f,
              "a message that is safe to print");
    }
  }
}

void CheckGrants(const Manifest& manifest) {
  for (const FileMount& mount : manifest.mounts) {
    Require(mount.host.starts_with("/") && mount.host.find("/../") == std::string::npos,
            "a clean path");
    Require(mount.dangerous || !OverBroadReason(mount.host), "a broad mount that says nothing");
    Require(!mount.dangerous || !manifest.dangers.empty(), "a danger without a reason");
  }
  for (const NetworkRule& rule : manifest.network) {
    Require(rule.any_host != !rule.host.empty(), "a rule for some host");
    Require(!rule.any_host || rule.dangerous, "any host, and nothing said");
    Require(!rule.paths.empty() && !rule.ports.empty(), "an empty list");
    const bool seen = rule.tls == TlsMode::kIntercept || rule.tls == TlsMode::kPlain;
    Require(seen != rule.methods.empty(), "methods where nothing is seen, or none where it is");
  }
  for (const Danger& danger : manifest.dangers) {
    Require(!danger.reason.empty(), "a reason");
  }
}

void CheckCall(const Manifest& manifest, const coffer::Json& args) {
  const coffer::Result<ToolCall> call = MakeToolCall(manifest, args, {"/s"});
  if (!call.ok()) {
    Require(call.error().kind == coffer::ErrorKind::kRefused, "a refusal that is none");
    return;
  }
  Require(!call->command.empty(), "a program");
  for (const std::string& word : call->command) {
    Require(word.find('\0') == std::string::npos, "a NUL in a word");
  }
  const coffer::Result<Envelope> both = Intersect(call->envelope, call->envelope);
  Require(both.ok() && Covers(call->envelope, *both), "wider than itself");
  Require(!Sentence(ComputeBlastRadius(call->envelope, manifest.network, {}, manifest.tool.effect))
               .empty(),
          "a sentence");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ParsedManifest parsed = ParseManifest(text, "f");
  Require(parsed.manifest.has_value() == parsed.mistakes.empty(), "a manifest or mistakes");
  CheckMistakes(parsed.mistakes, text);
  CheckMistakes(LoadTool(text, "f", {}).mistakes, text);
  if (!parsed.manifest) {
    return 0;
  }
  const Manifest& manifest = *parsed.manifest;
  CheckGrants(manifest);
  const ParsedManifest again = ParseManifest(text, "g");
  Require(ManifestHash(manifest) == ManifestHash(*again.manifest), "the same hash");
  Require(DiffManifests(manifest, *again.manifest).empty(), "no difference");
  CheckCall(manifest, coffer::Json::object());
  if (!manifest.allow_examples.empty()) {
    const coffer::Result<coffer::Json> args =
        coffer::ParseJson(manifest.allow_examples.front().args);
    Require(args.ok(), "an example that is JSON");
    CheckCall(manifest, *args);
  }
  return 0;
}
