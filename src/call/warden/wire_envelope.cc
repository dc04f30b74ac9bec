// SPDX-License-Identifier: Apache-2.0
#include "call/warden/wire_envelope.h"

namespace coffer::call {

void WriteLimits(WireWriter& writer, const policy::Limits& limits) {
  writer.Signed(limits.cpu.count());
  writer.Signed(limits.wall.count());
  for (const uint64_t value : {limits.memory, limits.processes, limits.open_files, limits.disk,
                               limits.inodes, limits.io, limits.output, limits.tmp}) {
    writer.Number(value);
  }
}

policy::Limits ReadLimits(WireReader& reader) {
  policy::Limits limits;
  limits.cpu = Nanos(reader.Signed());
  limits.wall = Nanos(reader.Signed());
  for (uint64_t* value : {&limits.memory, &limits.processes, &limits.open_files, &limits.disk,
                          &limits.inodes, &limits.io, &limits.output, &limits.tmp}) {
    *value = reader.Number<uint64_t>();
  }
  return limits;
}

bool AreUsable(const policy::Limits& limits) {
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

void WriteEnvelope(WireWriter& writer, const policy::Envelope& envelope) {
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
    writer.Flag(mount.dangerous);
    writer.Flag(mount.system);
  }
  writer.Text(envelope.workspace);
  writer.Number(static_cast<uint8_t>(envelope.workspace_access));
  writer.Texts(envelope.inputs);
  writer.Texts(envelope.runtimes);
  writer.Texts(envelope.optional_runtimes);
  writer.Flag(envelope.exec);
  writer.Flag(envelope.overlay);
  writer.Number(envelope.env.size());
  for (const auto& [name, value] : envelope.env) {
    writer.Text(name);
    writer.Text(value);
  }
  writer.Text(envelope.cwd);
  writer.Number(envelope.uid);
  writer.Number(static_cast<uint8_t>(envelope.syscalls));
  writer.Text(envelope.imported_seccomp);
  writer.Texts(envelope.exports);
  writer.Texts(envelope.network);
  writer.Number(envelope.connections);
}

policy::Envelope ReadEnvelope(WireReader& reader) {
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
    mount.system = reader.Flag();
    envelope.mounts.push_back(std::move(mount));
  }
  envelope.workspace = reader.Text();
  envelope.workspace_access = reader.Choice(policy::Access::kWrite);
  envelope.inputs = reader.Texts();
  envelope.runtimes = reader.Texts();
  envelope.optional_runtimes = reader.Texts();
  envelope.exec = reader.Flag();
  envelope.overlay = reader.Flag();
  for (uint32_t left = reader.Count(); left > 0; --left) {
    std::string name = reader.Text();
    envelope.env.emplace_back(std::move(name), reader.Text());
  }
  envelope.cwd = reader.Text();
  envelope.uid = reader.Number<uint32_t>();
  envelope.syscalls = reader.Choice(policy::SyscallProfile::kImported);
  envelope.imported_seccomp = reader.Text();
  envelope.exports = reader.Texts();
  envelope.network = reader.Texts();
  envelope.connections = reader.Number<uint64_t>();
  return envelope;
}

}  // namespace coffer::call
