// SPDX-License-Identifier: Apache-2.0
// Every device's verdict on every node of a model.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "base/status.h"
#include "coverage/cost_profile.h"
#include "discover/environment.h"
#include "ir/graph.h"
#include "view/view.h"

namespace backplane {

// The sources of costs, least trusted first.
enum class Source { kEstimate, kBackend, kMeasured };
std::string_view source_name(Source source);  // "estimate", "backend", "measured"

struct NodeVerdict {
  uint32_t answer = BP_ANSWER_NO;
  uint32_t reason = BP_REASON_OPERATOR;
  uint32_t compute_types = 0;  // BP_COMPUTE_* types in which the device computes the node
  float confidence = 0;        // how far to trust `seconds`: from 0 (a guess) to 1 (measured)
  double seconds = 0;          // expected time of the node; 0: unknown
  Source source = Source::kEstimate;
  uint64_t bytes = 0;          // device memory, without inputs and outputs; 0: unknown
  std::string detail;          // why the node is not supported, for people
  uint32_t part = 0;           // set by review: nodes of one device with different parts never share an island
  uint64_t call = BP_NO_NODE;  // the function call that the device runs whole and whose body contains this node

  bool usable() const { return answer != BP_ANSWER_NO; }
};

// Nodes that a device runs together, in ascending order. If the group is atomic, the verdicts on its nodes hold only
// while all of them are in one island.
struct NodeGroup {
  std::vector<uint32_t> nodes;
  bool atomic = false;
  double seconds = 0;  // for all nodes, 0: unknown
  std::string name;
};

struct DeviceCoverage {
  Device* device = nullptr;
  bp_device_t* handle = nullptr;
  model::WholeCalls calls;           // calls that the device runs whole, including those in subgraphs
  std::vector<NodeVerdict> nodes;    // one for each node of the graph
  std::vector<NodeGroup> groups;     // calls first
  std::set<uint64_t> foreign;        // ids of foreign nodes that the device supports, including those in subgraphs
  std::shared_ptr<Profile> profile;  // measured costs of the device; null: they are not used
};

// Which costs placement uses.
enum class Costs {
  kReported,  // costs reported by backends, and estimates
  kKnown,     // measured costs first, then those of kReported
  kMeasure,   // as kKnown, after measuring what is missing (profiling/measure.h)
};

struct CoverageOptions {
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  Costs costs = Costs::kKnown;
  const bp_cancel_t* cancel = nullptr;
  // Each backend's options, by backend id; option names omit the id.
  std::map<std::string, Host::Options, std::less<>> options;
};

// Queries `devices` in order.
// - Function calls: a device is first shown the call as one node. If it does not support the call, it is shown the
//   nodes of the body, whose calls are treated likewise. A call that it supports becomes an atomic group of the body's
//   nodes.
// - Subgraphs: a node with subgraphs is supported only if the device also supports every node in them. Each subgraph
//   is queried as a separate graph. If a node in it is refused, the node outside gets the reason BP_REASON_SUBGRAPH.
// - A node without a verdict is unsupported. So is a node whose verdict covers only part of the range of the model's
//   symbols (BP_REASON_SHAPE), or needs a type that `compute_types` does not allow (BP_REASON_PRECISION).
// Returns one element per device, in the same order, or the first error of a device.
Result<std::vector<DeviceCoverage>> query_devices(const std::shared_ptr<const model::Model>& model,
                                                  const std::vector<Device*>& devices, const CoverageOptions& options);

// Replaces the costs in the verdicts by the measured costs in `coverage.profile`, which must not be null. Nodes that
// are not in the profile, or inside calls that the device runs whole, keep their costs.
void recall(const model::Graph& graph, uint32_t compute_types, DeviceCoverage& coverage);

// The name of a BP_REASON_* in reports, such as "operator", "opset" or "dtype".
std::string_view reason_name(uint32_t reason);

// One backend's options as the ABI's array, which borrows the strings of `options`.
std::vector<bp_option_t> abi_options(const Host::Options& options);

}  // namespace backplane
