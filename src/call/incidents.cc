// SPDX-License-Identifier: Apache-2.0
#include "call/incidents.h"

#include <optional>

#include "watch/incident.h"

namespace coffer::call {
namespace {

// "GET 169.254.169.254:80/latest" without the method and the path, which a program fills with what it likes.
std::string_view PlaceOf(const audit::Denial& denial) {
  std::string_view place = denial.target;
  if (denial.operation == "request") {
    place.remove_prefix(place.find(' ') + 1);
    place = place.substr(0, place.find('/'));
  }
  return place;
}

std::vector<watch::RefusedDestination> DestinationsOf(const audit::Receipt& receipt) {
  std::vector<watch::RefusedDestination> destinations;
  for (const audit::Denial& denial : receipt.denials) {
    if (const std::optional<std::string_view> kind = watch::DestinationOfRule(denial.rule)) {
      destinations.push_back({*kind, PlaceOf(denial), denial.count});
    }
  }
  return destinations;
}

uint64_t LeaksOf(const audit::Receipt& receipt) {
  uint64_t leaks = 0;
  for (const audit::Denial& denial : receipt.denials) {
    leaks += denial.rule == watch::kLeakRule ? denial.count : 0;
  }
  return leaks;
}

}  // namespace

std::vector<std::string> IncidentsOf(const audit::Receipt& receipt) {
  std::vector<std::string> sentences = watch::DescribeIncidents(receipt.syscalls_denied);
  for (std::string& sentence : watch::DescribeDestinations(DestinationsOf(receipt))) {
    sentences.push_back(std::move(sentence));
  }
  if (std::string leaks = watch::DescribeLeaks(LeaksOf(receipt)); !leaks.empty()) {
    sentences.push_back(std::move(leaks));
  }
  return sentences;
}

std::set<std::string_view> IncidentKindsOf(const audit::Receipt& receipt) {
  std::set<std::string_view> kinds;
  for (const auto& [syscall, count] : receipt.syscalls_denied) {
    if (const std::optional<std::string_view> kind = watch::FindIncident(syscall)) {
      kinds.insert(*kind);
    }
  }
  for (const watch::RefusedDestination& one : DestinationsOf(receipt)) {
    kinds.insert(one.kind);
  }
  if (LeaksOf(receipt) > 0) {
    kinds.insert(watch::kLeakKind);
  }
  return kinds;
}

}  // namespace coffer::call
