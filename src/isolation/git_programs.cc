// SPDX-License-Identifier: Apache-2.0
#include "isolation/git_programs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/regular_file.h"
#include "base/sys.h"
#include "isolation/git_config.h"
#include "isolation/home_directories.h"
#include "isolation/links_into.h"
#include "isolation/path_directories.h"
#include "isolation/runtime/real_path.h"

namespace coffer::isolation {
namespace {

constexpr size_t kLongestConfig = 8 << 20;
constexpr size_t kLongestLine = 8192;
constexpr unsigned long kMostOfEnvironment = 1000;  // settings
constexpr size_t kMostConfigs = 32;  // one and what it includes; git itself stops at ten levels
constexpr std::string_view kNoPrograms[] = {"advice", "author", "branch", "color", "committer",
                                            "fetch",  "log",    "pack",   "pull",  "push",
                                            "safe",   "status", "url",    "user"};
// Values that name files which git does not run, and which it does not take programs from.
constexpr std::string_view kNoProgramKeys[] = {"allowedsignersfile",
                                               "attributesfile",
                                               "cookiefile",
                                               "excludesfile",
                                               "fetch",
                                               "file",
                                               "gitdir",
                                               "ignorerevsfile",
                                               "merge",
                                               "pushurl",
                                               "revocationfile",
                                               "signingkey",
                                               "sslcainfo",
                                               "sslcapath",
                                               "sslcert",
                                               "sslkey",
                                               "template",
                                               "url",
                                               "worktree"};
// Their first argument is a file that they run.
constexpr std::string_view kInterpreters[] = {
    "sh",  "bash", "dash", "zsh",  "ksh",  "perl", "node", "bun",     "deno", "ruby",
    "php", "lua",  "env",  "exec", "nice", "time", "sudo", "command", "xargs"};
// A command follows them.
constexpr std::string_view kShellWords[] = {"{",  "!",    "if",    "then", "else",
                                            "do", "elif", "while", "until"};
// In place of settings (git(1), "Environment Variables"), and what every program, shell or pager reads.
constexpr const char* kProgramVariables[] = {"GIT_EXTERNAL_DIFF",
                                             "GIT_SSH",
                                             "GIT_SSH_COMMAND",
                                             "GIT_EDITOR",
                                             "GIT_SEQUENCE_EDITOR",
                                             "GIT_PAGER",
                                             "GIT_ASKPASS",
                                             "SSH_ASKPASS",
                                             "VISUAL",
                                             "GIT_PROXY_COMMAND",
                                             "EDITOR",
                                             "PAGER",
                                             "LESSOPEN",
                                             "LESSCLOSE",
                                             "BROWSER",
                                             "BASH_ENV",
                                             "ENV",
                                             "LD_PRELOAD",
                                             "LD_AUDIT"};
constexpr size_t kLongestName = 4096;  // PATH_MAX
constexpr int kDeepestQuotes = 3;      // sh -c "sh -c '...'"
// Looked up on PATH by git, its scripts and the prompts of shells, without a setting. Debian's git has `pager` and
// `editor` for less and vi.
constexpr const char* kFoundOnPath[] = {
    "awk",  "basename", "bash",   "cat",    "cut",       "date", "dirname", "editor",   "env",
    "expr", "git",      "gpg",    "gpg2",   "gpgsm",     "grep", "head",    "hostname", "id",
    "less", "ls",       "mktemp", "more",   "nano",      "perl", "pager",   "readlink", "rm",
    "sed",  "sh",       "sort",   "ssh",    "tput",      "tr",   "tty",     "uname",    "vi",
    "vim",  "wc",       "wish",   "whoami", "ssh-keygen"};
// Settings whose value begins with a program. Of others a first word may be anything.
constexpr std::string_view kCommandKeys[] = {
    "askpass",   "clean",    "cmd",   "command", "difffilter", "driver", "editor",     "external",
    "fsmonitor", "gitproxy", "pager", "process", "program",    "smudge", "sshcommand", "textconv"};
constexpr std::string_view kPagers = "pager";  // the section: pager.diff
// What can stand around a path in a line for the shell.
constexpr std::string_view kBetweenWords = " \t\n;|&()<>'\"`=,";

std::string FromEnvironment(const char* name) {
  const char* const value = ::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

// A path of a configuration or a pointer, as git expands it.
std::string Expanded(const std::string& base, std::string_view path) {
  // Git 2.52: the path counts if there is something.
  if (constexpr std::string_view kOptional = ":(optional)"; path.starts_with(kOptional)) {
    path.remove_prefix(kOptional.size());
  }
  if (path.starts_with('~')) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view user = path.substr(1, end - 1);
    const std::string home = user.empty() ? FromEnvironment("HOME") : HomeOf(user);
    return home.empty() ? std::string() : Normalize(home + std::string(path.substr(end)));
  }
  return Normalize(path.starts_with('/') ? std::string(path) : base + "/" + std::string(path));
}

std::string LowerCased(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerCase);
  return lower;
}

// The one line of a file of git, without its end; "" if it cannot be read.
std::string LineOf(const std::string& file) {
  const Result<std::string> text = sys::ReadRegular(file, kLongestLine);
  return text.ok() ? text->substr(0, text->find_last_not_of(" \t\r\n") + 1) : std::string();
}

// That a git directory names, absolute; "" if it names none.
std::string CommonDirectory(const std::string& git) {
  const std::string common = LineOf(git + "/commondir");
  return common.empty() ? "" : common[0] == '/' ? Normalize(common) : Normalize(git + "/" + common);
}

template <size_t N>
bool IsListed(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool IsInterpreter(std::string_view word) {
  const std::string_view name = BaseName(word);
  return name.starts_with("python") || IsListed(kInterpreters, name);
}

// True if the shell takes the next word for a program as well: NAME=VALUE, "then".
bool PrecedesCommand(std::string_view word) {
  return IsListed(kShellWords, word) || word.find('=') < word.find('/');
}

// The words that the shell makes of a line: quotes and backslashes are taken away, blanks and
// operators outside of them end a word. An operator is an empty word. Quotes that are not closed
// end with the line.
std::vector<std::string> ShellWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) {
      words.push_back(std::exchange(word, std::string()));
    }
  };
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && (c == ' ' || c == '\t')) {
      end_word();
    } else if (quote == 0 && std::string_view("\n;|&()<>").find(c) != std::string_view::npos) {
      end_word();
      words.emplace_back();
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  end_word();
  return words;
}

