// SPDX-License-Identifier: Apache-2.0
#include "runner/choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "groups/group.h"
#include "runner/digest.h"

namespace backplane::conform {
namespace {

void check_profiles(const std::vector<std::string>& names) {
  std::string known;
  for (const Profile& profile : profiles()) known += fmt::format("{}{}", known.empty() ? "" : ", ", profile.name);
  for (const std::string& name : names) {
    const bool is_known =
        std::any_of(profiles().begin(), profiles().end(), [&](const Profile& one) { return one.name == name; });
    if (!is_known) throw Usage(fmt::format("--profile '{}' is not known: there are {}", name, known));
  }
}

}  // namespace

void declare_choice(CLI::App& command, Choice& choice) {
  command
      .add_option("--profile", choice.profiles,
                  "Profiles that the backend claims: only their cases, and what is not supported is a failure")
      ->delimiter(',');
  command.add_flag("--quick", choice.quick, "One draw of each case's inputs (the default)");
  command.add_flag("--full", choice.full, "Ten draws, and longer loops");
  command.add_option("--filter", choice.filter, "Only cases whose name matches this glob");
  command.add_option("--shard", choice.shard, "Only part i of n, as i/n");
}

Plan plan(const Choice& choice) {
  if (choice.quick && choice.full) throw Usage("--quick and --full exclude each other");
  check_profiles(choice.profiles);
  Plan plan;
  for (const GroupCase& one : all_cases({.full = choice.full})) {
    const bool is_claimed =
        one.profile.empty() || choice.profiles.empty() ||
        std::find(choice.profiles.begin(), choice.profiles.end(), one.profile) != choice.profiles.end();
    if (is_claimed) plan.cases.push_back({one.name, one.name, std::string(one.profile)});
  }
  if (!choice.filter.empty()) plan.cases = filter(std::move(plan.cases), choice.filter);
  std::vector<std::string> names;
  for (const Case& one : plan.cases) names.push_back(one.name);
  plan.total = names.size();
  plan.list = sha256_of_list(std::move(names));
  if (!choice.shard.empty()) {
    plan.shard = parse_shard(choice.shard);
    plan.cases = select(std::move(plan.cases), plan.shard);
  }
  if (plan.cases.empty()) throw Usage("--filter and --shard leave no case; `backplane-conform list` tells all");
  return plan;
}

}  // namespace backplane::conform
