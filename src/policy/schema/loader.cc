// SPDX-License-Identifier: Apache-2.0
#include "policy/schema/loader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/hex.h"
#include "base/text.h"
#include "policy/schema/value.h"

namespace coffer::policy {
namespace {

NodeList InPlaceEdges(const SchemaNode& node) {
  NodeList edges = {node.ref, node.not_, node.if_, node.then_, node.else_};
  for (const NodeList* list : {&node.all_of, &node.any_of, &node.one_of}) {
    edges.insert(edges.end(), list->begin(), list->end());
  }
  for (const auto& [name, dependent] : node.dependent) {
    edges.push_back(dependent);
  }
  std::erase(edges, nullptr);
  return edges;
}

// %41 in the fragment of a URI is A; nothing if it is broken.
std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || EitherCaseHexValue(text[i + 1]) < 0 ||
        EitherCaseHexValue(text[i + 2]) < 0) {
      return std::nullopt;
    }
    out +=
        static_cast<char>(EitherCaseHexValue(text[i + 1]) * 16 + EitherCaseHexValue(text[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace

std::shared_ptr<const SchemaProgram> SchemaLoader::Load(const Json& document) {
  const Measured measured = Measure(document, kMaxSchemaDepth, {kMaxSchemaValues, kMaxSchemaBytes});
  if (measured.misfit != Misfit::kNone) {
    Problem("", fmt::format("the schema {}", MisfitText(measured.misfit)),
            fmt::format("at most {} levels, {} values and {} bytes of text", kMaxSchemaDepth,
                        kMaxSchemaValues, kMaxSchemaBytes));
    return nullptr;
  }
  program_->root = Subschema(document, "");
  ResolveRefs();
  if (problems_.empty()) {
    RefuseCircles();
  }
  return problems_.empty() ? program_ : nullptr;
}

void SchemaLoader::Problem(std::string_view at, std::string message, std::string hint) {
  if (problems_.size() < kMaxSchemaProblems) {
    problems_.push_back({std::string(at), std::move(message), std::move(hint)});
  }
}

const SchemaNode* SchemaLoader::Subschema(const Json& schema, std::string at) {
  SchemaNode& node = program_->nodes.emplace_back();
  node.location = std::move(at);
  by_location_.emplace(node.location, &node);
  if (schema.is_boolean()) {
    node.verdict = schema.get<bool>();
  } else if (schema.is_object()) {
    for (const auto& [name, value] : schema.get_ref<const Json::object_t&>()) {
      LoadKeyword(*this, node, name, value);
    }
    CheckKeywordsTogether(*this, node, schema);
  } else {
    Problem(node.location, "a schema is an object, true or false");
  }
  return &node;
}

void SchemaLoader::AddAnchor(SchemaNode& node, std::string_view name, std::string_view at) {
  if (!by_anchor_.emplace(name, &node).second) {
    Problem(at, fmt::format("the anchor \"{}\" is there twice", Printable(name)),
            "give each its own name");
  }
}

std::optional<Pattern> SchemaLoader::MakePattern(std::string_view ecma, std::string_view at) {
  if (++patterns_ > kMaxSchemaPatterns) {
    Problem(at, fmt::format("more than {} patterns", kMaxSchemaPatterns),
            "name one in $defs and use $ref");
    return std::nullopt;
  }
  Result<Pattern> pattern = Pattern::Compile(ecma);
  if (!pattern.ok()) {
    Problem(at, pattern.error().message, pattern.error().hint);
    return std::nullopt;
  }
  return std::move(pattern).value();
}

void SchemaLoader::ResolveRefs() {
  for (const auto& [node, ref] : refs_) {
    node->ref = Target(*node, ref);
  }
}

const SchemaNode* SchemaLoader::Target(const SchemaNode& from, std::string_view ref) {
  const std::string at = from.location + "/$ref";
  if (!ref.starts_with('#')) {
    Problem(at, fmt::format("\"{}\" is not in this schema: nothing is fetched", Printable(ref)),
            "copy what it names into $defs and write #/$defs/NAME");
    return nullptr;
  }
  const std::optional<std::string> fragment = PercentDecoded(ref.substr(1));
  if (fragment) {
    // Locations are kept as JSON Pointers, escaped the same way.
    const bool pointer = fragment->empty() || fragment->front() == '/';
    const auto& names = pointer ? by_location_ : by_anchor_;
    if (const auto found = names.find(*fragment); found != names.end()) {
      return found->second;
    }
  }
  Problem(at, fmt::format("\"{}\" names no schema in this document", Printable(ref)),
          "write #, #/$defs/NAME, or #ANCHOR");
  return nullptr;
}

// Depth first, without recursion: a chain of $ref may be as long as the schema has nodes.
void SchemaLoader::RefuseCircles() {
  struct Visit {
    const SchemaNode* node;
    NodeList edges;
    size_t next = 0;
  };
  std::set<const SchemaNode*> finished;
  std::set<const SchemaNode*> open;
  for (const SchemaNode& start : program_->nodes) {
    if (finished.contains(&start)) {
      continue;
    }
    std::vector<Visit> path;
    path.push_back({&start, InPlaceEdges(start)});
    open.insert(&start);
    while (!path.empty()) {
      Visit& top = path.back();
      if (top.next == top.edges.size()) {
        open.erase(top.node);
        finished.insert(top.node);
        path.pop_back();
        continue;
      }
      const SchemaNode* const edge = top.edges[top.next++];
      if (open.contains(edge)) {
        Problem(top.node->location,
                fmt::format("refers back to \"{}\" for the same value, which never ends",
                            Printable(edge->location)),
                "a schema may refer to itself only for members or items of the value");
      } else if (!finished.contains(edge)) {
        open.insert(edge);
        path.push_back({edge, InPlaceEdges(*edge)});
      }
    }
  }
}

Result<Schema> Schema::Compile(const Json& document, std::vector<SchemaProblem>* problems) {
  SchemaLoader loader;
  std::shared_ptr<const SchemaProgram> program = loader.Load(document);
  if (program) {
    return Schema(std::move(program));
  }
  const SchemaProblem& first = loader.problems().front();
  const size_t more = loader.problems().size() - 1;
  Error error = Refused("schema.load",
                        fmt::format("schema, at \"{}\": {}{}", Printable(first.at), first.message,
                                    more == 0 ? "" : fmt::format(" (and {} more)", more)),
                        first.hint);
  if (problems != nullptr) {
    *problems = std::move(loader.problems());
  }
  return error;
}

}  // namespace coffer::policy
