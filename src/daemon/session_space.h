// SPDX-License-Identifier: Apache-2.0
//
// What uploads have been promised in sessions that the kernel does not bound: all uploads into one
// session together stay within its size, however many run at once.
//
// An upload takes room before it writes. Room counts as taken from then on until the file is in its
// place, and the files that are there were summed when the last upload began; so the sum may be
// counted too high for a moment, never too low. What calls write meanwhile is watched by their
// supervisors. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace coffer::daemon {

class SessionSpace {
 public:
  struct Room {
    uint64_t bytes = 0;
    uint64_t files = 0;
  };

  // One upload's part. Gives back what it took, unless it was kept.
  class Part {
   public:
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    // False: there is no room for as many more bytes.
    bool Grow(uint64_t bytes);
    // Call it when the file is in its place.
    void Keep();

   private:
    friend class SessionSpace;
    struct Shared;
    Part(std::shared_ptr<Shared> shared, std::string session)
        : shared_(std::move(shared)), session_(std::move(session)) {}
    std::shared_ptr<Shared> shared_;
    const std::string session_;
    uint64_t taken_ = 0;
    uint64_t written_ = 0;
  };

  SessionSpace();
  ~SessionSpace();

  // `used` is what the session holds, looked at just now. Null: there is no room for another file of `bytes`.
  std::unique_ptr<Part> Begin(const std::string& session, const Room& most, const Room& used,
                              uint64_t bytes);

 private:
  std::shared_ptr<Part::Shared> shared_;
};

}  // namespace coffer::daemon
