// SPDX-License-Identifier: Apache-2.0
#include "policy/protected_names.h"

#include <algorithm>
#include <array>
#include <string>

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
    ProtectedName{".huskyrc", "husky"},
    ProtectedName{".rusty-hook.toml", "rusty-hook"},
    ProtectedName{"rusty-hook.toml", "rusty-hook"},
    ProtectedName{".lefthook", "lefthook"},
    ProtectedName{".lefthook-local", "lefthook"},
    ProtectedName{".zed", "an editor"},
    ProtectedName{".fleet", "an editor"},
    ProtectedName{".vs", "an editor"},
    ProtectedName{".theia", "an editor"},
    ProtectedName{".lapce", "an editor"},
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
    ProtectedName{".gvimrc", "Vim"},
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
    ProtectedName{".pijul", "Pijul"},
    ProtectedName{".repo", "repo"},
    ProtectedName{"_darcs", "Darcs"},
    ProtectedName{"_MTN", "Monotone"},
    ProtectedName{".svn", "Subversion"},
    ProtectedName{".bzr", "Bazaar"},
    ProtectedName{".fslckout", "Fossil"},
    ProtectedName{"_FOSSIL_", "Fossil"},
    ProtectedName{".fos", "Fossil"},
    // Lazygit reads it above a repository, gh-dash at the top of one.
    ProtectedName{".lazygit.yml", "lazygit"},
    ProtectedName{".gh-dash.yml", "gh-dash"},
    ProtectedName{".gh-dash.yaml", "gh-dash"},
    ProtectedName{".ropeproject", "rope, in editors of Python,"},
    // Language servers start what they say when an editor opens the project.
    ProtectedName{".bsp", "an editor"},
    ProtectedName{"buildServer.json", "an editor"},
    ProtectedName{".sourcekit-lsp", "an editor"},
    ProtectedName{"hie.yaml", "an editor"},
    ProtectedName{".hie-bios", "an editor"},
    ProtectedName{".lsp", "an editor"},
    ProtectedName{".luarc.json", "an editor"},
    ProtectedName{".luarc.jsonc", "an editor"},
    ProtectedName{".ycm_extra_conf.py", "YouCompleteMe, in Vim,"},
    ProtectedName{".project", "Eclipse"},
    ProtectedName{".settings", "Eclipse"},
    ProtectedName{".factorypath", "Eclipse"},
    ProtectedName{"omnisharp.json", "an editor"},
    ProtectedName{".obsidian", "Obsidian"},
    ProtectedName{".lite_project.lua", "Lite XL"},
    ProtectedName{".jupytext.py", "Jupyter"},
    // Editors call ctags when a file is saved; its options name the file that it writes.
    ProtectedName{".ctags", "ctags"},
    ProtectedName{".ctags.d", "ctags"},
    ProtectedName{"ctags.d", "ctags"},
    ProtectedName{".valgrindrc", "Valgrind"},
    // R restores what was saved, and calls .First in it.
    ProtectedName{".RData", "R"},
    ProtectedName{"irb.rc", "irb"},
    ProtectedName{"_irbrc", "irb"},
    ProtectedName{"$irbrc", "irb"},
    ProtectedName{"irb", "irb", false, ".config"},
    ProtectedName{".byebugrc", "byebug"},
    ProtectedName{".perldb", "Perl's debugger"},
    ProtectedName{".psysh.php", "PsySH"},
    ProtectedName{".erlang", "Erlang"},
    ProtectedName{".prototools", "proto"},
    ProtectedName{"hk.pkl", "hk, for git,"},
    ProtectedName{"hk.local.pkl", "hk, for git,"},
    ProtectedName{".overcommit.yml", "Overcommit, for git,"},
    ProtectedName{".git-hooks", "Overcommit, for git,"},
    ProtectedName{".gitlint", "gitlint, for git,"},
    ProtectedName{"duo", "an agent", false, ".gitlab"},
    ProtectedName{"firebender.json", "an agent"},
    ProtectedName{".grok", "an agent"},
    ProtectedName{".iflow", "an agent"},
    ProtectedName{".eca", "an agent"},
    ProtectedName{".neovate", "an agent"},
};

