// SPDX-License-Identifier: Apache-2.0
#include "audit/seal.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "audit/log/body_match.h"
#include "audit/log/merkle.h"
#include "base/hash.h"
#include "base/json.h"

namespace coffer::audit {
namespace {

constexpr const char* kAlgorithm = "ed25519";

// How FormatReceipt ends. A newline stands in no string of JSON, so it stands once, at the end.
constexpr std::string_view kUnsealedEnd = R"(
  "log": {
    "index": null,
    "size": null,
    "root": null
  },
  "signature": null
}
)";

Error Wrong(std::string message) {
  return Refused("audit.receipt", std::move(message),
                 "do not believe it; ask for the log's own copy");
}

Result<Json> ParseObject(std::string_view text) {
  TRY_ASSIGN(Json document, ParseJson(text));
  if (!document.is_object()) {
    return Wrong("a receipt is a JSON object");
  }
  return document;
}

std::string Canonical(Json document) {
  document["log"] = nullptr;
  document["signature"] = nullptr;
  // The other kind of object sorts its members.
  return nlohmann::json(document).dump(-1, ' ', /*ensure_ascii=*/false,
                                       nlohmann::json::error_handler_t::replace);
}

std::string SignedBytes(const LogPosition& at, const std::string& canonical) {
  return "coffer receipt 1\n" + at.root + "\n" + std::to_string(at.size) + "\n" +
         std::to_string(at.index) + "\n" + canonical;
}

const Json* Find(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::optional<uint64_t> NumberOf(const Json& object, const char* name) {
  const Json* found = Find(object, name);
  return found != nullptr && found->is_number_unsigned() ? std::optional(found->get<uint64_t>())
                                                         : std::nullopt;
}

std::optional<std::string> TextOf(const Json& object, const char* name) {
  const Json* found = Find(object, name);
  return found != nullptr && found->is_string() ? std::optional(found->get<std::string>())
                                                : std::nullopt;
}

struct Seal {
  Appended at;
  std::vector<Hash> proof;
  std::string key_id;
  std::string signature;
};

Result<Seal> ReadSeal(const Json& document) {
  const Json* log = Find(document, "log");
  const Json* signature = Find(document, "signature");
  if (log == nullptr || signature == nullptr || !log->is_object() || !signature->is_object()) {
    return Wrong("the receipt is not sealed");
  }
  const auto index = NumberOf(*log, "index");
  const auto size = NumberOf(*log, "size");
  const auto root = TextOf(*log, "root");
  const auto leaf = TextOf(*log, "leaf");
  const Json* proof = Find(*log, "proof");
  const auto value = TextOf(*signature, "value");
  const auto key_id = TextOf(*signature, "key_id");
  if (!index || !size || !root || !leaf || !value || !key_id || proof == nullptr ||
      !proof->is_array() || proof->size() > 64 || log->size() != 5 || signature->size() != 3 ||
      TextOf(*signature, "algorithm") != kAlgorithm) {
    return Wrong("the receipt's seal is incomplete");
  }
  Seal seal{{{*index, *size, *root}, *leaf, {}}, {}, *key_id, {}};
  for (const Json& node : *proof) {
    const std::optional<Hash> hash =
        node.is_string() ? HashFromHex(node.get<std::string>()) : std::nullopt;
    if (!hash) {
      return Wrong("the receipt's proof is not made of hashes");
    }
    seal.proof.push_back(*hash);
  }
  const std::optional<std::string> bytes = FromBase64(*value);
  if (!bytes || bytes->size() != kSignatureBytes) {
    return Wrong("the receipt's signature is malformed");
  }
  seal.signature = *bytes;
  return seal;
}

// The log's line speaks of this receipt and no other.
Status CheckLeaf(const Json& document, const Seal& seal, const std::string& canonical) {
  const Result<Json> leaf = ParseObject(seal.at.leaf);
  if (!leaf.ok() || TextOf(*leaf, "kind") != "receipt" ||
      NumberOf(*leaf, "seq") != seal.at.position.index) {
    return Wrong("the log's line in the receipt is not about a receipt");
  }
  if (TextOf(*leaf, "body") != HashOf(canonical)) {
    return Wrong("the receipt is not the one that the log recorded: its hash differs");
  }
  if (TextOf(*leaf, "call") != TextOf(document, "call_id") ||
      TextOf(*leaf, "tenant") != TextOf(document, "tenant")) {
    return Wrong("the log's line in the receipt is about another call");
  }
  return {};
}

}  // namespace

Result<std::string> CanonicalReceipt(std::string_view text) {
  TRY_ASSIGN(Json document, ParseObject(text));
  return Canonical(std::move(document));
}

Result<ReceiptBody> MakeBody(std::string text) {
  ReceiptBody body;
  // Of what FormatReceipt writes, the fast way makes the same bytes (body_match.h).
  if (std::optional<std::string> compact = CompactReceipt(text);
      compact && compact->starts_with('{')) {
    body.canonical = *std::move(compact);
  } else {
    TRY_ASSIGN(body.canonical, CanonicalReceipt(text));
  }
  body.hash = HashOf(body.canonical);
  body.text = std::move(text);
  return body;
}

Result<std::string> SealReceipt(const ReceiptBody& body, const Appended& at, const Log& log) {
  Json seal = Json::object();
  seal["log"] = {{"index", at.position.index},
                 {"size", at.position.size},
                 {"root", at.position.root},
                 {"leaf", at.leaf},
                 {"proof", at.proof}};
  seal["signature"] = {{"algorithm", kAlgorithm},
                       {"key_id", log.key_id()},
                       {"value", Base64Of(log.Sign(SignedBytes(at.position, body.canonical)))}};
  if (std::string_view(body.text).ends_with(kUnsealedEnd)) {
    // Both are the last members, so the printed seal takes the place of the end, without its opening brace.
    return body.text.substr(0, body.text.size() - kUnsealedEnd.size()) +
           PrintJson(seal, 2).substr(1) + "\n";
  }
  TRY_ASSIGN(Json document, ParseObject(body.text));
  document.update(seal);
  return PrintJson(document, 2) + "\n";
}

Status VerifyReceipt(std::string_view text, const PublicKey& key) {
  TRY_ASSIGN(const Json document, ParseObject(text));
  TRY_ASSIGN(const Seal seal, ReadSeal(document));
  const std::string canonical = Canonical(document);
  if (seal.key_id != key.id()) {
    return Refused("audit.receipt", "the receipt was sealed with the key " + seal.key_id,
                   "this is key " + key.id() + "; take the key.pub of the log it came from");
  }
  if (!key.Verify(SignedBytes(seal.at.position, canonical), seal.signature)) {
    return Wrong("the receipt was changed after it was sealed: its signature does not verify");
  }
  TRY(CheckLeaf(document, seal, canonical));
  const std::optional<Hash> root = HashFromHex(seal.at.position.root);
  if (!root || !VerifyInclusion(seal.at.position.index, seal.at.position.size,
                                LeafHash(seal.at.leaf), seal.proof, *root)) {
    return Wrong("the log's line in the receipt is not under the root it names");
  }
  return {};
}

}  // namespace coffer::audit