class Search {
 public:
  Search(const HostPath& root, std::vector<std::string> worktrees)
      : root_(root), worktrees_(std::move(worktrees)), path_(PathDirectoriesIn(root)) {}

  void Read(const std::string& config) {
    if (!read_.insert(config).second || read_.size() > kMostConfigs) {
      return;
    }
    const Result<std::string> text = sys::ReadRegular(config, kLongestConfig);
    if (!text.ok()) {
      return;
    }
    const std::string directory(DirName(config));
    if (const std::string tree = GitConfigValue(*text, "core", "worktree"); !tree.empty()) {
      worktrees_.push_back(Expanded(directory, tree));
    }
    for (const GitSetting& setting : ReadGitConfig(*text)) {
      Look(setting, directory);
    }
  }

  // GIT_CONFIG_KEY_0 is SECTION.KEY or SECTION.SUBSECTION.KEY, GIT_CONFIG_VALUE_0 its value.
  void ReadEnvironment() {
    const char* const count = ::getenv("GIT_CONFIG_COUNT");
    const unsigned long most = count == nullptr ? 0 : ::strtoul(count, nullptr, 10);
    for (unsigned long i = 0; i < std::min(most, kMostOfEnvironment); ++i) {
      const char* const name = ::getenv(fmt::format("GIT_CONFIG_KEY_{}", i).c_str());
      const char* const value = ::getenv(fmt::format("GIT_CONFIG_VALUE_{}", i).c_str());
      const std::string_view key = name == nullptr ? "" : name;
      const size_t first = key.find('.');
      if (first == std::string_view::npos || value == nullptr) {
        continue;
      }
      const size_t last = key.rfind('.');
      Look({LowerCased(key.substr(0, first)), first != last, LowerCased(key.substr(last + 1)),
            value},
           "/");
    }
    for (const char* const name : kProgramVariables) {
      if (const char* const value = ::getenv(name); value != nullptr) {
        std::string line = value;
        if (std::string_view(name).starts_with("LD_")) {
          std::replace(line.begin(), line.end(), ':', ' ');  // ld.so(8)
        }
        Look({"core", false, "program", std::move(line)}, "/");
      }
    }
    if (const char* const value = ::getenv("GIT_TEMPLATE_DIR"); value != nullptr) {
      Look({"init", false, "templatedir", value}, "/");
    }
  }

  void AddOnPath(const std::string& program) {
    for (const std::string& directory : path_) {
      Add(Normalize(directory + "/" + program), Demand::kFileToCome, &on_path_);
    }
  }

