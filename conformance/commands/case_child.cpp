// SPDX-License-Identifier: Apache-2.0

#include <map>
#include <memory>

#include "checks/remote.h"
#include "commands/verb.h"
#include "sandbox/child.h"
#include "sandbox/identity.h"
#include "sandbox/user.h"

namespace backplane::conform {
namespace {

struct Options {
  std::string plugin, user;
  uint32_t device = 0;
  uint64_t seed = 1;
  bool full = false;
  std::vector<std::string> models, cases;
};

int run_child(const Options& options) {
  return answer(options.cases, [&]() -> ChildCases {
    if (!options.user.empty()) become_user(options.user);
    const auto bench = std::make_shared<Bench>(options.plugin, options.device, options.seed);
    const auto cases = std::make_shared<std::map<std::string, Case>>();
    for (Case& one : all_cases({.full = options.full, .models = find_models(options.models)}))
      cases->emplace(one.name, std::move(one));
    ChildCases child;
    child.run = [bench, cases](const std::string& name) {
      try {
        return cases->at(name).run(*bench);
      } catch (const Breach& breach) {
        return failed(breach.what());
      }
    };
    child.serve = [bench, cases](const std::string& name) -> ChildCases::Serve {
      if (name != kIdentityCase && !cases->at(name).judge) return nullptr;
      return [bench](const std::string& request) { return conform::serve(*bench, request); };
    };
    return child;
  });
}

std::function<int()> declare(cli::Command command) {
  const auto options = std::make_shared<Options>();
  command.add_option("--plugin", options->plugin);
  command.add_option("--user", options->user);
  command.add_option("--device", options->device);
  command.add_option("--seed", options->seed);
  command.add_flag("--full", options->full);
  command.add_option("--models", options->models).one_each();
  command.add_option("cases", options->cases);
  return [options] { return run_child(*options); };
}

}  // namespace

extern const Verb case_child_verb = {"case-child", "", declare};

}  // namespace backplane::conform
