// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire.h"

#include <string.h>

namespace coffer::call {
namespace {

constexpr uint32_t kRunMagic = 0x636f5201;
constexpr uint32_t kReportMagic = 0x636f5202;
constexpr uint32_t kMaxItems = 1 << 16;

class Writer {
 public:
  explicit Writer(uint32_t magic) {
    Number<uint32_t>(magic);
    Number<uint32_t>(kWireVersion);
  }
  template <typename T>
  void Number(T value) {
    const auto wide = static_cast<uint64_t>(value);
    bytes_.append(reinterpret_cast<const char*>(&wide), sizeof(wide));
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_.append(text);
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(texts.size());
    for (const std::string& text : texts) {
      Text(text);
    }
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads until the first thing that does not fit; from then on everything is empty and ok() is false.
class Reader {
 public:
  Reader(std::string_view bytes, uint32_t magic) : bytes_(bytes) {
    const auto found = Number<uint32_t>();
    const auto version = Number<uint32_t>();
    if (bytes.size() > kMaxWireBytes || found != magic || version != kWireVersion) {
      Fail();
    }
  }
  template <typename T>
  T Number() {
    if (bytes_.size() < sizeof(uint64_t)) {
      Fail();
      return T{};
    }
    uint64_t wide = 0;
    memcpy(&wide, bytes_.data(), sizeof(wide));
    bytes_.remove_prefix(sizeof(wide));
    const T value = static_cast<T>(wide);
    if (static_cast<uint64_t>(value) != wide) {
      Fail();
      return T{};
    }
    return value;
  }
  // One of 0 .. last.
  template <typename Enum>
  Enum Choice(Enum last) {
    const auto value = Number<uint8_t>();
    if (value > static_cast<uint8_t>(last)) {
      Fail();
      return Enum{};
    }
    return static_cast<Enum>(value);
  }
  bool Flag() { return Number<uint8_t>() == 1; }
  // Paths, words and JSON: nothing we send holds a NUL, and the kernel would see another text than our checks.
  std::string Text() {
    const auto size = Number<uint64_t>();
    if (size > bytes_.size() || bytes_.substr(0, size).find('\0') != std::string_view::npos) {
      Fail();
      return {};
    }
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  // How many items follow; never more than there are bytes for.
  uint32_t Count() {
    const auto count = Number<uint64_t>();
    if (count > kMaxItems || count > bytes_.size() / sizeof(uint64_t)) {
      Fail();
      return 0;
    }
    return static_cast<uint32_t>(count);
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (uint32_t left = Count(); left > 0 && ok_; --left) {
      texts.push_back(Text());
    }
    return texts;
  }
  bool Complete() const { return ok_ && bytes_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    bytes_ = {};
  }
  std::string_view bytes_;
  bool ok_ = true;
};

// Signed and small, such as an exit status.
void WriteSigned(Writer& writer, int64_t value) { writer.Number(static_cast<uint64_t>(value)); }
int64_t ReadSigned(Reader& reader) { return static_cast<int64_t>(reader.Number<uint64_t>()); }

void WriteLimits(Writer& writer, const policy::Limits& limits) {
  WriteSigned(writer, limits.cpu.count());
  WriteSigned(writer, limits.wall.count());
  for (const uint64_t value : {limits.memory, limits.processes, limits.open_files, limits.disk,
                               limits.inodes, limits.io, limits.output, limits.tmp}) {
    writer.Number(value);
  }
}

policy::Limits ReadLimits(Reader& reader) {
  policy::Limits limits;
  limits.cpu = Nanos(ReadSigned(reader));
  limits.wall = Nanos(ReadSigned(reader));
  for (uint64_t* value : {&limits.memory, &limits.processes, &limits.open_files, &limits.disk,
                          &limits.inodes, &limits.io, &limits.output, &limits.tmp}) {
    *value = reader.Number<uint64_t>();
  }
  return limits;
}

// No cap may be missing, and none may be so large that arithmetic on it overflows.
bool Sane(const policy::Limits& limits) {
  constexpr auto kLongest = std::chrono::hours(24 * 366);
  constexpr uint64_t kLargest = 1ULL << 50;
  for (const Nanos time : {limits.cpu, limits.wall}) {
    if (time.count() <= 0 || time > kLongest) {
      return false;
    }
  }
  for (const uint64_t value : {limits.memory, limits.processes, limits.open_files, limits.disk,
                               limits.inodes, limits.io, limits.output, limits.tmp}) {
    if (value == 0 || value > kLargest) {
      return false;
    }
  }
  return true;
}

void WriteEnvelope(Writer& writer, const policy::Envelope& envelope) {
  writer.Number(static_cast<uint8_t>(envelope.level));
  const std::vector<policy::Layer> floor = envelope.floor.list();
  writer.Number(floor.size());
  for (const policy::Layer layer : floor) {
    writer.Number(static_cast<uint8_t>(layer));
  }
  WriteLimits(writer, envelope.limits);
  writer.Number(envelope.mounts.size());
  for (const policy::Mount& mount : envelope.mounts) {
    writer.Text(mount.host);
    writer.Text(mount.at);
    writer.Number(static_cast<uint8_t>(mount.access));
    writer.Number<uint8_t>(mount.dangerous ? 1 : 0);
  }
  writer.Text(envelope.workspace);
  writer.Number(static_cast<uint8_t>(envelope.workspace_access));
  writer.Texts(envelope.inputs);
  writer.Texts(envelope.runtimes);
  writer.Texts(envelope.optional_runtimes);
  writer.Number<uint8_t>(envelope.exec ? 1 : 0);
  writer.Number(envelope.env.size());
  for (const auto& [name, value] : envelope.env) {
    writer.Text(name);
    writer.Text(value);
  }
  writer.Text(envelope.cwd);
  writer.Number(envelope.uid);
  writer.Number(static_cast<uint8_t>(envelope.syscalls));
  writer.Text(envelope.imported_seccomp);
}

policy::Envelope ReadEnvelope(Reader& reader) {
  policy::Envelope envelope;
  envelope.level = reader.Choice(policy::Level::kAuto);
  for (uint32_t left = reader.Count(); left > 0; --left) {
    envelope.floor.Add(reader.Choice(policy::Layer::kCgroupIo));
  }
  envelope.limits = ReadLimits(reader);
  for (uint32_t left = reader.Count(); left > 0; --left) {
    policy::Mount mount;
    mount.host = reader.Text();
    mount.at = reader.Text();
    mount.access = reader.Choice(policy::Access::kWrite);
    mount.dangerous = reader.Flag();
    envelope.mounts.push_back(std::move(mount));
  }
  envelope.workspace = reader.Text();
  envelope.workspace_access = reader.Choice(policy::Access::kWrite);
  envelope.inputs = reader.Texts();
  envelope.runtimes = reader.Texts();
  envelope.optional_runtimes = reader.Texts();
  envelope.exec = reader.Flag();
  for (uint32_t left = reader.Count(); left > 0; --left) {
    std::string name = reader.Text();
    envelope.env.emplace_back(std::move(name), reader.Text());
  }
  envelope.cwd = reader.Text();
  envelope.uid = reader.Number<uint32_t>();
  envelope.syscalls = reader.Choice(policy::SyscallProfile::kImported);
  envelope.imported_seccomp = reader.Text();
  return envelope;
}

Error Malformed(const char* what) {
  return Internal("internal.wire", std::string("a malformed ") + what + " from another role");
}

}  // namespace

std::string EncodeRun(const RunRequest& request) {
  Writer writer(kRunMagic);
  WriteEnvelope(writer, request.envelope);
  writer.Texts(request.command);
  writer.Number<uint8_t>(request.script ? 1 : 0);
  writer.Number(request.tenant);
  return writer.Take();
}

Result<RunRequest> DecodeRun(std::string_view bytes) {
  Reader reader(bytes, kRunMagic);
  RunRequest request;
  request.envelope = ReadEnvelope(reader);
  request.command = reader.Texts();
  request.script = reader.Flag();
  request.tenant = reader.Number<uint32_t>();
  if (!reader.Complete() || request.command.empty() || !Sane(request.envelope.limits)) {
    return Malformed("request");
  }
  for (const auto& [name, value] : request.envelope.env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return Malformed("request");
    }
  }
  return request;
}

std::string EncodeReport(const RunReport& report) {
  Writer writer(kReportMagic);
  WriteSigned(writer, report.exit_status);
  writer.Number<uint8_t>(report.error ? 1 : 0);
  const Error error = report.error.value_or(Error{});
  writer.Number(static_cast<uint8_t>(error.kind));
  writer.Text(error.code);
  writer.Text(error.message);
  writer.Text(error.hint);
  writer.Text(report.receipt);
  return writer.Take();
}

Result<RunReport> DecodeReport(std::string_view bytes) {
  Reader reader(bytes, kReportMagic);
  RunReport report;
  const int64_t status = ReadSigned(reader);
  const bool failed = reader.Flag();
  Error error;
  error.kind = reader.Choice(ErrorKind::kNotExecutable);
  error.code = reader.Text();
  error.message = reader.Text();
  error.hint = reader.Text();
  report.receipt = reader.Text();
  if (!reader.Complete() || status < 0 || status > 255) {
    return Malformed("report");
  }
  report.exit_status = static_cast<int32_t>(status);
  if (failed) {
    report.error = std::move(error);
  }
  return report;
}

}  // namespace coffer::call
