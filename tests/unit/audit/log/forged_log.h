// SPDX-License-Identifier: Apache-2.0
//
// A log written by hand, with a key of its own: for logs that the program would never write, but somebody with the key
// could. Every line goes in as it is given; checkpoints are right unless they are bent on purpose.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "audit/log/checkpoint.h"
#include "audit/log/merkle.h"
#include "audit/log/records.h"
#include "audit/log/signer.h"

namespace coffer::audit {

class ForgedLog {
 public:
  ForgedLog() : signer_(Make()) {
    text_ = std::string(kHeaderPrefix) + origin_ + "\n";
    prev_ = LineHash(std::string(kHeaderPrefix) + origin_);
    Sign();
  }

  ForgedLog& Leaf(const std::string& line) {
    text_ += line + "\n";
    frontier_.Append(LeafHash(line));
    return *this;
  }
  template <typename Record>
  ForgedLog& Add(const Record& record) {
    return AddAs(record, frontier_.size());
  }
  template <typename Record>
  ForgedLog& AddAs(const Record& record, uint64_t seq) {
    return Leaf(FormatLeaf(record)->Line(seq));
  }
  // A checkpoint; `bend` may change what is signed.
  ForgedLog& Sign(const std::function<void(Checkpoint&)>& bend = {}) {
    Checkpoint plan{frontier_.size(), frontier_.Root(), prev_, {}, {}};
    if (bend) {
      bend(plan);
    }
    const std::string line =
        SignCheckpoint(signer_, origin_, plan.size, plan.root, plan.prev).Line();
    text_ += line + "\n";
    prev_ = LineHash(line);
    return *this;
  }
  ForgedLog& Raw(const std::string& text) {
    text_ += text;
    return *this;
  }

  // The directory, with records and key.pub.
  const std::string& WriteTo(const std::string& directory) const {
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/records", std::ios::binary) << text_;
    std::ofstream(directory + "/key.pub") << signer_.public_key().Text() << "\n";
    return directory;
  }
  const Signer& signer() const { return signer_; }

  static DecisionRecord Decision(const std::string& call, const std::string& tenant = "local") {
    DecisionRecord record;
    record.identity.call_id = call;
    record.identity.tenant = *store::TenantId::Parse(tenant);
    return record;
  }
  static ReceiptRecord Receipt(const std::string& call, bool ran, bool recovered = false,
                               const std::string& tenant = "local") {
    ReceiptRecord record;
    record.identity.call_id = call;
    record.identity.tenant = *store::TenantId::Parse(tenant);
    record.outcome = "success";
    record.ran = ran;
    record.recovered = recovered;
    return record;
  }

 private:
  static Signer Make() {
    std::string hex;
    return std::move(Signer::Create(hex)).value();
  }
  const std::string origin_ = "coffer.log/0123456789abcdef";
  Signer signer_;
  std::string text_;
  Frontier frontier_;
  Hash prev_{};
};

}  // namespace coffer::audit
