// SPDX-License-Identifier: Apache-2.0
#include "call/run/launch_trust.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/sys.h"
#include "base/trust_files.h"
#include "call/run/call_variables.h"
#include "call/run/java_trust.h"
#include "isolation/system_paths.h"

namespace coffer::call {
namespace {

constexpr const char* kBundle = "/etc/coffer/ca-bundle.pem";
constexpr const char* kWgetrc = "/etc/coffer/wgetrc";
constexpr const char* kJavaTrust = "/etc/coffer/cacerts.jks";
constexpr size_t kMostTrust = 4 << 20;

constexpr std::array kBundleNames = {
    "SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT",
    // Beats a cafile in the npmrc of the host, which would hide the one above.
    "npm_config_cafile"};

// Where OpenSSL looks by default, of Debian and of Fedora. Mostly links to one of kTrustFiles.
constexpr std::array kOpensslFiles = {"/usr/lib/ssl/cert.pem", "/etc/pki/tls/cert.pem"};
// Where Debian's JVMs look.
constexpr const char* kJavaFile = "/etc/ssl/certs/java/cacerts";

// What this host trusts, as the egress process reads it too; "" if it has no such file.
std::string HostTrust() {
  if (const char* const named = ::getenv("SSL_CERT_FILE"); named != nullptr) {
    Result<std::string> text = sys::ReadFile(named, kMostTrust);
    return text.ok() ? std::move(text).value() : "";
  }
  for (const char* const place : kTrustFiles) {
    if (Result<std::string> text = sys::ReadFile(place, kMostTrust); text.ok()) {
      return std::move(text).value();
    }
  }
  return "";
}

void EndLine(std::string& text) {
  if (!text.empty() && !text.ends_with('\n')) {
    text += '\n';
  }
}

void AddLine(std::string& text, std::string_view more) {
  if (!more.empty()) {
    EndLine(text);
  }
  text += more;
}

bool IsShown(std::string_view at, const isolation::RootPart& root) {
  return std::any_of(root.binds.begin(), root.binds.end(), [&](const isolation::BindMount& bind) {
    return bind.at == at || (bind.directory && isolation::IsAtOrBelow(at, bind.at));
  });
}

// Lies behind a link of the private root: it has another name there.
bool IsLinked(std::string_view at, const isolation::RootPart& root) {
  return std::any_of(root.links.begin(), root.links.end(), [&](const isolation::PrivateLink& link) {
    return isolation::IsAtOrBelow(at, link.at);
  });
}

void AddLink(const std::string& at, const char* target, isolation::RootPart& root) {
  for (size_t end = at.find('/', 1); end != std::string::npos; end = at.find('/', end + 1)) {
    const std::string parent = at.substr(0, end);
    if (std::find(root.dirs.begin(), root.dirs.end(), parent) == root.dirs.end()) {
      root.dirs.push_back(parent);  // the first half of the plan may have it: then it is there
    }
  }
  root.links.push_back({at, target});
}

// The bundle is read at `at` too: over the host's file where the runtime shows that place, and in a
// free place by a link.
void PutBundle(const std::string& at, isolation::RootPart& root) {
  if (IsShown(at, root)) {
    root.covers.push_back({kBundle, at});
  } else if (!IsLinked(at, root)) {
    AddLink(at, kBundle, root);
  }
}

// A program that was started without the variables looks in the places of its distribution. The
// first one is where most look, also programs that bring their own libraries, so it is there on
// every host.
void PutBundleInUsualPlaces(isolation::RootPart& root) {
  for (const char* const place : kTrustFiles) {
    if (place == kTrustFiles.front() || ::access(place, F_OK) == 0) {
      PutBundle(place, root);
    }
  }
  for (const char* const place : kOpensslFiles) {
    // A link of the host leads to one of the places above.
    if (::access(place, F_OK) == 0 && !IsShown(place, root)) {
      PutBundle(place, root);
    }
  }
}

// Whether a JVM may be inside. Making its store takes longer than the bundle itself, and a runtime
// of listed system files says by its names whether it has one.
bool MayHaveJava(const Prepared& prepared) {
  if (!prepared.mounts.empty() || prepared.runtime.ShowsCallerDirectory() ||
      prepared.runtime.ShowsAllOfUsr()) {
    return true;
  }
  const std::vector<isolation::HostPath>& paths = prepared.runtime.paths;
  return std::any_of(paths.begin(), paths.end(), [](const isolation::HostPath& path) {
    return path.path.find("/jvm/") != std::string::npos || path.path.ends_with("/java");
  });
}

void AddJavaTrust(std::string store, isolation::RootPart& root, isolation::Call& call) {
  root.files.push_back({kJavaTrust, std::move(store), 0444});
  // A JVM says on stderr that it has picked this up. There is no other way for every JVM: each has a list of its own.
  SetVariable("JAVA_TOOL_OPTIONS", fmt::format("-Djavax.net.ssl.trustStore={}", kJavaTrust),
              call.env);
  if (IsShown(kJavaFile, root)) {
    root.covers.push_back({kJavaTrust, kJavaFile});
  }
}

void AddBundle(std::string bundle, isolation::RootPart& root, isolation::Call& call) {
  root.files.push_back({kBundle, std::move(bundle), 0444});
  for (const char* const name : kBundleNames) {
    SetVariable(name, kBundle, call.env);
  }
  PutBundleInUsualPlaces(root);
  // wget has no variable for it, only for a file of settings.
  root.files.push_back({kWgetrc, fmt::format("ca_certificate = {}\n", kBundle), 0444});
  SetVariable("WGETRC", kWgetrc, call.env);
}

}  // namespace

Result<TrustEnd> AddTrust(const RunRequest& request, const Prepared& prepared,
                          EgressProcess& process, isolation::BoundaryPlan& plan,
                          isolation::Call& call) {
  using Judging = RunRequest::Judging;
  const Judging judging = request.egress_judging;
  TrustEnd end;
  if (request.egress.upstream_ca.empty() && judging == Judging::kNone) {
    return end;
  }
  // What is known already, while the process starts and makes its CA.
  std::string bundle = HostTrust();
  AddLine(bundle, request.egress.upstream_ca);
  const bool java = MayHaveJava(prepared);
  JavaTrustStore store;
  if (java) {
    store.Add(bundle);
  }
  if (judging == Judging::kPerhaps) {
    TRY_ASSIGN(const std::string ca, process.AwaitAuthority());
    if (ca.empty() && request.egress.upstream_ca.empty()) {
      return end;  // no rule of the tool judges requests
    }
    AddLine(bundle, ca);
    store.Add(java ? ca : "");
  } else if (judging == Judging::kSome) {
    EndLine(bundle);
    end.awaited = true;
    end.java = java;
  }
  isolation::RootPart& root = plan.call_root;
  root.dirs.emplace_back("/etc/coffer");
  if (java) {
    using Then = JavaTrustStore::Then;
    AddJavaTrust(store.Take(end.awaited ? Then::kOneMore : Then::kNothing), root, call);
  }
  AddBundle(std::move(bundle), root, call);
  return end;
}

Result<std::vector<isolation::PrivateFile>> AwaitTrust(const TrustEnd& end,
                                                       EgressProcess& process) {
  TRY_ASSIGN(std::string ca, process.AwaitAuthority());
  std::optional<std::string> entry = JavaTrustStore::EndOf(ca);
  if (!entry) {
    return Internal("egress.ca", "the egress process did not send one certificate");
  }
  std::vector<isolation::PrivateFile> files;
  files.push_back({kBundle, std::move(ca), 0444});
  if (end.java) {
    files.push_back({kJavaTrust, *std::move(entry), 0444});
  }
  return files;
}

}  // namespace coffer::call