constexpr std::array kNamesInGit = {
    ProtectedName{"lazygit.yml", "lazygit"},
    ProtectedName{"glab-cli", "glab"},
    ProtectedName{"sl", "Sapling"},
    ProtectedName{"arc", "Arcanist"},
    ProtectedName{"crypt", "transcrypt, for git,"},
};

// STEM, or STEM.ANYTHING, that ends in one of the endings; a leading dot does not count.
struct Family {
  std::string_view stem;
  std::span<const std::string_view> endings;
  ProtectedName known;
};

constexpr std::string_view kLefthookEndings[] = {".yml", ".yaml", ".toml", ".json", ".jsonc"};
constexpr std::string_view kHuskyEndings[] = {".json", ".js", ".cjs", ".yml", ".yaml"};
constexpr std::string_view kScript[] = {".js"};
constexpr std::string_view kToml[] = {".toml"};
constexpr std::string_view kEditorWorkspaces[] = {".code-workspace"};
constexpr std::string_view kSublimeProjects[] = {".sublime-project"};
constexpr std::string_view kGrumPhpEndings[] = {".yml", ".yaml", ".dist"};
constexpr std::string_view kEnvironments[] = {".rc"};

constexpr std::array kFamilies = {
    Family{"lefthook", kLefthookEndings, {"lefthook.yml", "lefthook"}},
    Family{"lefthook-local", kLefthookEndings, {"lefthook-local.yml", "lefthook"}},
    Family{"huskyrc", kHuskyEndings, {".huskyrc.json", "husky"}},
    Family{"husky.config", kScript, {"husky.config.js", "husky"}},
    Family{"mise", kToml, {"mise.toml", "mise"}},
    Family{"", kEditorWorkspaces, {".code-workspace", "VS Code"}},
    // Its settings may hold the commands of language servers.
    Family{"", kSublimeProjects, {".sublime-project", "Sublime Text"}},
    Family{"grumphp", kGrumPhpEndings, {"grumphp.yml", "GrumPHP, for git,"}},
    // An .envrc that says `use flake` or `use nix` reads the environment that was kept.
    Family{"", kEnvironments, {".rc", "direnv", false, ".direnv"}},
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

bool CountsIn(const ProtectedName& known, std::string_view directory) {
  return known.in.empty() || SameName(directory, known.in);
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
  const auto* const family = std::find_if(
      kFamilies.begin(), kFamilies.end(),
      [&](const Family& one) { return IsOf(one, name) && CountsIn(one.known, directory); });
  if (family != kFamilies.end()) {
    return &family->known;
  }
  // Nearly every name in a project ends here.
  constexpr std::string_view kFirst = ".$bcdfhilmopr_";
  static_assert(
      std::all_of(kProtectedNames.begin(), kProtectedNames.end(), [&](const ProtectedName& known) {
        return kFirst.find(known.name[0]) != std::string_view::npos;
      }));
  if (kFirst.find(LowerCase(name[0])) == std::string_view::npos) {
    return nullptr;
  }
  const auto* const found =
      std::find_if(kProtectedNames.begin(), kProtectedNames.end(), [&](const ProtectedName& known) {
        return SameName(name, known.name) && CountsIn(known, directory);
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

const ProtectedName* FindNameInGitDirectory(std::string_view name) {
  const std::string folded = FoldedName(name);
  const auto* const found =
      std::find_if(kNamesInGit.begin(), kNamesInGit.end(),
                   [&](const ProtectedName& known) { return folded == known.name; });
  return found == kNamesInGit.end() ? nullptr : found;
}

std::span<const GitPart> GitParts() { return kGitParts; }

bool IsPackageDirectory(std::string_view name) {
  return name == "node_modules" || name == "site-packages" || name == "dist-packages";
}

}  // namespace coffer::policy
