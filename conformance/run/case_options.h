// SPDX-License-Identifier: Apache-2.0
// The selection of cases for a run.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "journal/case.h"

namespace backplane::conform {

struct CaseOptions {
  std::vector<std::string> profiles;  // claimed profiles; if empty, the cases of all run and nothing is claimed
  bool quick = false, full = false;
  std::string filter, shard;
  std::vector<std::string> models;  // folders of models
};

void declare_case_options(cli::Command command, CaseOptions& case_options);
void declare_models(cli::Command command, CaseOptions& case_options);

struct Plan {
  std::vector<Case> cases;  // of this shard
  Shard shard;
  uint64_t total = 0;  // the number of cases in all shards
  std::string list;    // the SHA-256 of the names of these cases
  std::string models;  // the SHA-256 of the models that cases are cut from; empty if there are none
};

// Throws Usage.
Plan plan(const CaseOptions& case_options);

}  // namespace backplane::conform
