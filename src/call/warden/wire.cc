// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire.h"

#include <set>

#include "base/hash.h"
#include "call/warden/wire_envelope.h"
#include "call/warden/wire_receipt.h"

namespace coffer::call {
namespace {

constexpr uint32_t kRunMagic = 0x636f5201;
constexpr uint32_t kReportMagic = 0x636f5203;

Error MalformedPart(const char* what) {
  return Internal("internal.wire", std::string("a malformed ") + what + " from another role");
}

}  // namespace

std::string EncodeRun(const RunRequest& request) {
  WireWriter writer(kRunMagic);
  writer.Text(request.entry);
  WriteEnvelope(writer, request.envelope);
  writer.Texts(request.command);
  writer.Flag(request.script);
  writer.Number(request.tenant);
  writer.Flag(request.background);
  writer.Number(request.ports.size());
  for (const uint16_t port : request.ports) {
    writer.Number(port);
  }
  writer.Number(request.forwards.size());
  for (const RunRequest::Forward& forward : request.forwards) {
    writer.Number(forward.port);
    writer.Number(forward.channel);
  }
  writer.Texts(request.tools);
  writer.Number(request.tool_calls);
  return writer.Take();
}

Result<RunRequest> DecodeRun(std::string_view bytes) {
  WireReader reader(bytes, kRunMagic);
  RunRequest request;
  request.entry = reader.Text();
  request.envelope = ReadEnvelope(reader);
  request.command = reader.Texts();
  request.script = reader.Flag();
  request.tenant = reader.Number<uint32_t>();
  request.background = reader.Flag();
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    request.ports.push_back(reader.Number<uint16_t>());
  }
  for (uint32_t left = reader.Count(); left > 0 && reader.ok(); --left) {
    const auto port = reader.Number<uint16_t>();
    request.forwards.push_back({port, reader.Number<uint32_t>()});
  }
  request.tools = reader.Texts();
  request.tool_calls = reader.Number<uint64_t>();
  if (!reader.Complete() || request.command.empty() || request.tools.size() > kMostTools ||
      request.tool_calls > kMostToolCalls || !AreUsable(request.envelope.limits)) {
    return MalformedPart("request");
  }
  for (const auto& [name, value] : request.envelope.env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return MalformedPart("request");
    }
  }
  return request;
}

std::string EncodeReport(const RunReport& report) {
  WireWriter writer(kReportMagic);
  writer.Signed(report.exit_status);
  writer.Flag(report.error.has_value());
  const Error error = report.error.value_or(Error{});
  writer.Number(static_cast<uint8_t>(error.kind));
  writer.Text(error.code);
  writer.Text(error.message);
  writer.Text(error.hint);
  WriteReceipt(writer, report.receipt);
  const std::string said = writer.Take();
  const uint64_t size = said.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes += said;
  for (const std::string& body : report.exports) {
    bytes += body;
  }
  return bytes;
}

Result<RunReport> DecodeReport(std::string_view bytes) {
  uint64_t size = 0;
  if (bytes.size() < sizeof(size)) {
    return MalformedPart("report");
  }
  memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (size > bytes.size()) {
    return MalformedPart("report");
  }
  WireReader reader(bytes.substr(0, size), kReportMagic);
  bytes.remove_prefix(size);
  RunReport report;
  const int64_t status = reader.Signed();
  const bool failed = reader.Flag();
  Error error;
  error.kind = reader.Choice(ErrorKind::kNotExecutable);
  error.code = reader.Text();
  error.message = reader.Text();
  error.hint = reader.Text();
  report.receipt = ReadReceipt(reader);
  if (!reader.Complete() || status < 0 || status > 255) {
    return MalformedPart("report");
  }
  for (const audit::ExportedFile& file : report.receipt.exported) {
    if (file.size > bytes.size()) {
      return MalformedPart("report");
    }
    report.exports.emplace_back(bytes.substr(0, file.size));
    bytes.remove_prefix(file.size);
  }
  if (!bytes.empty()) {
    return MalformedPart("report");
  }
  report.exit_status = static_cast<int32_t>(status);
  if (failed) {
    report.error = std::move(error);
  }
  return report;
}

Status CheckExports(const RunReport& report) {
  const std::vector<audit::ExportedFile>& files = report.receipt.exported;
  if (files.size() != report.exports.size() || files.size() > policy::kMostExports) {
    return MalformedPart("list of exported files");
  }
  std::set<std::string_view> paths;
  size_t bytes = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    bytes += report.exports[i].size();
    if (!policy::IsExportPath(files[i].path) || !paths.insert(files[i].path).second ||
        bytes > policy::kMostExportBytes || files[i].size != report.exports[i].size() ||
        files[i].sha256 != HashOf(report.exports[i])) {
      return MalformedPart("exported file");
    }
  }
  return {};
}

}  // namespace coffer::call
