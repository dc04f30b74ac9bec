// SPDX-License-Identifier: Apache-2.0
//
// A state directory with as many recorded calls as asked for, made the way they are made (call/recorder.h) but without
// syncs: fill_state DIRECTORY CALLS. scripts/bench_audit_verify.py measures over it.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "audit/log/log.h"
#include "call/recorder.h"
#include "store/admission.h"
#include "store/store.h"
#include "store/tenant.h"

namespace coffer {
namespace {

void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "fill_state: %s: %s\n", status.error().code.c_str(),
                 status.error().message.c_str());
    std::exit(1);
  }
}
template <typename T>
T Must(Result<T> result) {
  Must(result.ok() ? Status() : Status(result.error()));
  return std::move(result).value();
}

// As large as that of a real call of python.
audit::Receipt Typical(const std::string& id, Nanos now) {
  const std::string hash = "sha256:" + std::string(64, 'a');
  audit::Receipt receipt;
  receipt.identity.call_id = id;
  receipt.identity.agent = "bot";
  receipt.identity.user = "uid:1000";
  receipt.identity.tool = "python";
  receipt.tool_version = "1.0.0";
  receipt.manifest_hash = receipt.envelope_id = receipt.args_hash = hash;
  receipt.effect = "reversible";
  receipt.blast_radius = "can change nothing on the host; cannot reach the network; at most 256MiB";
  receipt.args_redacted = {"code=<12 bytes>"};
  receipt.requested_at = receipt.started_at = receipt.finished_at = now;
  receipt.level = "container";
  for (const char* layer :
       {"userns", "mountns", "pidns", "netns", "ipcns", "utsns", "cgroupns", "private-root",
        "private-proc", "uid", "capabilities", "no-new-privs", "seccomp", "landlock", "rlimits",
        "disk-quota", "cgroup-memory", "cgroup-pids", "cgroup-cpu"}) {
    receipt.layers.emplace_back(layer);
  }
  for (const char* cap :
       {"cpu", "wall", "memory", "processes", "open_files", "disk", "io", "output"}) {
    receipt.limits.push_back({cap, {1'000'000'000, 12'345'678, "ns", false}});
  }
  for (int step = 0; step < 34; ++step) {
    receipt.steps_us.emplace_back("a step of the setup " + std::to_string(step), 1000 + step);
  }
  receipt.output_sha256 = receipt.stderr_sha256 = hash;
  receipt.outcome = "success";
  receipt.exit_code = 0;
  return receipt;
}

void Fill(const std::string& directory, int calls) {
  store::StoreOptions store_options;
  store_options.fsync = false;
  store::Store store = Must(store::Store::Open(directory, store_options));
  audit::LogOptions log_options;
  log_options.fsync = false;
  audit::Log log = Must(audit::Log::Open(directory + "/log", log_options));
  Must(store::EnsureTenant(store, store::TenantId::Local()));
  call::Recorder recorder(store, log);
  for (int i = 0; i < calls; ++i) {
    store::AdmitRequest request;
    request.identity.agent = "bot";
    request.identity.user = "uid:1000";
    request.identity.tool = "python";
    request.requested_at = store.Now();
    const store::Admission admitted = Must(store::AdmitCall(store, request));
    const audit::Receipt receipt = Typical(admitted.call_id, request.requested_at);
    Must(recorder.Start(receipt, {}));
    call::ToolReply reply;
    Must(recorder.End(call::Ending::kFinished, receipt, reply));
  }
}

}  // namespace
}  // namespace coffer

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fill_state DIRECTORY CALLS\n");
    return 1;
  }
  coffer::Fill(argv[1], std::atoi(argv[2]));
  return 0;
}
