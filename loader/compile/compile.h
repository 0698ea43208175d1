// SPDX-License-Identifier: Apache-2.0
// Compiles islands to programs.
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
  double seconds = 0;      // expected for a run, 0: unknown
  std::vector<char> blob;  // from which the program was loaded, and which it may borrow
  // What the cache did: empty if it was not used, "exact" or "usable" if it had the program, "stored" if the program
  // was compiled and stored, or "compiled".
  std::string cache;
  std::string cache_reason;  // why an entry was not used, or the program not stored
};

struct CompileOptions {
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  bool refit = false;          // weights will be replaced
  const bp_cancel_t* cancel = nullptr;
  CacheSettings cache;
  std::map<std::string, Host::Options, std::less<>> options;    // as in CoverageOptions
  std::function<void(uint32_t done, uint32_t total)> progress;  // may be empty
};

// Creates the program of an island, not yet compiled, with the graph that its device's backend sees.
std::shared_ptr<Program> propose(const std::shared_ptr<const model::Model>& model, const DeviceCoverage& coverage,
                                 const Island& island, const model::Refit& refit = {});

// Lets each backend review its islands; changes the verdicts in `coverage` if one is rejected or split. Returns whether
// all are accepted.
Result<bool> review(std::vector<DeviceCoverage>& coverage, const Placement& placement,
                    const std::vector<std::shared_ptr<Program>>& proposals, const CompileOptions& how);

// Compiles the programs that are not compiled yet, several at once. Returns the first error in the order of islands.
Status compile(const model::Graph& graph, Services& services, const std::vector<DeviceCoverage>& coverage,
               const Placement& placement, const std::vector<std::shared_ptr<Program>>& programs,
               const CompileOptions& options);

// "node 'conv1' (Conv)" for a node id in a backend's error; empty if the graph has no such node.
std::string label_of(const model::Graph& graph, uint64_t node_id);

}  // namespace backplane
