// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "gateway/http/handlers.h"
#include "gateway/http/route.h"

namespace coffer::gateway {
namespace {

// The roles of a route. An operator may do what an agent may; no other role calls tools.
constexpr RouteAccess kWorks = RouteAccess::Of(Role::kAgent, Role::kOperator);
constexpr RouteAccess kReads =
    RouteAccess::Of(Role::kAgent, Role::kApprover, Role::kOperator, Role::kAuditor);
constexpr RouteAccess kOperates = RouteAccess::Of(Role::kOperator);
constexpr RouteAccess kOversees = RouteAccess::Of(Role::kOperator, Role::kAuditor);

using enum BodyKind;

constexpr std::array kRoutes = {
    Route{Method::kGet, "/healthz", RouteAccess::Public(), kNone, GetHealth},
    Route{Method::kGet, "/readyz", RouteAccess::Public(), kNone, GetReady},
    Route{Method::kGet, "/openapi.json", RouteAccess::Public(), kNone, GetOpenApi},
    Route{Method::kGet, "/metrics", kOversees, kNone, GetMetrics},

    Route{Method::kPost, "/mcp", kWorks, kJson, PostMcp, "session"},
    Route{Method::kDelete, "/mcp", kWorks, kNone, DeleteMcp},
    Route{Method::kGet, "/.well-known/oauth-protected-resource", RouteAccess::Public(), kNone,
          GetProtectedResource},
    Route{Method::kGet, "/.well-known/oauth-protected-resource/mcp", RouteAccess::Public(), kNone,
          GetProtectedResource},

    // Every role may ask: a call by a role that calls no tools is denied and recorded like any other denial.
    Route{Method::kPost, "/v1/calls", kReads, kJson, PostCall},
    Route{Method::kGet, "/v1/calls", kReads, kNone, GetCalls,
          "limit,cursor,tool,session,trace,outcome,class,denied,since,until"},
    Route{Method::kGet, "/v1/calls/{call_id}", kReads, kNone, GetCall},
    Route{Method::kGet, "/v1/calls/{call_id}/events", kReads, kNone, GetCallEvents},
    Route{Method::kPost, "/v1/calls/{call_id}/cancel", kWorks, kOptionalJson, PostCallCancel},
    Route{Method::kGet, "/v1/calls/{call_id}/receipt", kReads, kNone, GetCallReceipt},
    Route{Method::kGet, "/v1/calls/{call_id}/transcript", kReads, kNone, GetCallTranscript},
    Route{Method::kGet, "/v1/calls/{call_id}/files", kWorks, kNone, GetFiles, "limit,cursor"},
    Route{Method::kGet, "/v1/calls/{call_id}/files/{path*}", kWorks, kNone, GetFile},

    Route{Method::kPost, "/v1/sessions", kWorks, kOptionalJson, PostSession},
    Route{Method::kGet, "/v1/sessions", kReads, kNone, GetSessions, "limit,cursor"},
    Route{Method::kGet, "/v1/sessions/{session_id}", kReads, kNone, GetSession},
    Route{Method::kDelete, "/v1/sessions/{session_id}", kWorks, kNone, DeleteSession},
    Route{Method::kPost, "/v1/sessions/{session_id}/extend", kWorks, kJson, PostSessionExtend},
    Route{Method::kPost, "/v1/sessions/{session_id}/processes", kWorks, kJson, PostProcess},
    Route{Method::kGet, "/v1/sessions/{session_id}/processes", kReads, kNone, GetProcesses},
    Route{Method::kGet, "/v1/sessions/{session_id}/processes/{process_id}", kReads, kNone,
          GetProcess},
    Route{Method::kGet, "/v1/sessions/{session_id}/processes/{process_id}/log", kReads, kNone,
          GetProcessLog, "offset,limit,follow"},
    Route{Method::kPost, "/v1/sessions/{session_id}/processes/{process_id}/signal", kWorks, kJson,
          PostProcessSignal},
    Route{Method::kDelete, "/v1/sessions/{session_id}/processes/{process_id}", kWorks, kNone,
          DeleteProcess},
    Route{Method::kGet, "/v1/sessions/{session_id}/files", kWorks, kNone, GetFiles,
          "limit,cursor,prefix"},
    Route{Method::kGet, "/v1/sessions/{session_id}/files/{path*}", kWorks, kNone, GetFile},
    Route{Method::kPut, "/v1/sessions/{session_id}/files/{path*}", kWorks, kStream, PutFile},
    Route{Method::kDelete, "/v1/sessions/{session_id}/files/{path*}", kWorks, kNone, DeleteFile},

    Route{Method::kGet, "/v1/tools", kReads, kNone, GetTools},
    Route{Method::kGet, "/v1/tools/{tool}", kReads, kNone, GetTool},

    Route{Method::kPost, "/v1/keys", kOperates, kJson, PostKey},
    Route{Method::kGet, "/v1/keys", kOversees, kNone, GetKeys},
    Route{Method::kDelete, "/v1/keys/{key_id}", kOperates, kNone, DeleteKey,
          "keep_running,with_keys"},

    Route{Method::kGet, "/v1/audit", kOversees, kNone, GetAudit,
          "limit,cursor,tenant,tool,agent,session,trace,outcome,class,approval,denied,since,until"},
    Route{Method::kGet, "/v1/audit/checkpoint", kReads, kNone, GetCheckpoint},
    // Not for agents: an envelope names paths of the host.
    Route{Method::kGet, "/v1/audit/objects/{hash}", kOversees, kNone, GetAuditObject},

    Route{Method::kGet, "/v1/access", kOversees, kNone, GetAccess},
    // An agent, whose call it is, has no say in it.
    Route{Method::kPost, "/v1/access/{access_id}", kOperates, kJson, PostAccess},

    Route{Method::kGet, "/v1/switches", kOversees, kNone, GetSwitches},
    Route{Method::kPut, "/v1/switches/{scope}/{name}", kOperates, kJson, PutSwitch},
    Route{Method::kDelete, "/v1/switches/{scope}/{name}", kOperates, kNone, DeleteSwitch},
};

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

}  // namespace coffer::gateway
