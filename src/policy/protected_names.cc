// SPDX-License-Identifier: Apache-2.0
#include "policy/protected_names.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "policy/folded_name.h"

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
    ProtectedName{".pre-commit-config.yml", "prek"},
    ProtectedName{"prek.toml", "prek"},
    ProtectedName{"captainhook.json", "CaptainHook"},
    ProtectedName{".lefthook", "lefthook"},
    ProtectedName{".lefthook-local", "lefthook"},
    ProtectedName{".zed", "an editor"},
    ProtectedName{".fleet", "an editor"},
    ProtectedName{".vs", "an editor"},
    ProtectedName{".windsurf", "an editor"},
    ProtectedName{".codex", "an agent"},
    ProtectedName{".gemini", "an agent"},
    ProtectedName{".continue", "an agent"},
    ProtectedName{".opencode", "an agent"},
    ProtectedName{"hooks", "an agent", false, ".github"},
    ProtectedName{".agent", "an agent"},
    ProtectedName{".agents", "an agent"},
    ProtectedName{".amp", "an agent"},
    ProtectedName{".augment", "an agent"},
    ProtectedName{".cline", "an agent"},
    ProtectedName{".clinerules", "an agent"},
    ProtectedName{".codebuddy", "an agent"},
    ProtectedName{".copilot", "an agent"},
    ProtectedName{".goose", "an agent"},
    ProtectedName{".openhands", "an agent"},
    ProtectedName{".pi", "an agent"},
    ProtectedName{".rovodev", "an agent"},
    ProtectedName{".tabnine", "an agent"},
    ProtectedName{".trae", "an agent"},
    ProtectedName{".vibe", "an agent"},
    ProtectedName{".dir-locals.el", "Emacs"},
    ProtectedName{".dir-locals-2.el", "Emacs"},
    ProtectedName{".exrc", "vi"},
    ProtectedName{".nvim.lua", "Neovim"},
    ProtectedName{".gdbinit", "gdb"},
    ProtectedName{".lldbinit", "lldb"},
    ProtectedName{".vimrc", "Vim"},
    ProtectedName{".nvimrc", "Neovim"},
    ProtectedName{".nvim", "Neovim"},
    ProtectedName{".lazy.lua", "Neovim"},
    ProtectedName{".vim", "Vim"},
    ProtectedName{".lvimrc", "Vim"},
    ProtectedName{".local.vimrc", "Vim"},
    // Interpreters and debuggers that read them in the working directory.
    ProtectedName{".Rprofile", "R"},
    ProtectedName{".Renviron", "R"},
    ProtectedName{".ghci", "GHCi"},
    ProtectedName{".iex.exs", "IEx"},
    ProtectedName{".irbrc", "irb"},
    ProtectedName{".ocamlinit", "OCaml"},
    ProtectedName{".octaverc", "Octave"},
    ProtectedName{".pdbrc", "Python's debugger"},
    ProtectedName{".pryrc", "Pry"},
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
    ProtectedName{".mise", "mise"},
    ProtectedName{"mise", "mise", false, ".config"},
    ProtectedName{"config.toml", "mise", false, "mise"},
    ProtectedName{".rtx.toml", "mise"},
    ProtectedName{".shadowenv.d", "shadowenv"},
    // Repositories of other systems: their own files say what runs.
    ProtectedName{".hg", "Mercurial"},
    ProtectedName{".jj", "Jujutsu"},
    ProtectedName{".sl", "Sapling"},
};

// STEM, or STEM.ANYTHING, that ends in one of the endings; a leading dot does not count.
struct Family {
  std::string_view stem;
  std::span<const std::string_view> endings;
  ProtectedName known;
};

constexpr std::string_view kLefthookEndings[] = {".yml", ".yaml", ".toml", ".json", ".jsonc"};
constexpr std::string_view kToml[] = {".toml"};
constexpr std::string_view kEditorWorkspaces[] = {".code-workspace"};

constexpr std::array kFamilies = {
    Family{"lefthook", kLefthookEndings, {"lefthook.yml", "lefthook"}},
    Family{"lefthook-local", kLefthookEndings, {"lefthook-local.yml", "lefthook"}},
    Family{"mise", kToml, {"mise.toml", "mise"}},
    Family{"", kEditorWorkspaces, {".code-workspace", "VS Code"}},
};

constexpr std::array kGitParts = {
    GitPart{"commondir", false, ".\n"},  // git then looks where it would have looked without it
    GitPart{"config", false, ""},
    GitPart{"config.worktree", false, ""},
    GitPart{"hooks", true, ""},
};

bool StartsWith(std::string_view text, std::string_view start) {
  return text.size() >= start.size() &&
         std::equal(start.begin(), start.end(), text.begin(),
                    [](char x, char y) { return x == LowerCase(y); });
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && StartsWith(text.substr(text.size() - end.size()), end);
}

bool IsOf(const Family& family, std::string_view name) {
  if (!family.stem.empty()) {
    name.remove_prefix(name.starts_with('.') ? 1 : 0);
    if (!StartsWith(name, family.stem) || name.size() == family.stem.size() ||
        name[family.stem.size()] != '.') {
      return false;
    }
  }
  return std::any_of(family.endings.begin(), family.endings.end(),
                     [&](std::string_view ending) { return EndsWith(name, ending); });
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

bool IsPlainAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

const ProtectedName* FindAsciiName(std::string_view name, std::string_view directory) {
  if (name.empty()) {
    return nullptr;
  }
  if (SameName(name, kGit.name)) {
    return &kGit;
  }
  const auto* const family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                          [&](const Family& one) { return IsOf(one, name); });
  if (family != kFamilies.end()) {
    return &family->known;
  }
  // Nearly every name in a project ends here.
  constexpr std::string_view kFirst = ".chlmop";
  static_assert(
      std::all_of(kProtectedNames.begin(), kProtectedNames.end(), [&](const ProtectedName& known) {
        return kFirst.find(known.name[0]) != std::string_view::npos;
      }));
  if (kFirst.find(LowerCase(name[0])) == std::string_view::npos) {
    return nullptr;
  }
  const auto* const found =
      std::find_if(kProtectedNames.begin(), kProtectedNames.end(), [&](const ProtectedName& known) {
        return SameName(name, known.name) && (known.in.empty() || SameName(directory, known.in));
      });
  return found == kProtectedNames.end() ? nullptr : found;
}

}  // namespace

std::span<const ProtectedName> ProtectedNames() { return kProtectedNames; }

const ProtectedName* FindProtectedName(std::string_view name, std::string_view directory) {
  return IsPlainAscii(name) && IsPlainAscii(directory)
             ? FindAsciiName(name, directory)
             : FindAsciiName(FoldedName(name), FoldedName(directory));
}

std::span<const GitPart> GitParts() { return kGitParts; }

bool IsPackageDirectory(std::string_view name) {
  return name == "node_modules" || name == "site-packages" || name == "dist-packages";
}

}  // namespace coffer::policy