  GitNames Take() {
    return {{found_.begin(), found_.end()},
            {to_come_.begin(), to_come_.end()},
            {on_path_.begin(), on_path_.end()}};
  }

 private:
  // What a name has to be to count. kFileToCome: a file, or none yet. kCommandToCome: none yet only
  // where the shell takes a word for a program; the other words of an alias are often what a
  // project is built to.
  enum class Demand : uint8_t { kNothing, kFile, kFileToCome, kCommandToCome };

  void Look(const GitSetting& setting, const std::string& directory) {
    if (IsListed(kNoPrograms, setting.section)) {
      return;
    }
    if ((setting.section == "include" || setting.section == "includeif") && setting.key == "path") {
      const std::string included = Expanded(directory, setting.value);
      Add(included, Demand::kNothing);
      Read(included);
      return;
    }
    const bool command = setting.value.starts_with('!');
    if (setting.value.empty()) {
      return;
    }
    if ((setting.section == "core" && setting.key == "hookspath") ||
        (setting.section == "init" && setting.key == "templatedir")) {
      AddIn(setting.value, Demand::kNothing);  // hooks of new repositories come from a template
    } else if ((setting.section != "alias" && setting.section != "submodule") || command) {
      const Demand demand = IsListed(kNoProgramKeys, setting.key) ? Demand::kFile
                            : setting.section == "alias"          ? Demand::kCommandToCome
                                                                  : Demand::kFileToCome;
      std::string_view value = setting.value;
      value.remove_prefix(command ? 1 : 0);
      if (value.find('/') != std::string_view::npos) {
        AddIn(value, demand);  // its spaces may be part of a name
      }
      LookBetween(kBetweenWords, value, demand);
      names_programs_ =
          command || setting.section == kPagers || IsListed(kCommandKeys, setting.key);
      LookAtShellWords(value, demand, 0);
      names_programs_ = false;
      if (setting.key == "helper" && !command) {
        AddOnPath("git-credential-" + setting.value.substr(0, setting.value.find_first_of(" /")));
      }
    }
  }

  // Quotes count as ends of words here, so that a line inside a line is split too.
  void LookBetween(std::string_view ends, std::string_view value, Demand demand) {
    std::vector<std::string> words;
    for (size_t at = 0; at < value.size();) {
      const size_t end = std::min(value.find_first_of(ends, at), value.size());
      std::string_view word = value.substr(at, end - at);
      word.remove_prefix(word.starts_with('!') ? 1 : 0);
      if (!word.empty()) {
        words.emplace_back(word);
      }
      at = end + 1;
    }
    LookAt(words, demand);
  }

  void LookAtShellWords(std::string_view line, Demand demand, int depth) {
    const std::vector<std::string> words = ShellWords(line);
    LookAt(words, demand);
    for (const std::string& word : words) {
      // --option=FILE, VARIABLE=FILE
      const size_t equals = word.find('=');
      if (equals != std::string::npos && word.find('/', equals) != std::string::npos) {
        AddIn(word.substr(equals + 1), demand);
      }
      if (depth < kDeepestQuotes && word != line &&
          word.find_first_of(kBetweenWords) != std::string::npos) {
        LookAtShellWords(word, demand, depth + 1);  // sh -c 'COMMAND'
      }
    }
  }

  // A program without a slash is looked up on PATH, not in the project.
  void LookAt(const std::vector<std::string>& words, Demand demand) {
    bool program = true;    // the next word is one
    bool argument = false;  // it is the first argument of an interpreter
    bool first = true;
    for (const std::string& word : words) {
      if (word.empty()) {
        program = true;
        argument = false;
        continue;
      }
      const bool path = word.find('/') != std::string::npos;
      const bool run = argument && !word.starts_with('-');
      if (path || run) {
        AddIn(word,
              program || run || demand != Demand::kCommandToCome ? Command(demand) : Demand::kFile);
      } else {
        if (program && names_programs_ && !PrecedesCommand(word)) {
          AddOnPath(word);
        }
        if (!first) {
          AddIn(word, Demand::kFile);
        }
      }
      first = false;
      argument = IsInterpreter(word) || (argument && !run);
      program = program && PrecedesCommand(word);
    }
  }

  static Demand Command(Demand demand) {
    return demand == Demand::kCommandToCome ? Demand::kFileToCome : demand;
  }

  void AddIn(std::string_view path, Demand demand) {
    if (path.starts_with("refs/")) {
      demand = Demand::kFile;  // a branch, which git itself makes
    }
    for (const std::string& base : worktrees_) {
      Add(Expanded(base, path), demand);
    }
  }

