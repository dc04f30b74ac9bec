// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/dispatch.h"

#include "gateway/http/fields.h"
#include "gateway/http/protected_resource.h"

namespace coffer::gateway {
namespace {

const std::string kEmpty;

std::optional<Problem> CheckShape(const Exchange& exchange) {
  const Head& head = exchange.head;
  switch (exchange.route->body) {
    case BodyKind::kNone:
      if (head.HasBody()) {
        return MakeProblem(400, "body.unexpected", "this request takes no body");
      }
      return std::nullopt;
    case BodyKind::kJson:
      return CheckJsonBody(head);
    case BodyKind::kOptionalJson:
      return head.HasBody() ? CheckJsonBody(head) : std::nullopt;
    case BodyKind::kStream:
      if (!head.chunked && !head.content_length.has_value()) {
        return MakeProblem(400, "body.length", "say how long the body is",
                           "send Content-Length, or Transfer-Encoding: chunked");
      }
      return std::nullopt;
  }
  return std::nullopt;
}

// Everything that is known from the head alone; sets the route and its raw values.
std::optional<Problem> FindIt(Exchange* exchange, Match* match, std::string* query) {
  std::optional<Target> target = SplitTarget(&exchange->head);
  if (auto problem = CheckSite(exchange->head, exchange->channel, exchange->api->config.names);
      problem.has_value()) {
    return problem;
  }
  if (!target.has_value()) {
    return MakeProblem(400, "http.target", "the request target is not a path");
  }
  *match = FindRoute(Routes(), exchange->head.method, target->path);
  if (match->route == nullptr) {
    if (match->allow.empty()) {
      return MakeProblem(404, "route.unknown", "there is nothing at this path",
                         "GET /openapi.json lists what there is");
    }
    Problem problem = MakeProblem(405, "route.method", "this path does not take this method");
    problem.allow = match->allow;
    return problem;
  }
  exchange->route = match->route;
  *query = std::move(target->query);
  return std::nullopt;
}

// After the caller is known.
std::optional<Problem> CheckRest(Exchange* exchange, const Values& raw, std::string_view query) {
  Answer<Values> values = CheckValues(raw);
  if (!values.ok()) {
    return FromRefusal(values.refusal());
  }
  exchange->values = std::move(values.value());
  Answer<Values> parsed = ParseQuery(query, exchange->route->query);
  if (!parsed.ok()) {
    return FromRefusal(parsed.refusal());
  }
  // The names point into the target, which is gone soon: keep those of the table.
  for (auto& [name, value] : parsed.value()) {
    const size_t at = exchange->route->query.find(name);
    exchange->query.emplace_back(exchange->route->query.substr(at, name.size()), std::move(value));
  }
  if (auto problem = CheckShape(*exchange); problem.has_value()) {
    return problem;
  }
  if (exchange->head.content_length.value_or(0) > BodyLimit(*exchange)) {
    return MakeProblem(413, "body.too_large", "the body is larger than the limit");
  }
  return std::nullopt;
}

// What stops or frees something is let in when everything else is refused for lack of memory.
bool Frees(const Route& route) {
  return route.method == Method::kDelete || route.path.ends_with("/cancel") ||
         route.path.starts_with("/v1/switches");
}

Answer<Identity> VerifyToken(const JwtVerifier& jwt, const std::string& token, Nanos now) {
  Result<Identity> identity = jwt.Verify(token, now);
  if (!identity.ok()) {
    return Refusal{.kind = RefusalKind::kUnauthenticated,
                   .code = "auth.token",
                   .message = "the token is not accepted: " + identity.error().message};
  }
  return std::move(*identity);
}

Answer<Credential> ReadCredential(const Exchange& exchange) {
  Answer<std::string> bearer = ReadBearer(exchange.head);
  if (!bearer.ok()) {
    return bearer.refusal();
  }
  Credential credential;
  credential.address = exchange.channel.address;
  credential.bearer = std::move(bearer.value());
  if (credential.bearer.empty()) {
    credential.peer = exchange.channel.peer;
    if (!credential.peer.has_value()) {
      return Refusal{.kind = RefusalKind::kUnauthenticated,
                     .code = "auth.missing",
                     .message = "this path needs a credential",
                     .hint = "send Authorization: Bearer KEY"};
    }
  } else if (exchange.api->config.jwt != nullptr && LooksLikeJwt(credential.bearer)) {
    credential.verify = [jwt = exchange.api->config.jwt, token = credential.bearer,
                         now = WallTime()] { return VerifyToken(*jwt, token, now); };
  }
  return credential;
}

// Why there is no memory for the request.
std::optional<Response> CheckRoom(const Exchange& exchange) {
  if (Frees(*exchange.route)) {
    return std::nullopt;
  }
  const std::optional<Refusal> full = exchange.api->service.CheckRoom(*exchange.asker);
  return full ? std::optional(ProblemResponse(FromRefusal(*full))) : std::nullopt;
}

}  // namespace

const std::string& Exchange::Value(std::string_view name) const {
  for (const auto& [key, value] : values) {
    if (key == name) {
      return value;
    }
  }
  return kEmpty;
}

const std::string* Exchange::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

uint64_t BodyLimit(const Exchange& exchange) {
  const HttpLimits& limits = exchange.api->config.limits;
  return exchange.route->body == BodyKind::kStream ? limits.upload_bytes : limits.body_bytes;
}

void Admit(const std::shared_ptr<Exchange>& exchange,
           std::function<void(std::optional<Response>)> decided) {
  Match match;
  std::string query;
  if (auto problem = FindIt(exchange.get(), &match, &query); problem.has_value()) {
    decided(ProblemResponse(*problem));
    return;
  }
  if (exchange->route->access.is_public()) {
    auto problem = CheckRest(exchange.get(), match.raw, query);
    decided(problem.has_value() ? std::optional(ProblemResponse(*problem)) : std::nullopt);
    return;
  }
  if (std::optional<Response> full = CheckRoom(*exchange)) {
    decided(std::move(full));
    return;
  }
  Answer<Credential> credential = ReadCredential(*exchange);
  if (!credential.ok()) {
    Problem problem = FromRefusal(credential.refusal());
    if (problem.code == "auth.missing") {
      problem.authenticate =
          R"(Bearer realm="coffer")";  // RFC 6750 section 3.1: no error code if nothing was sent
    }
    AddResourceMetadata(*exchange, &problem);
    decided(ProblemResponse(problem));
    return;
  }
  std::string token =
      ReadBearer(exchange->head).value();  // "" if the client showed another credential
  const auto known = [exchange, token = std::move(token), decided = std::move(decided),
                      raw = std::move(match.raw),
                      query = std::move(query)](Answer<Identity> answer) {
    if (!answer.ok()) {
      if (answer.refusal().kind == RefusalKind::kUnauthenticated) {
        exchange->api->known->Forget(token);
      }
      Problem problem = FromRefusal(answer.refusal());
      AddResourceMetadata(*exchange, &problem);
      decided(ProblemResponse(problem));
      return;
    }
    exchange->who = std::move(answer.value());
    exchange->asker->tenant = exchange->who.tenant;
    exchange->asker->key = exchange->who.key_id;
    if (!token.empty()) {
      exchange->api->known->Remember(token, exchange->who.tenant.name());
    }
    if (!exchange->route->access.Allows(exchange->who.role)) {
      decided(ProblemResponse(MakeProblem(403, "auth.role", "this path is not for your role",
                                          "it needs one of: " + exchange->route->access.Names())));
      return;
    }
    if (std::optional<Response> full = CheckRoom(*exchange)) {  // that of its tenant
      decided(std::move(full));
      return;
    }
    auto problem = CheckRest(exchange.get(), raw, query);
    decided(problem.has_value() ? std::optional(ProblemResponse(*problem)) : std::nullopt);
  };
  exchange->api->service.Authenticate(credential.value(), Reply<Identity>(known, exchange->asker));
}

}  // namespace coffer::gateway
