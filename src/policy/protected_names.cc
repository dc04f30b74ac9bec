// SPDX-License-Identifier: Apache-2.0
#include "policy/protected_names.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"

namespace coffer::policy {
namespace {

constexpr ProtectedName kGit = {".git", "git", true};

constexpr std::array kProtectedNames = {
    ProtectedName{".vscode", "VS Code", true},
    ProtectedName{".idea", "an editor of JetBrains", true},
    ProtectedName{".claude", "an agent", true},
    ProtectedName{".cursor", "an editor", true},
    ProtectedName{".envrc", "direnv", true},
    ProtectedName{".husky", "git", true},
    ProtectedName{".devcontainer", "an editor", true},
    ProtectedName{".coffer.toml", "coffer", true},
    // Programs stop at an empty directory of these names, or they are too rare to show one in every project.
    ProtectedName{".pre-commit-config.yaml", "pre-commit"},
    ProtectedName{".devcontainer.json", "an editor"},
    ProtectedName{".mcp.json", "an agent"},
    ProtectedName{".githooks", "git"},
    ProtectedName{".lefthook", "lefthook"},
    ProtectedName{"lefthook.yml", "lefthook"},
    ProtectedName{".lefthook.yml", "lefthook"},
    ProtectedName{".zed", "an editor"},
    ProtectedName{".fleet", "an editor"},
    ProtectedName{".vs", "an editor"},
    ProtectedName{".windsurf", "an editor"},
    ProtectedName{".codex", "an agent"},
    ProtectedName{".gemini", "an agent"},
    ProtectedName{".continue", "an agent"},
    ProtectedName{".opencode", "an agent"},
    ProtectedName{".dir-locals.el", "Emacs"},
    ProtectedName{".exrc", "vi"},
    ProtectedName{".nvim.lua", "Neovim"},
    ProtectedName{".gdbinit", "gdb"},
    ProtectedName{".lldbinit", "lldb"},
    ProtectedName{".vimrc", "Vim"},
    ProtectedName{".nvimrc", "Neovim"},
    ProtectedName{".Rprofile", "R"},
    ProtectedName{".kiro", "an agent"},
    ProtectedName{".roo", "an agent"},
    ProtectedName{".aider.conf.yml", "an agent"},
    ProtectedName{".amazonq", "an agent"},
    ProtectedName{".kilocode", "an agent"},
    ProtectedName{".junie", "an agent"},
    ProtectedName{".qwen", "an agent"},
    ProtectedName{".factory", "an agent"},
    ProtectedName{"opencode.json", "an agent"},
    ProtectedName{"opencode.jsonc", "an agent"},
    ProtectedName{".crush.json", "an agent"},
    ProtectedName{"crush.json", "an agent"},
    ProtectedName{".helix", "Helix"},
    ProtectedName{".externalToolBuilders", "Eclipse"},
    // Trusted by its path: what it says may change afterwards.
    ProtectedName{"mise.toml", "mise"},
    ProtectedName{".mise.toml", "mise"},
    ProtectedName{"mise.local.toml", "mise"},
    ProtectedName{".mise.local.toml", "mise"},
    ProtectedName{".mise", "mise"},
    // Repositories of other systems: their own files say what runs.
    ProtectedName{".hg", "Mercurial"},
    ProtectedName{".jj", "Jujutsu"},
    ProtectedName{".sl", "Sapling"},
};

constexpr std::array kGitParts = {
    GitPart{"commondir", false, ".\n"},  // git then looks where it would have looked without it
    GitPart{"config", false, ""},
    GitPart{"config.worktree", false, ""},
    GitPart{"hooks", true, ""},
};

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

}  // namespace

std::span<const ProtectedName> ProtectedNames() { return kProtectedNames; }

const ProtectedName* FindProtectedName(std::string_view name) {
  // Nearly every name in a project ends here.
  constexpr std::string_view kFirst = ".clmo";
  static_assert(
      std::all_of(kProtectedNames.begin(), kProtectedNames.end(), [&](const ProtectedName& known) {
        return kFirst.find(known.name[0]) != std::string_view::npos;
      }));
  if (name.empty() || kFirst.find(LowerCase(name[0])) == std::string_view::npos) {
    return nullptr;
  }
  if (SameName(name, kGit.name)) {
    return &kGit;
  }
  const auto* const found =
      std::find_if(kProtectedNames.begin(), kProtectedNames.end(),
                   [&](const ProtectedName& known) { return SameName(name, known.name); });
  return found == kProtectedNames.end() ? nullptr : found;
}

std::span<const GitPart> GitParts() { return kGitParts; }

bool IsPackageDirectory(std::string_view name) {
  return name == "node_modules" || name == "site-packages" || name == "dist-packages";
}

}  // namespace coffer::policy