  // A name of kFileToCome goes to `to_come`, or else to to_come_.
  void Add(const std::string& path, Demand demand, std::set<std::string>* to_come = nullptr) {
    std::set<std::string>& missing = to_come == nullptr ? to_come_ : *to_come;
    if (path.empty()) {
      return;  // in the home of a user who is not known
    }
    struct stat info{};
    if (!IsAtOrBelow(path, root_.path)) {
      LinksInto links(root_);
      demand == Demand::kNothing ? links.Add(path) : links.Follow(path);
      if (demand == Demand::kNothing || ::stat(path.c_str(), &info) == 0) {
        found_.insert(links.links().begin(), links.links().end());
      } else if (demand == Demand::kFileToCome && path.size() < kLongestName) {
        missing.insert(links.links().begin(), links.links().end());
      }
      return;
    }
    if (path == root_.path) {
      if (demand == Demand::kNothing) {
        found_.insert(".");  // every file there may be a hook: that cannot be protected
      }
      return;
    }
    const std::string name = path.substr(root_.path.size() + 1);
    const bool there = ::fstatat(root_.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (demand == Demand::kNothing || (there && (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)))) {
      found_.insert(name);
    } else if (demand == Demand::kFileToCome && name.size() < kLongestName) {
      missing.insert(name);
    }
  }

  const HostPath& root_;
  std::vector<std::string> worktrees_;
  std::set<std::string> read_;
  std::set<std::string> found_;
  std::set<std::string> to_come_;
  std::vector<std::string> path_;  // directories of PATH in the tree
  std::set<std::string> on_path_;
  bool names_programs_ = false;  // the value that is looked at begins with a program
};

}  // namespace

GitNames NamesInGitConfig(const HostPath& root, const std::string& config,
                          const std::vector<std::string>& worktrees) {
  Search search(root, worktrees);
  search.Read(config);
  return search.Take();
}

GitNames NamesInGitEnvironment(const HostPath& root, const std::vector<std::string>& worktrees) {
  Search search(root, worktrees);
  search.ReadEnvironment();
  return search.Take();
}

GitNames NamesOnPath(const HostPath& root) {
  Search search(root, {});
  for (const char* const program : kFoundOnPath) {
    search.AddOnPath(program);
  }
  return search.Take();
}

std::vector<std::string> GlobalGitConfigs() {
  const std::string home = FromEnvironment("HOME");
  const std::string base = FromEnvironment("XDG_CONFIG_HOME");
  std::vector<std::string> configs = {"/etc/gitconfig", home + "/.gitconfig",
                                      (base.empty() ? home + "/.config" : base) + "/git/config"};
  for (const char* const name : {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}) {
    if (std::string given = FromEnvironment(name); !given.empty()) {
      configs.push_back(Normalize(given));
    }
  }
  return configs;
}

std::vector<std::string> GitDirectoriesAt(const std::string& directory) {
  std::string git = directory + "/.git";
  struct stat info{};
  if (::stat(git.c_str(), &info) != 0) {
    git = directory;  // a bare repository, or none
  } else if (S_ISREG(info.st_mode)) {
    constexpr std::string_view kPointer = "gitdir:";
    const std::string line = LineOf(git);
    const size_t from = line.find_first_not_of(" \t", kPointer.size());
    if (!line.starts_with(kPointer) || from == std::string::npos) {
      return {};
    }
    git = Normalize(line[from] == '/' ? line.substr(from) : directory + "/" + line.substr(from));
  }
  if (::stat((git + "/HEAD").c_str(), &info) != 0) {
    return {};
  }
  std::vector<std::string> directories = {git};
  if (std::string common = CommonDirectory(git); !common.empty()) {
    directories.push_back(std::move(common));
  }
  return directories;
}

std::string TextOfGitConfig(const std::string& git_directory) {
  const std::string common = CommonDirectory(git_directory);
  Result<std::string> text =
      sys::ReadRegular((common.empty() ? git_directory : common) + "/config", kLongestConfig);
  return text.ok() ? std::move(text).value() : std::string();
}

std::vector<std::string> GitConfigsAt(const std::string& directory) {
  std::vector<std::string> configs;
  for (const std::string& git : GitDirectoriesAt(directory)) {
    configs.push_back(git + "/config");
    if (configs.size() == 1) {
      configs.push_back(git + "/config.worktree");
    }
  }
  return configs;
}

}  // namespace coffer::isolation
