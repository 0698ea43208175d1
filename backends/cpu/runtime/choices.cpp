// SPDX-License-Identifier: Apache-2.0
#include "runtime/choices.h"

#include <algorithm>

#include "backplane/sdk/fence.hpp"

namespace backplane::cpu {

namespace {

std::string join(const std::vector<std::string_view>& names) {
  std::string all;
  for (const std::string_view name : names) all.append(all.empty() ? "" : ", ").append(name);
  return all;
}

[[noreturn]] void refuse(std::string_view wanted, const std::string& why) {
  throw sdk::Error(BP_INVALID_ARGUMENT, "option cpu.implementation is '" + std::string(wanted) + "'; " + why);
}

}  // namespace

Choices::Choices(std::string_view wanted, std::span<const ImplementationNames> lists, const sdk::Host& host)
    : host_(host) {
  std::string_view rest = wanted == "best" ? "" : wanted;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) refuse(wanted, "give 'best', or pairs FAMILY=NAME separated by commas");
    const std::string_view family = pair.substr(0, equals), name = pair.substr(equals + 1);
    const auto list = std::ranges::find(lists, family, &ImplementationNames::family);
    if (list == lists.end()) {
      std::vector<std::string_view> families;
      for (const ImplementationNames& each : lists) families.push_back(each.family);
      refuse(wanted, "there is no family '" + std::string(family) + "'; the families are " + join(families));
    }
    if (std::ranges::find(list->names, name) == list->names.end())
      refuse(wanted, "there is no '" + std::string(name) + "'; the implementations of " + std::string(family) +
                         " are " + join(list->names));
    forced_[std::string(family)] = name;
  }
}

std::string_view Choices::forced(std::string_view family) const {
  const auto found = forced_.find(family);
  return found == forced_.end() ? std::string_view() : found->second;
}

void Choices::report(const std::string& node, const Plan& plan) const {
  if (plan.implementation == nullptr) return;
  host_.log(BP_LOG_DEBUG, node + ": " + plan.family + "=" + plan.implementation +
                              (plan.refused.empty() ? "" : " (" + plan.refused + ")"));
}

}  // namespace backplane::cpu
