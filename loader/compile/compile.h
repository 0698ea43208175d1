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
  std::shared_ptr<const model::View> view;  // the island's graph, which the program may borrow
  std::vector<model::ValueId> inputs;       // the graph's values in the order of the program's slots
  std::vector<model::ValueId> outputs;
  double seconds = 0;      // expected duration of a run; 0: unknown
  std::vector<char> blob;  // the cached blob that the program was loaded from and may borrow
  // How the cache was used. Empty: not at all. "exact" or "usable": it had the program. "stored": the program was
  // compiled and stored. "compiled": it was compiled and not stored.
  std::string cache;
  std::string cache_reason;  // why an entry was not used, or why the program was not stored
};

struct CompileOptions {
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  bool refit = false;          // a later refit may replace the weights
  const bp_cancel_t* cancel = nullptr;
  CacheSettings cache;
  std::map<std::string, Host::Options, std::less<>> options;  // by backend id, as in CoverageOptions
  // Called after each island that has been compiled, by any thread, one call at a time. May be empty.
  std::function<void(uint32_t done, uint32_t total)> progress;
};
// In the functions below, `proposals` and `programs` have the order of the placement's islands.

// Creates an island's program, not yet compiled, with the graph that the device's backend sees.
std::shared_ptr<Program> propose(const std::shared_ptr<const model::Model>& model, const DeviceCoverage& coverage,
                                 const Island& island, const model::Refit& refit = {});

// Lets each backend that has the slot `review` review its islands. Changes the verdicts in `coverage`: nodes of a
// rejected island become unsupported; nodes of a split one get the number of their part, or become unsupported if they
// are in none. Without `may_split`, a split is a rejection. Sets Program::seconds if the backend estimates the island's
// time. Returns whether all islands were accepted.
Result<bool> review(std::vector<DeviceCoverage>& coverage, const Placement& placement,
                    const std::vector<std::shared_ptr<Program>>& proposals, const CompileOptions& how, bool may_split);

// Loads from the cache, or compiles, the programs that are not compiled yet, several concurrently. Returns the error of
// the first island that failed, in island order.
Status compile(const model::Graph& graph, Services& services, const std::vector<DeviceCoverage>& coverage,
               const Placement& placement, const std::vector<std::shared_ptr<Program>>& programs,
               const CompileOptions& options);

// The label of the node in a backend's error, such as "node 'conv1' (Conv)"; empty if the graph has no such node.
std::string label_of(const model::Graph& graph, uint64_t node_id);

}  // namespace backplane
