// SPDX-License-Identifier: Apache-2.0
//
// A writable directory of the host in which a call cannot leave anything that runs code on the host later.
//
// Before the call: what is protected (isolation/project_scan.h) becomes a read-only mount of its
// own. A mount point can be neither renamed nor replaced. A git directory and every directory above
// it become mount points too, writable ones, so that no repository can be moved away and another
// one put in its place. A link is mounted on itself, as is every link that it leads over, and the
// directories above them are mount points too. What a git configuration names in the tree is
// protected likewise (isolation/git_programs.h). Names that do not exist yet have placeholders
// (placeholder.h). A protected file with a second name is refused: it could be written by that
// name.
//
// After the call: the tree is looked through again. A protected name or git directory that was not there before is
// planted, and is set aside unless the caller keeps it. So is a program that a git configuration named before there was
// one, and a list of names by which git would write elsewhere (isolation/git_index.h). This is for what cannot be held: names deep in the tree, and what stands behind a directory that the payload
// moved. Between making such a name and the end of the call a program on the host can see it (docs/HONEST_LIMITS.md).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "call/run/placeholder.h"
#include "isolation/compose.h"
#include "isolation/git_programs.h"
#include "isolation/project_scan.h"
#include "isolation/tree_path.h"

namespace coffer::call {

struct Planted {
  std::string path;              // relative to the project, or absolute outside
  std::string run_by;            // "VS Code"
  std::string set_aside;         // where it is now; empty: it is where it was
  bool written_through = false;  // a link: the program writes where it leads
  bool program = false;          // what a git configuration makes git run
  bool on_path = false;          // what git finds on the caller's PATH
  bool names = false;            // git reads or writes files by the names in it
};

enum class PlantedRule : uint8_t { kSetAside, kKeep };

class ProtectedTree {
 public:
  struct Options {
    PlantedRule rule = PlantedRule::kSetAside;
    bool hold_names = false;            // at the top: policy::ProtectedName::held
    std::vector<std::string> more;      // further paths to protect, relative, or absolute ones
                                        // that lead into the tree
    std::vector<std::string> programs;  // further ones that git runs if files are made there
    std::vector<std::string> on_path;   // and by the caller's PATH
    std::vector<std::string>
        read_only;  // directories that are read-only, though nothing there is protected
    std::vector<std::string> writable;  // directories inside those that are not
  };

  // Looks through the tree of `root` and appends mounts that lie within the last one of `mounts`, which is the root's.
  // Fails if something cannot be protected; then no placeholder is left.
  static Result<ProtectedTree> Open(isolation::HostPath root, const Options& options,
                                    std::vector<isolation::OpenedMount>& mounts);

  // Those that there were before the call, absolute.
  std::vector<std::string> git_directories() const;
  // Protected names that there were before the call, absolute.
  std::vector<std::string> protected_names() const;
  // The names at the top that a placeholder keeps free, each an empty directory.
  const std::vector<std::string>& held_names() const { return held_names_; }

  // Once nothing runs any more: removes placeholders, finds planted files and sets them aside. One
  // that cannot be set aside is in the list with an empty place. Fails if the tree cannot be
  // searched.
  Result<std::vector<Planted>> Settle();
  // Then: lock files that the call left in git directories. They stay, because a git of the host may hold one.
  const std::vector<std::string>& left_locks() const { return left_locks_; }

 private:
  Status ProtectNames();
  Status ProtectPrograms();
  Status ProtectGitDirectories();
  Status HoldNames();
  Status Protect(const isolation::FoundName& found);
  Status ProtectPath(const std::string& path);
  Status ProtectNamed(const std::string& path);
  Status ProtectGitNames(const isolation::GitNames& names);
  Status ProtectTarget(const isolation::FoundName& link);
  Status ProtectLinksTo(const isolation::TreePath& target);
  Status WatchProgram(const std::string& path);
  Status ProtectLinksIn(const std::string& directory);
  bool LiesInReadOnly(const std::string& path) const;
  Status Watch(const std::string& path);
  void DropPinsInReadOnly();
  static std::string Above(const std::string& path);
  Status Pin(const std::string& path);
  Status Hold(const std::string& directory, const std::string& name, const Placeholder::Kind& kind);
  Status Mount(const std::string& path, policy::Access access);
  bool IsReadOnly(const std::string& path) const;
  bool IsFixed(const isolation::FoundName& found) const;
  std::vector<Planted> FindPlanted(const isolation::ProjectScan& after) const;
  std::vector<std::string> FindMisleadingLists(const isolation::ProjectScan& after) const;
  bool AreConflictsHere(const isolation::FoundName& list, const std::string& text,
                        const std::string& config) const;

  isolation::HostPath root_;
  Options options_;
  isolation::ProjectScan before_;
  std::vector<isolation::OpenedMount> mounts_;  // until Open hands them out
  std::set<std::string> read_only_;             // paths that are mounted read-only
  std::set<std::string> pinned_;                // directories that cannot be renamed
  std::set<std::string> watched_;               // paths that must not come into being
  std::set<std::string> programs_;              // where no file may come into being
  std::set<std::string> on_path_;               // of those, what git would find on PATH
  std::vector<std::string> left_locks_;
  std::vector<Placeholder> placeholders_;
  std::vector<std::string> held_names_;
};

}  // namespace coffer::call
