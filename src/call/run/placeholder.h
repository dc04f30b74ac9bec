// SPDX-License-Identifier: Apache-2.0
//
// A placeholder keeps a name in a project from being made while a call runs.
//
// The kernel can only mount on a name that exists. So a name that must stay free is made on the host before the call,
// mounted read-only inside, and removed after it. It is an empty directory, which git does not list, or a file that git
// reads as if it were not there. It has a mode that no other file has. The next call knows one that a crash left by its
// mode and because it is empty, and removes it. Calls in one project at the same time share a placeholder: each holds a
// lock, and the last one removes it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace coffer::call {

class Placeholder {
 public:
  struct Kind {
    bool directory = true;
    std::string content;  // of a file
  };

  // Makes `name` in `parent`, or joins the one that another call made. Nothing if the name cannot be made there: then
  // the payload, which has no more rights, cannot make it either. `parent` is duplicated.
  static Result<Placeholder> Make(int parent, const std::string& name, const Kind& kind);

  // True if what is called `name` in `parent` is a placeholder of ours, of this or an earlier call.
  static bool IsOne(int parent, const std::string& name, const Kind& kind);

  Placeholder() = default;
  Placeholder(Placeholder&&) = default;
  Placeholder& operator=(Placeholder&& other) noexcept;
  Placeholder(const Placeholder&) = delete;
  Placeholder& operator=(const Placeholder&) = delete;
  ~Placeholder() { Remove(); }

  bool made() const { return lock_.valid(); }
  // Unless another call uses it, or it is something else by now.
  void Remove();

 private:
  UniqueFd parent_;
  std::string name_;
  Kind kind_;
  UniqueFd lock_;
};

}  // namespace coffer::call
