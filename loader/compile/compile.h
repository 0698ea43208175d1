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

// An island compiled. Owns the program.
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
  std::vector<char> blob;  // what the program was read from; it may borrow it
  // What the cache of compiled programs had: empty where it was not asked, "exact", "usable", "stored" (compiled and
  // kept), or "compiled".
  std::string cache;
  std::string cache_reason;  // why it was compiled although there was an entry, or why it was not kept
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

// What a backend says of the islands proposed to it; changes the verdicts in `coverage` where it rejects or splits one.
// True: all are accepted.
Result<bool> review(std::vector<DeviceCoverage>& coverage, const Placement& placement,
                    const std::vector<std::shared_ptr<Program>>& proposals, const CompileOptions& how);

// Compiles those that are not yet, several at once. The first error in island order is the answer.
Status compile(const model::Graph& graph, Services& services, const std::vector<DeviceCoverage>& coverage,
               const Placement& placement, const std::vector<std::shared_ptr<Program>>& programs,
               const CompileOptions& options);

// "node 'conv1' (Conv)" for the id that a backend put into an error; empty where there is none.
std::string label_of(const model::Graph& graph, uint64_t node_id);

}  // namespace backplane
