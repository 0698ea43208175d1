// SPDX-License-Identifier: Apache-2.0
// From islands to programs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "coverage/coverage.h"
#include "place/place.h"
#include "view/view.h"

namespace backplane {

// A compiled island. Owns the program.
class Program {
 public:
  Program() = default;
  ~Program();
  Program(const Program&) = delete;

  Device* device = nullptr;
  const bp_plugin_t* plugin = nullptr;
  bp_program_t* handle = nullptr;
  bp_program_info_t info{};
  std::shared_ptr<const model::View> view;  // lives as long as the program
  std::vector<model::ValueId> inputs;       // the graph's values in the order of the program's slots
  std::vector<model::ValueId> outputs;
  double seconds = 0;      // expected, 0: unknown
  std::vector<char> blob;  // from which the program was loaded, and which it may borrow
  // The result of the cache: empty if it was not used, "exact", "usable", "stored" (compiled, and stored), or
  // "compiled".
  std::string cache;
  std::string cache_reason;  // why it was compiled although there was an entry, or not stored
};

struct CompileOptions {
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  bool refit = false;          // weights will be replaced
  const bp_cancel_t* cancel = nullptr;
  CacheSettings cache;
  std::map<std::string, Host::Options, std::less<>> options;    // as in CoverageOptions
  std::function<void(uint32_t done, uint32_t total)> progress;  // may be empty
};

// The island as its device's backend sees it.
std::shared_ptr<Program> propose(const std::shared_ptr<const model::Model>& model, const DeviceCoverage& coverage,
                                 const Island& island, const model::Refit& refit = {});

// Lets each backend review its islands; changes the verdicts in `coverage` where one is rejected or split. True: all
// are accepted.
Result<bool> review(std::vector<DeviceCoverage>& coverage, const Placement& placement,
                    const std::vector<std::shared_ptr<Program>>& proposals, const CompileOptions& how);

// Compiles the programs that are not compiled, several at once. Returns the first error in the order of islands.
Status compile(const model::Graph& graph, Services& services, const std::vector<DeviceCoverage>& coverage,
               const Placement& placement, const std::vector<std::shared_ptr<Program>>& programs,
               const CompileOptions& options);

// "node 'conv1' (Conv)" for a node id in a backend's error; empty where there is none.
std::string label_of(const model::Graph& graph, uint64_t node_id);

}  // namespace backplane
