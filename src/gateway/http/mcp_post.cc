// SPDX-License-Identifier: Apache-2.0
#include "gateway/http/mcp_post.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "gateway/http/fields.h"
#include "gateway/http/handlers.h"
#include "gateway/http/mcp_host.h"
#include "gateway/http/names.h"
#include "gateway/http/text_stream.h"

namespace coffer::gateway {
namespace {

constexpr const char* kSessionField = "Mcp-Session-Id";
// A session that `initialize` made ends when nothing was asked in it for so long.
constexpr std::chrono::seconds kSessionLifetime{3600};

int McpStatusOf(const McpOutgoing& out, bool modern) {
  if (!out.error) {
    return 200;
  }
  switch (*out.error) {
    case McpErrorCode::kNotJson:
    case McpErrorCode::kBadMessage:
    case McpErrorCode::kBadHeaders:
    case McpErrorCode::kBadVersion:
      return 400;
    case McpErrorCode::kNoMethod:
      return modern ? 404 : 200;
    default:
      return 200;  // the answer is in the body
  }
}

// Nothing is lost if the answer to a client that has left is not made.
bool OnlyReads(std::string_view method) {
  return method == "tools/list" || method == "resources/list" || method == "resources/read" ||
         method == "resources/templates/list";
}

// A line without its end.
Response LineResponse(int status, std::string line) {
  if (line.ends_with('\n')) {
    line.pop_back();
  }
  return JsonResponse(status, std::move(line));
}

}  // namespace

McpPost::McpPost(const Exchange& exchange, Respond respond)
    : api_(exchange.api),
      head_(exchange.head),
      who_(exchange.who),
      asker_(exchange.asker),
      respond_(std::move(respond)) {
  if (const std::string* session = exchange.Query("session"); session != nullptr) {
    session_id_ = *session;
  }
}

McpPost::~McpPost() = default;

void McpPost::Take(McpReading reading) {
  if (const auto* bad = std::get_if<McpBadMessage>(&reading)) {
    Finish(LineResponse(400, McpErrorLine(bad->id, bad->error)));
    return;
  }
  message_ = std::move(std::get<McpMessage>(reading));
  asker_->only_reads = OnlyReads(message_.method);
  if (!session_id_.empty() && !IsId(session_id_)) {
    RespondError(400, {McpErrorCode::kBadMessage, "session is not the id of a session", {}});
    return;
  }
  if (!AcceptsType(head_, "application/json")) {
    RespondError(
        406,
        {McpErrorCode::kBadMessage, "Accept must list application/json and text/event-stream", {}});
    return;
  }
  const std::variant<McpEra, McpError> era = FindMcpEra(head_, message_);
  if (const auto* wrong = std::get_if<McpError>(&era)) {
    RespondError(400, *wrong);
    return;
  }
  era_ = std::get<McpEra>(era);
  if (era_.modern) {
    TakeModern();
  } else if (message_.method == "initialize" && !message_.id.empty()) {
    TakeInitialize();
  } else {
    TakeLegacy();
  }
}

void McpPost::TakeModern() {
  if (message_.method.empty()) {
    RespondError(400, {McpErrorCode::kBadMessage, "clients send no answers in this version", {}});
  } else if (message_.id.empty()) {
    RespondAccepted();  // a client cancels by closing the connection
  } else {
    Run();
  }
}

void McpPost::TakeInitialize() {
  MakeServer();
  server_->Receive(message_);  // answers at once, into initialized_
  if (initialized_.error) {
    Finish(LineResponse(400, initialized_.line));
    return;
  }
  if (!session_id_.empty()) {  // it works in that session and makes none
    CheckSession([this] { Finish(LineResponse(200, initialized_.line)); });
    return;
  }
  SessionRequest request;
  request.lifetime = kSessionLifetime;
  request.label = "MCP";
  const auto made = [weak = weak_from_this()](Answer<SessionView> session) {
    const auto self = weak.lock();
    if (self == nullptr) {
      return;
    }
    if (!session.ok()) {
      self->RespondRefusal(session.refusal());
      return;
    }
    Response response = LineResponse(200, self->initialized_.line);
    response.headers.push_back({kSessionField, session->session_id});
    self->Finish(std::move(response));
  };
  api_->service.CreateSession(who_, std::move(request), Reply<SessionView>(made, asker_));
}

void McpPost::TakeLegacy() {
  if (session_id_.empty()) {
    const std::string* const field = head_.Find(kSessionField);
    if (field != nullptr && head_.Count(kSessionField) != 1) {
      RespondError(400, {McpErrorCode::kBadHeaders, "Mcp-Session-Id is given more than once", {}});
      return;
    }
    if (field == nullptr) {
      RespondError(400, {McpErrorCode::kBadMessage,
                         "Mcp-Session-Id is missing: begin with initialize, or name a version in "
                         "_meta and MCP-Protocol-Version",
                         {}});
      return;
    }
    if (!IsId(*field)) {
      RespondError(404, {McpErrorCode::kBadMessage, "there is no such session", {}});
      return;
    }
    session_id_ = *field;
    minted_ = true;
  }
  CheckSession([this] {
    if (message_.method.empty()) {
      RespondAccepted();  // we ask clients nothing
    } else if (message_.id.empty()) {
      CancelOther();
      RespondAccepted();
    } else {
      Run();
    }
  });
}

void McpPost::CheckSession(std::function<void()> next) {
  const auto found = [weak = weak_from_this(),
                      next = std::move(next)](const Answer<SessionView>& session) {
    const auto self = weak.lock();
    if (self == nullptr) {
      return;
    }
    if (!session.ok() && session.refusal().kind != RefusalKind::kNotFound) {
      self->RespondRefusal(session.refusal());
      return;
    }
    if (!session.ok() || session->state != "open") {
      self->RespondError(
          404,
          {McpErrorCode::kBadMessage, "there is no such session; begin again with initialize", {}});
      return;
    }
    if (self->minted_ && session->time_left < kSessionLifetime / 2) {
      const auto ignored = [](const Answer<SessionView>&) {};  // then it ends when it would have
      self->api_->service.ExtendSession(self->who_, self->session_id_, kSessionLifetime,
                                        Reply<SessionView>(ignored, self->asker_));
    }
    next();
  };
  api_->service.GetSession(who_, session_id_, Reply<SessionView>(found, asker_));
}

void McpPost::CancelOther() {
  if (message_.method != "notifications/cancelled") {
    return;
  }
  const auto id = message_.params->find("requestId");
  if (id == message_.params->end()) {
    return;
  }
  if (const auto flight = api_->mcp_flights->Find(session_id_, PrintJson(*id))) {
    flight->Cancel();
  }
}

void McpPost::MakeServer() {
  const std::weak_ptr<McpPost> weak = weak_from_this();
  if (api_->config.mcp_host) {
    host_ = api_->config.mcp_host();
  } else {
    McpCaller client{.api = api_, .who = who_, .asker = asker_, .session_id = session_id_};
    client.ids_are_keys = minted_;
    client.can_be_cancelled = !era_.modern;
    client.traceparent = ReadTraceparent(head_);
    if (Answer<std::optional<std::string>> key = ReadIdempotencyKey(head_); key.ok()) {
      client.idempotency_key = key.value();
    }
    client.cancelled = [weak] {
      if (const auto self = weak.lock()) {
        self->Drop(false);
      }
    };
    host_ = std::make_shared<McpServiceHost>(std::move(client));
  }
  server_ = std::make_unique<McpServer>(*host_, [this](McpOutgoing out) { Send(std::move(out)); });
}

void McpPost::Run() {
  if (Answer<std::optional<std::string>> key = ReadIdempotencyKey(head_); !key.ok()) {
    RespondRefusal(key.refusal());
    return;
  }
  MakeServer();
  if (!era_.modern) {
    server_->Resume(era_.legacy_version);
  } else {
    asker_->left = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->server_->Cancel(self->message_.id, "the client has left");
        self->Drop(true);
      }
    };
  }
  const auto keep = shared_from_this();
  server_->Receive(message_);
  if (respond_ != nullptr && server_->Waits(message_.id) &&
      FindMcpMeta(message_, "progressToken") != nullptr && message_.method == "tools/call" &&
      AcceptsType(head_, "text/event-stream")) {
    stream_ = std::make_shared<McpEventStream>();
    Response response;
    response.content_type = "text/event-stream";
    response.headers.push_back({"X-Accel-Buffering", "no"});
    response.stream = stream_;
    std::exchange(respond_, nullptr)(std::move(response));
  }
}

