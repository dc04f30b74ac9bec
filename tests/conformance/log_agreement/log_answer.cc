// SPDX-License-Identifier: Apache-2.0
//
// Our own verifier, for a program that compares it with another one.
//
//   log_answer make DIRECTORY SEED   makes log/, receipts/N.json and forged/NAME/ there; forged ones must be found bad
//   log_answer verify                reads lines "log DIRECTORY [CHECKPOINT]" or "receipt FILE KEY", answers "good",
//                                    "bad CODE..." or "unreadable" to each
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "audit/log/log.h"
#include "audit/log/verify_log.h"
#include "audit/receipt.h"
#include "audit/seal.h"
#include "tests/unit/audit/log/forged_log.h"

namespace coffer::audit {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "log_answer: %s\n", result.error().message.c_str());
    std::exit(3);
  }
  return std::move(result).value();
}

std::string SomeText(std::mt19937& random) {
  static const std::vector<std::string> kTexts = {"bot",
                                                  "a \"quoted\" one\\",
                                                  "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x9a\xa2",
                                                  "tab\tline\nbell\x07\x1f\x7f",
                                                  "",
                                                  "not utf-8: \xff\xfe",
                                                  std::string("nul\0inside", 10),
                                                  "sha256:" + std::string(64, 'a')};
  return kTexts[random() % kTexts.size()];
}

Receipt SomeReceipt(std::mt19937& random, const std::string& call) {
  Receipt receipt;
  receipt.identity.call_id = call;
  receipt.identity.agent = "b\xc3\xb6t";
  receipt.identity.user = "uid:1000";
  receipt.identity.tool = "python";
  receipt.outcome = "success";
  receipt.duration = Nanos(static_cast<int64_t>(random()) * 1000);
  receipt.requested_at = receipt.started_at = receipt.finished_at =
      Nanos(1'700'000'000'000'000'000);
  receipt.exit_code = static_cast<int>(random() % 256);
  receipt.steps_us = {{"clone", random() % 1000}, {"exec", random() % 1000}};
  receipt.denials.push_back(
      {"isolation", "syscall", "unshare(CLONE_NEWUSER)", "seccomp.default", "no", "", 3});
  return receipt;
}

// One call: its decision, its receipt, and the sealed receipt as a file.
void OneCall(Log& log, std::mt19937& random, int number, const std::string& receipts) {
  const std::string call = "call-" + std::to_string(number);
  const bool ran = random() % 4 != 0;
  if (ran) {
    DecisionRecord decision = ForgedLog::Decision(call);
    decision.identity.tool = SomeText(random);
    decision.identity.agent = SomeText(random);
    decision.identity.user = SomeText(random);
    Must(log.Append(decision));
  }
  if (random() % 5 == 0) {
    EventRecord event;
    event.name = "switch.on";
    event.tenant = SomeText(random);
    event.detail = {{"why", SomeText(random)}, {"count", -static_cast<int64_t>(random())}};
    Must(log.Append(event));
  }
  const std::string text = FormatReceipt(SomeReceipt(random, call));
  ReceiptRecord record = ForgedLog::Receipt(call, ran);
  record.error_class = SomeText(random);
  const ReceiptBody body = Must(MakeBody(text));
  record.body = body.hash;
  const Appended at = Must(log.Append(record));
  Write(receipts + "/" + std::to_string(number) + ".json", Must(SealReceipt(body, at, log)));
}

