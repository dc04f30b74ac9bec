// SPDX-License-Identifier: Apache-2.0
//
// `coffer audit tail`: the last records of the log, and then every new one as it is written.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/print.h"
#include "base/quantity.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cli/verb_audit.h"
#include "store/state_part.h"

namespace coffer::cli {
namespace {

std::string LeafText(const Json& leaf, const char* name) {
  const auto found = leaf.find(name);
  return found != leaf.end() && found->is_string() ? Printable(found->get<std::string>()) : "-";
}

std::string LineOf(const Json& leaf) {
  const Json at = leaf.value("at", Json(0));
  const std::string time = FormatTime(Nanos(at.is_number_integer() ? at.get<int64_t>() : 0));
  const std::string kind = LeafText(leaf, "kind");
  std::string rest;
  if (kind == "decision") {
    rest = fmt::format("{}  {}  agent {}", LeafText(leaf, "call"), LeafText(leaf, "tool"),
                       LeafText(leaf, "agent"));
  } else if (kind == "receipt") {
    rest = fmt::format("{}  {}  {}{}", LeafText(leaf, "call"), LeafText(leaf, "tool"),
                       LeafText(leaf, "outcome"),
                       LeafText(leaf, "class") == "-" ? "" : " (" + LeafText(leaf, "class") + ")");
  } else {
    rest = fmt::format("{}  {}", LeafText(leaf, "name"),
                       Printable(PrintJson(leaf.value("detail", Json::object()))));
  }
  return fmt::format("{}  {:<8}  {:<10}  {}\n", time, kind, LeafText(leaf, "tenant"), rest);
}

class Follower {
 public:
  Follower(const call::VerbFlags& flags, size_t last)
      : json_(flags.json()), tenant_(flags.Value("--tenant")), last_(last) {}

  // What is new in the file. The last line may still be written: it is taken up again with its end.
  Status Read(int file) {
    std::string piece(1 << 16, '\0');
    for (;;) {
      const ssize_t got = ::pread(file, piece.data(), piece.size(), offset_);
      if (got <= 0) {
        return {};
      }
      offset_ += got;
      rest_.append(piece, 0, static_cast<size_t>(got));
      size_t from = 0;
      for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', from)) {
        Take(rest_.substr(from, end - from));
        from = end + 1;
      }
      rest_.erase(0, from);
    }
  }
  // The events that were in the log at the start: only the last of them.
  void SayLast() {
    for (const std::string& line : kept_) {
      PrintOut(line);
    }
    kept_.clear();
    live_ = true;
  }

 private:
  void Take(const std::string& line) {
    if (line.empty() || line[0] != '{') {
      return;
    }
    const Result<Json> leaf = ParseJson(line);
    if (!leaf.ok() || (!tenant_.empty() && LeafText(*leaf, "tenant") != tenant_)) {
      return;
    }
    const std::string said = json_ ? line + "\n" : LineOf(*leaf);
    if (live_) {
      PrintOut(said);
      return;
    }
    kept_.push_back(said);
    if (kept_.size() > last_) {
      kept_.pop_front();
    }
  }

  const bool json_;
  const std::string tenant_;
  const size_t last_;
  bool live_ = false;
  off_t offset_ = 0;
  std::string rest_;
  std::deque<std::string> kept_;
};

}  // namespace

Result<std::string> AuditTail(const call::VerbFlags& flags) {
  uint64_t last = 10;
  if (flags.Has("--last")) {
    TRY_ASSIGN(last, ParseCount(flags.Value("--last")));
  }
  TRY_ASSIGN(const std::string state, flags.StateDir());
  TRY(store::CheckStatePart(state, "log"));
  const std::string path = state + "/log/records";
  TRY_ASSIGN(const UniqueFd file, sys::OpenRegular(path, O_RDONLY));
  const UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.valid() || ::inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY) < 0) {
    return HostFault("audit.tail", "the log cannot be watched",
                     "raise fs.inotify.max_user_watches");
  }
  Follower follower(flags, last);
  TRY(follower.Read(file.get()));
  follower.SayLast();
  for (;;) {
    pollfd ready[2] = {{watch.get(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    (void)::poll(ready, 2, -1);
    if ((ready[1].revents & (POLLERR | POLLHUP)) != 0) {
      return std::string();  // the reader is gone
    }
    char events[4096];
    while (::read(watch.get(), events, sizeof events) > 0) {
    }
    TRY(follower.Read(file.get()));
  }
}

}  // namespace coffer::cli
