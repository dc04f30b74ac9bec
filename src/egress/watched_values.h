// SPDX-License-Identifier: Apache-2.0
//
// Finds values that must never leave in what is about to leave.
//
// A value is found as it is, in base64 (both alphabets, wherever it begins in the text that was encoded), in
// hexadecimal digits and percent-encoded. Line ends (CR, LF) inside it are skipped, as base64 is often wrapped. All
// spellings are searched at once by an Aho-Corasick automaton, so the time is linear in what is looked at, whatever a
// program sends.
//
// This is a tripwire and no wall: a program that compresses, encrypts or rewrites a value gets it out. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/never_send.h"

namespace coffer::egress {

class WatchedValues {
 public:
  explicit WatchedValues(const std::vector<policy::NeverSendValue>& values);

  // The line of a value that `text` holds; 0 if it holds none.
  size_t FindIn(std::string_view text) const;
  // The same for a path with its query: as it is written, and with its escapes decoded.
  size_t FindInTarget(std::string_view target) const;

 private:
  friend class WatchedStream;
  using State = uint32_t;  // 0: no spelling has begun
  using Branches = std::array<State, 256>;
  // One prefix of a spelling. Most have one child; those with more have a table.
  struct Node {
    State fail = 0;       // the longest proper suffix that is a prefix too
    State child = 0;      // or the number of its table; 0: none
    uint32_t line = 0;    // of the value that ends here; 0: none does
    uint16_t length = 0;  // of the prefix
    unsigned char byte = 0;
    bool branches = false;
  };

  void Add(std::string_view spelling, size_t line);
  void Connect();
  State ChildOf(State state, unsigned char byte) const;
  State AddChild(State state, unsigned char byte);
  State Next(State state, unsigned char byte) const;
  State Step(State state, unsigned char byte, size_t& line_ends) const;

  std::vector<Node> nodes_;
  std::vector<Branches> tables_;
};

// The same for a text that comes in pieces, and goes on as far as no value can begin in it.
//
// Invariant: of a spelling that is found, no byte was given back by Pass.
class WatchedStream {
 public:
  explicit WatchedStream(const WatchedValues& values) : values_(values) {}

  // What may go on of everything that came so far and did not go on yet. Nothing once a value was found.
  std::string Pass(std::string piece);
  // What is left when no more comes.
  std::string Rest();
  // The line of the value that was found; 0: none.
  size_t found() const { return found_; }

 private:
  size_t Undecided() const;

  const WatchedValues& values_;
  WatchedValues::State state_ = 0;
  size_t line_ends_ = 0;  // in a row
  std::string held_;
  size_t found_ = 0;
};

}  // namespace coffer::egress