int Make(const std::string& directory, unsigned seed) {
  std::filesystem::create_directories(directory + "/receipts");
  {
    LogOptions options;
    options.fsync = false;
    Log log = Must(Log::Open(directory + "/log", options));
    // Two threads, so that some batches hold more than one record.
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(seed * 2 + t);
        for (int i = 0; i < 8; ++i) {
          OneCall(log, random, static_cast<int>(t) * 8 + i, directory + "/receipts");
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    Write(directory + "/checkpoint", Must(log.Checkpoint()));
  }
  using F = ForgedLog;
  const std::string forged = directory + "/forged/";
  F().Add(F::Decision("c")).Add(F::Receipt("c", true)).Sign().WriteTo(forged + "good-call");
  F().Add(F::Receipt("c", false)).Sign().WriteTo(forged + "good-refused");
  F().Add(F::Decision("c"))
      .Add(F::Receipt("c", true))
      .Add(F::Receipt("c", true, true))
      .Sign()
      .WriteTo(forged + "good-recovered");
  F().Leaf(
         R"({"at":-5,"detail":{},"extra":true,"kind":"event","name":"\u001f\"\n","seq":0,"tenant":null,"v":1})")
      .Sign()
      .WriteTo(forged + "good-odd");
  F().WriteTo(forged + "good-empty");
  F().Add(F::Receipt("c", true)).Sign().WriteTo(forged + "no-decision");
  F().Add(F::Receipt("c", true)).Add(F::Decision("c")).Sign().WriteTo(forged + "late-decision");
  F().Add(F::Decision("c", "a"))
      .Add(F::Receipt("c", true, false, "b"))
      .Sign()
      .WriteTo(forged + "decision-of-another-tenant");
  F().Add(F::Decision("c"))
      .Add(F::Receipt("c", true))
      .Add(F::Receipt("c", true))
      .Sign()
      .WriteTo(forged + "two-receipts");
  F().AddAs(F::Decision("c"), 1).Sign().WriteTo(forged + "gap");
  F().AddAs(F::Decision("c"), 0).AddAs(F::Decision("d"), 0).Sign().WriteTo(forged + "twice");
  F().Add(F::Decision("c")).WriteTo(forged + "tail");
  F().Add(F::Decision("c")).Sign([](Checkpoint& c) { c.size = 2; }).WriteTo(forged + "size");
  F().Add(F::Decision("c"))
      .Sign([](Checkpoint& c) { c.root[5] ^= 1; })
      .Add(F::Decision("d"))
      .Sign()
      .WriteTo(forged + "old-root");
  F().Add(F::Decision("c"))
      .Sign([](Checkpoint& c) { c.prev[5] ^= 1; })
      .Add(F::Decision("d"))
      .Sign()
      .WriteTo(forged + "old-chain");
  F().Add(F::Decision("c")).Sign().Sign().WriteTo(forged + "checkpoint-twice");
  F().Raw("\n").Add(F::Decision("c")).Sign().WriteTo(forged + "empty-line");
  F().Raw("# a comment\n").Add(F::Decision("c")).Sign().WriteTo(forged + "comment");
  const std::vector<std::pair<std::string, std::string>> leaves = {
      {"space", R"({"at":1, "detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"order", R"({"detail":{},"at":1,"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"double-member",
       R"({"at":1,"at":1,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"float", R"({"at":1.0,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"exponent",
       R"({"at":1e3,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"minus-zero",
       R"({"at":-0,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"zeroes", R"({"at":01,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"huge",
       R"({"at":9223372036854775808,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"text-seq",
       R"({"at":1,"detail":{},"kind":"event","name":"x","seq":"0","tenant":null,"v":1})"},
      {"version", R"({"at":1,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":2})"},
      {"text-version",
       R"({"at":1,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":"1"})"},
      {"kind", R"({"at":1,"detail":{},"kind":"other","name":"x","seq":0,"tenant":null,"v":1})"},
      {"array", R"({"at":1,"detail":[],"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"deep",
       R"({"at":1,"detail":{"a":{}},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"long-escape",
       R"({"at":1,"detail":{},"kind":"event","name":"\u0041","seq":0,"tenant":null,"v":1})"},
      {"upper-escape",
       R"({"at":1,"detail":{},"kind":"event","name":"\u001F","seq":0,"tenant":null,"v":1})"},
      {"slash", R"({"at":1,"detail":{},"kind":"event","name":"\/","seq":0,"tenant":null,"v":1})"},
      {"letter-escape",
       R"({"at":1,"detail":{},"kind":"event","name":"\u000a","seq":0,"tenant":null,"v":1})"},
      {"utf8",
       "{\"at\":1,\"detail\":{},\"kind\":\"event\",\"name\":\"\xff\",\"seq\":0,\"tenant\":null,"
       "\"v\":1}"},
      {"overlong",
       "{\"at\":1,\"detail\":{},\"kind\":\"event\",\"name\":\"\xc0\x80\",\"seq\":0,\"tenant\":null,"
       "\"v\":1}"},
      {"surrogate",
       "{\"at\":1,\"detail\":{},\"kind\":\"event\",\"name\":\"\xed\xa0\x80\",\"seq\":0,\"tenant\":"
       "null,\"v\":1}"},
      {"member-name",
       R"({"At":1,"at":1,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1})"},
      {"no-tenant", R"({"at":1,"detail":{},"kind":"event","name":"x","seq":0,"v":1})"},
      {"carriage-return",
       "{\"at\":1,\"detail\":{},\"kind\":\"event\",\"name\":\"x\",\"seq\":0,\"tenant\":null,\"v\":"
       "1}\r"},
      {"behind", R"({"at":1,"detail":{},"kind":"event","name":"x","seq":0,"tenant":null,"v":1}{})"},
      {"ran",
       R"({"at":1,"body":null,"call":"c","class":null,"kind":"receipt","outcome":"x","ran":0,"seq":0,"tenant":null,"v":1})"},
      {"no-call", R"({"at":1,"decision":"allow","kind":"decision","seq":0,"tenant":null,"v":1})"},
      {"long", R"({"at":1,"detail":{},"kind":"event","name":")" + std::string(65'536, 'x') +
                   R"(","seq":0,"tenant":null,"v":1})"},
  };
  for (const auto& [name, leaf] : leaves) {
    F().Leaf(leaf).Sign().WriteTo(forged + "leaf-" + name);
  }
  return 0;
}

std::string AnswerLog(const std::string& directory, const std::string& kept) {
  VerifyOptions options;
  if (!kept.empty()) {
    options.kept_checkpoint = Read(kept);
  }
  const Result<LogVerdict> verdict = VerifyLog(directory, options);
  if (!verdict.ok()) {
    return "unreadable";
  }
  std::set<std::string> codes;
  for (const LogFinding& finding : verdict->findings) {
    codes.insert(finding.code);
  }
  std::string answer = verdict->ok() ? "good" : "bad";
  for (const std::string& code : codes) {
    answer += " " + code;
  }
  return answer;
}

std::string AnswerReceipt(const std::string& file, const std::string& key_file) {
  const Result<PublicKey> key = PublicKey::Parse(Read(key_file));
  if (!key.ok()) {
    return "unreadable";
  }
  return VerifyReceipt(Read(file), *key).ok() ? "good" : "bad";
}

int Verify() {
  char* line = nullptr;
  size_t room = 0;
  while (::getline(&line, &room, stdin) > 0) {
    std::istringstream words(line);
    std::string verb, first, second;
    words >> verb >> first >> second;
    std::puts((verb == "log" ? AnswerLog(first, second) : AnswerReceipt(first, second)).c_str());
    std::fflush(stdout);
  }
  std::free(line);
  return 0;
}

}  // namespace
}  // namespace coffer::audit

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "make") {
    return coffer::audit::Make(words[1], static_cast<unsigned>(std::stoul(words[2])));
  }
  if (words.size() == 1 && words[0] == "verify") {
    return coffer::audit::Verify();
  }
  std::fprintf(stderr, "usage: log_answer make DIRECTORY SEED | log_answer verify\n");
  return 2;
}
