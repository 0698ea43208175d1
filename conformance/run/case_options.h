// SPDX-License-Identifier: Apache-2.0
// The selection of the cases of a run.
#pragma once

#include <string>
#include <vector>

#include "checks/case.h"
#include "cli/command.h"

namespace backplane::conform {

struct CaseOptions {
  std::vector<std::string> profiles;  // claimed profiles; if empty, all cases run and no profile is claimed
  bool quick = false, full = false;
  std::string filter, shard;
  std::vector<std::string> models;  // folders of models
};

void declare_case_options(cli::Command command, CaseOptions& case_options);
void declare_models(cli::Command command, CaseOptions& case_options);

struct Plan {
  std::vector<Case> cases;  // only those of this shard
  Shard shard;
  uint64_t total = 0;  // the number of cases in all shards
  std::string list;    // SHA-256 of the names of the cases in all shards
  std::string models;  // SHA-256 of the models that cases are cut from; empty if there are none
};

// Throws Usage if the options are invalid, contradict each other or select no case.
Plan plan(const CaseOptions& case_options);

}  // namespace backplane::conform
