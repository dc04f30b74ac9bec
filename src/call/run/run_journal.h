// SPDX-License-Identifier: Apache-2.0
//
// The records that a run writes before its payload starts (call/run_record.h). A run without a state directory has
// none.
#pragma once

#include <string>

#include "audit/receipt.h"
#include "base/result.h"
#include "call/run/prepare.h"

namespace coffer::call {

class RunJournal {
 public:
  virtual ~RunJournal() = default;
  // The part of its receipt that is known before it is evaluated: id, caller, time.
  virtual const audit::Receipt& asked() const = 0;
  // The decision, on disk. Refused if something that is brought in shows the state directory.
  virtual Status Start(const audit::Receipt& receipt, const Prepared& prepared) = 0;
  // The payload runs. Nothing of its stdio was carried yet.
  virtual void Launched() {}
  // How many bytes of each stream the record wants to see; 0: none.
  virtual size_t reads() const { return 0; }
  // What went through them, once, when the call has ended.
  virtual void Streams(std::string in, std::string out, std::string err) = 0;
};

}  // namespace coffer::call
