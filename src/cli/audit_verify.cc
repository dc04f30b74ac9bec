// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit verify` and `verify-receipt`.
#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "audit/log/verify_log.h"
#include "audit/log/verify_store.h"
#include "audit/seal.h"
#include "base/json.h"
#include "base/print.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "call/recorder.h"
#include "cli/verb_audit.h"
#include "store/state_part.h"
#include "store/store.h"

namespace coffer::cli {
namespace {

// A file that the caller named. A name that is wrong is the caller's mistake, not the host's.
Result<std::string> ReadNamed(const std::string& path, size_t limit, std::string hint) {
  Result<std::string> text = sys::ReadRegular(path, limit);
  const int number = text.ok() ? 0 : text.error().sys_errno;
  if (number == ENOENT || number == ENOTDIR || number == EACCES || number == ELOOP) {
    return Refused("policy.path", text.error().message, std::move(hint));
  }
  return text;
}

Result<audit::PublicKey> ReadKey(const std::string& path) {
  TRY_ASSIGN(const std::string text,
             ReadNamed(path, 4096, "`coffer audit key` prints the public key"));
  return audit::PublicKey::Parse(text);
}

Json FindingJson(const audit::LogFinding& finding) {
  return {{"line", finding.line != 0 ? Json(finding.line) : Json(nullptr)},
          {"seq", finding.seq ? Json(*finding.seq) : Json(nullptr)},
          {"code", finding.code},
          {"message", finding.message}};
}

std::string FindingText(const audit::LogFinding& finding) {
  std::string where;
  if (finding.line != 0) {
    where += fmt::format("line {}: ", finding.line);
  }
  if (finding.seq) {
    where += fmt::format("record {}: ", *finding.seq);
  }
  return fmt::format("{}{} ({})\n", where, Printable(finding.message), finding.code);
}

// Nothing is wrong there: a crash leaves this. So would an attacker who edits rows of such calls.
std::string NotesText(const audit::LogVerdict& verdict) {
  std::string text;
  for (const audit::LogFinding& note : verdict.notes) {
    text += "note: " + FindingText(note);
  }
  return text;
}

// Calls of dead processes were just ended by opening the store: they get their receipts, as
// everywhere, or they would look like calls that were hidden from the log. A log that cannot be
// opened is left to the verification.
Status SettleDead(store::Store& store, const std::string& directory) {
  if (store.recovered().empty()) {
    return {};
  }
  Result<audit::Log> log = call::OpenLog(store, directory);
  if (!log.ok()) {
    return {};
  }
  call::Recorder recorder(store, *log);
  TRY(recorder.UseKnownReceivers());
  return recorder.Settle(store.recovered());
}

// A user who can edit the log can usually edit the key beside it.
std::string KeyWords(const call::VerbFlags& flags, const std::string& directory,
                     const std::string& key_id) {
  if (flags.Has("--key")) {
    return fmt::format("      the key is {}, from {}\n", key_id, Printable(flags.Value("--key")));
  }
  return fmt::format(
      "      the key is {}, from {}/key.pub, beside the log: a user who can change both can make "
      "any log look good.\n      Keep a copy of the key elsewhere, and give it with --key FILE\n",
      key_id, Printable(directory));
}

}  // namespace

// Findings are an answer, not a failure of ours: printed, and told by the exit status.
void ExitWithFindings(const std::string& text) {
  constexpr int kFound = 1;
  PrintOut(text);
  ::_exit(kFound);
}

Result<std::string> AuditVerify(const call::VerbFlags& flags) {
  audit::VerifyOptions options;
  std::string directory = flags.Value("--log");
  std::optional<store::Store> store;
  if (directory.empty()) {
    TRY_ASSIGN(const std::string state, flags.StateDir());
    directory = state + "/log";
    TRY(store::CheckStatePart(state, "log"));
    if (!flags.Has("--log-only") && ::access((state + "/coffer.db").c_str(), F_OK) == 0) {
      TRY_ASSIGN(store::Store opened, store::Store::Open(state));
      store.emplace(std::move(opened));
      TRY(SettleDead(*store, directory));
    }
  }
  if (flags.Has("--key")) {
    TRY_ASSIGN(options.key, ReadKey(flags.Value("--key")));
  }
  if (flags.Has("--checkpoint")) {
    TRY_ASSIGN(options.kept_checkpoint,
               ReadNamed(flags.Value("--checkpoint"), 65536,
                         "`coffer audit checkpoint` prints the newest one"));
  }
  std::optional<audit::StoreCheck> check;
  if (store) {
    check.emplace(*store, directory);
    options.on_record = [&](const audit::LeafFacts& facts) {
      check->Note(facts);
      return std::optional<audit::LogFinding>();
    };
  }
  TRY_ASSIGN(audit::LogVerdict verdict, audit::VerifyLog(directory, options));
  if (check) {
    TRY(check->Finish(verdict));
  }
  if (flags.json()) {
    Json findings = Json::array();
    for (const audit::LogFinding& finding : verdict.findings) {
      findings.push_back(FindingJson(finding));
    }
    Json notes = Json::array();
    for (const audit::LogFinding& note : verdict.notes) {
      notes.push_back(FindingJson(note));
    }
    const std::string text =
        PrintJson(Json{{"ok", verdict.ok()},
                       {"origin", verdict.origin},
                       {"key_id", verdict.key_id},
                       {"key_from", flags.Has("--key") ? "given" : "beside the log"},
                       {"records", verdict.records},
                       {"checkpoints", verdict.checkpoints},
                       {"size", verdict.size},
                       {"root", verdict.root},
                       {"calls_compared", check ? Json(check->compared()) : Json(nullptr)},
                       {"findings", std::move(findings)},
                       {"notes", std::move(notes)}},
                  2) +
        "\n";
    if (!verdict.ok()) {
      ExitWithFindings(text);
    }
    return text;
  }
  if (!verdict.ok()) {
    std::string text;
    for (const audit::LogFinding& finding : verdict.findings) {
      text += FindingText(finding);
    }
    text += fmt::format("\nNOT GOOD: {}{} findings in {} records of {}\n", verdict.findings.size(),
                        verdict.more_findings ? " or more" : "", verdict.records,
                        Printable(verdict.origin));
    text += KeyWords(flags, directory, verdict.key_id);
    text += NotesText(verdict);
    ExitWithFindings(text);
  }
  std::string text =
      fmt::format("good: {} records, {} checkpoints, root {}, of {}\n", verdict.records,
                  verdict.checkpoints, verdict.root, verdict.origin);
  text += KeyWords(flags, directory, verdict.key_id);
  text += check ? fmt::format(
                      "      the rows, results and receipts of {} calls match their seals, "
                      "and every call has its record\n",
                      check->compared())
                : "      the store was not compared\n";
  text += NotesText(verdict);
  if (options.kept_checkpoint) {
    text += "      and it continues the checkpoint that was kept\n";
  }
  return text;
}

Result<std::string> AuditVerifyReceipt(const call::VerbFlags& flags) {
  if (!flags.Has("--key")) {
    return Refused("policy.usage", "verify-receipt needs --key FILE",
                   "`coffer audit key` prints the public key");
  }
  TRY_ASSIGN(const std::string receipt,
             ReadNamed(flags.words()[1], 64 << 20,
                       "`coffer run --receipt FILE` writes one, `coffer audit show CALL --json` "
                       "prints one"));
  TRY_ASSIGN(const audit::PublicKey key, ReadKey(flags.Value("--key")));
  const Status verified = audit::VerifyReceipt(receipt, key);
  if (!verified.ok()) {
    if (flags.json()) {
      ExitWithFindings(PrintJson(Json{{"ok", false}, {"message", verified.error().message}}) +
                       "\n");
    }
    ExitWithFindings("NOT GOOD: " + verified.error().message + "\n");
  }
  return flags.json()
             ? PrintJson(Json{{"ok", true}, {"key_id", key.id()}}) + "\n"
             : fmt::format("good: sealed by key {}, and nothing was changed since\n", key.id());
}

}  // namespace coffer::cli
