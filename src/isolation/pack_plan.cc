// SPDX-License-Identifier: Apache-2.0
#include "isolation/pack_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/syscall.h>

#include <span>
#include <type_traits>
#include <vector>

#include "base/sys.h"
#include "isolation/child/plan_block.h"

namespace coffer::isolation {
namespace {

using raw::Arg;
using raw::Syscall;

constexpr long kNoExecSeal =
    8;  // MFD_NOEXEC_SEAL, Linux 6.3; where vm.memfd_noexec is 2 it is demanded

class Packer {
 public:
  Packer() : bytes_(sizeof(PlanBlock), '\0') {
    empty_ = bytes_.size();
    bytes_.push_back('\0');
  }

  PackedText Text(const std::string& text) {
    if (text.empty()) {
      return empty_;
    }
    const uint64_t offset = bytes_.size();
    bytes_.append(text.c_str(), text.size() + 1);
    return offset;
  }
  template <class Record>
  PackedList<Record> List(std::span<const Record> records) {
    static_assert(std::is_trivially_copyable_v<Record>);
    Align();
    const uint64_t offset = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(records.data()), records.size_bytes());
    return {offset, records.size()};
  }
  PackedList<PackedText> Texts(const std::vector<std::string>& texts) {
    std::vector<PackedText> offsets;
    offsets.reserve(texts.size());
    for (const std::string& text : texts) {
      offsets.push_back(Text(text));
    }
    return List<PackedText>(offsets);
  }
  PackedRoot Root(const RootPart& root);
  // Ends the block with the call.
  Result<uint64_t> CallAtEnd(const Call& call);

  std::string Finish(PlanBlock block) {
    if (block.call == 0) {
      bytes_.push_back('\0');
      block.call = bytes_.size() +
                   (alignof(CallBlock) - bytes_.size() % alignof(CallBlock)) % alignof(CallBlock);
      bytes_.resize(block.call);
    }
    block.magic = kPlanMagic;
    block.size = bytes_.size();
    memcpy(bytes_.data(), &block, sizeof(block));
    return std::move(bytes_);
  }

 private:
  void Align() { bytes_.resize((bytes_.size() + 7) / 8 * 8); }
  PackedFile File(const PrivateFile& file) {
    const PackedText at = Text(file.at);
    const uint64_t content = bytes_.size();
    bytes_ += file.content;
    return {at, content, file.content.size(), file.mode, 0};
  }
  PackedBind Bind(const BindMount& bind) {
    PackedBind packed{};
    packed.host = Text(bind.host);
    packed.at = Text(bind.at);
    packed.overlay_upper = Text(bind.overlay_upper);
    packed.overlay_work = Text(bind.overlay_work);
    packed.expected_dev = bind.expected_dev;
    packed.expected_ino = bind.expected_ino;
    packed.place_dev = bind.place_dev;
    packed.place_ino = bind.place_ino;
    packed.device = bind.device;
    packed.directory = bind.directory;
    packed.writable = bind.writable;
    packed.executable = bind.executable;
    packed.supervised = bind.supervised;
    packed.covers = bind.covers;
    packed.link = bind.link;
    packed.usable_device = bind.usable_device;
    return packed;
  }

  std::string bytes_;
  PackedText empty_ = 0;
};

PackedRoot Packer::Root(const RootPart& root) {
  constexpr size_t kRest = 32 << 10;  // of most calls: everything but the files
  size_t contents = 0;
  for (const PrivateFile& file : root.files) {
    contents += file.content.size();
  }
  bytes_.reserve(bytes_.size() + contents + kRest);
  PackedRoot packed{};
  packed.dirs = Texts(root.dirs);
  std::vector<PackedTmpfs> tmpfs;
  for (const PrivateTmpfs& place : root.tmpfs) {
    tmpfs.push_back({Text(place.at), place.bytes, place.inodes, place.mode, place.executable});
  }
  packed.tmpfs = List<PackedTmpfs>(tmpfs);
  std::vector<PackedFile> files;
  for (const PrivateFile& file : root.files) {
    files.push_back(File(file));
  }
  packed.files = List<PackedFile>(files);
  std::vector<PackedLink> links;
  for (const PrivateLink& link : root.links) {
    const PackedText at = Text(link.at);
    links.push_back({at, Text(link.target)});
  }
  packed.links = List<PackedLink>(links);
  std::vector<PackedBind> binds;
  for (const BindMount& bind : root.binds) {
    binds.push_back(Bind(bind));
  }
  packed.binds = List<PackedBind>(binds);
  packed.hidden = Texts(root.hidden);
  std::vector<PackedCover> covers;
  for (const FileCover& cover : root.covers) {
    const PackedText from = Text(cover.from);
    covers.push_back({from, Text(cover.at)});
  }
  packed.covers = List<PackedCover>(covers);
  packed.overlays = Text(root.overlays);
  return packed;
}

Result<uint64_t> Packer::CallAtEnd(const Call& call) {
  Align();
  const uint64_t offset = bytes_.size();
  const size_t room = CallBytes(call);
  bytes_.resize(offset + sizeof(CallBlock) + room);
  TRY(PackCall(call, room, reinterpret_cast<CallBlock*>(bytes_.data() + offset)));
  return offset;
}

}  // namespace

std::string PackRoot(const RootPart& root) {
  Packer packer;
  PlanBlock block{};
  block.root = packer.Root(root);
  block.landlock_canary = packer.Text("");
  block.landlock = packer.List<PackedRule>({});
  block.filter = block.unserved_filter = packer.List<sock_filter>({});
  return packer.Finish(block);
}

Result<std::string> PackCallPlan(const BoundaryPlan& plan, const Call& call) {
  Packer packer;
  PlanBlock block{};
  block.root = packer.Root(plan.call_root);
  block.landlock_abi = plan.landlock_abi;
  block.landlock_canary = packer.Text(plan.landlock_canary);
  std::vector<PackedRule> rules;
  for (const LandlockRule& rule : plan.landlock) {
    rules.push_back({packer.Text(rule.path), rule.rights, rule.required, rule.fd});
  }
  block.landlock = packer.List<PackedRule>(rules);
  block.filter = packer.List<sock_filter>(plan.filter);
  block.unserved_filter = packer.List<sock_filter>(plan.unserved_filter);
  TRY_ASSIGN(block.call, packer.CallAtEnd(call));
  return packer.Finish(block);
}

Result<UniqueFd> SealInMemory(const std::string& bytes) {
  constexpr long kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long file = Syscall(SYS_memfd_create, Arg("coffer-plan"), kFlags | kNoExecSeal);
  if (file == -EINVAL) {
    file = Syscall(SYS_memfd_create, Arg("coffer-plan"), kFlags);
  }
  if (file < 0) {
    return sys::ErrnoError("isolation.memory", "cannot make a memory file for a boundary", file);
  }
  UniqueFd held(static_cast<int>(file));
  TRY(sys::WriteAll(held.get(), bytes));
  const long sealed = Syscall(SYS_fcntl, file, F_ADD_SEALS,
                              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  if (sealed < 0) {
    return sys::ErrnoError("isolation.memory", "cannot seal the memory file of a boundary", sealed);
  }
  return held;
}

}  // namespace coffer::isolation
