// SPDX-License-Identifier: Apache-2.0
#include "cli/help_topics.h"

namespace coffer::cli {
namespace {

struct Topic {
  std::string_view name;
  std::string_view text;
};

constexpr Topic kTopics[] = {
#include "cli/help_topics.inc"
};

}  // namespace

std::string_view FindHelpTopic(std::string_view name) {
  if (name == "coffer.toml") {
    name = "config";
  }
  for (const Topic& topic : kTopics) {
    if (topic.name == name) {
      return topic.text;
    }
  }
  return "";
}

std::vector<std::string_view> HelpTopicNames() {
  std::vector<std::string_view> names;
  for (const Topic& topic : kTopics) {
    names.push_back(topic.name);
  }
  return names;
}

}  // namespace coffer::cli