void McpPost::Send(McpOutgoing out) {
  if (message_.method == "initialize" && !era_.modern) {
    initialized_ = std::move(out);
  } else if (!out.answer) {
    if (stream_ != nullptr) {
      stream_->Add(out.line);
    }
  } else if (out.text != nullptr) {
    SendText(std::move(*out.text));
  } else if (stream_ != nullptr) {
    asker_->left = nullptr;
    stream_->End(out.line);
  } else {
    Finish(LineResponse(McpStatusOf(out, era_.modern), std::move(out.line)));
  }
}

void McpPost::SendText(JsonPieces text) {
  if (stream_ == nullptr) {
    Response response = LineResponse(200, "");
    StreamText(api_, asker_, AcceptsGzip(head_), std::make_shared<JsonPieces>(std::move(text)),
               &response);
    Finish(std::move(response));
    return;
  }
  asker_->left = nullptr;
  JsonPieces event;
  event.Raw(McpEventStream::kBegin);
  event.Append(std::move(text));
  event.Raw(McpEventStream::kEnd);
  stream_->EndWith(MakeTextStream(api_, asker_, std::make_shared<JsonPieces>(std::move(event))));
}

void McpPost::Drop(bool left) {
  if (stream_ != nullptr) {
    asker_->left = nullptr;
    stream_->End("");
  } else if (left) {
    Finish(UnreadResponse());
  } else {
    RespondError(200, {McpErrorCode::kInternal, "the request was cancelled", {}});
  }
}

void McpPost::RespondError(int status, const McpError& error) {
  Finish(
      LineResponse(status, McpErrorLine(message_.method.empty() ? McpId() : message_.id, error)));
}

void McpPost::RespondRefusal(const Refusal& refusal) {
  const Problem problem = FromRefusal(refusal);
  Json data = {{"code", problem.code}};
  if (!problem.hint.empty()) {
    data["hint"] = problem.hint;
  }
  Response response = LineResponse(
      problem.status, McpErrorLine(message_.method.empty() ? McpId() : message_.id,
                                   {McpErrorCode::kInternal, problem.detail, PrintJson(data)}));
  if (problem.retry_after) {
    response.headers.push_back({"Retry-After", std::to_string(*problem.retry_after)});
  }
  Finish(std::move(response));
}

void McpPost::RespondAccepted() {
  Response response;
  response.status = 202;
  Finish(std::move(response));
}

void McpPost::Finish(Response response) {
  asker_->left = nullptr;
  if (respond_ != nullptr) {
    std::exchange(respond_, nullptr)(std::move(response));
  }
}

}  // namespace coffer::gateway
