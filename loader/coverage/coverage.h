// SPDX-License-Identifier: Apache-2.0
// What every device says of every node: one call a device, all nodes at once.
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

// Where a cost comes from, least trusted first.
enum class Source { kEstimate, kBackend, kMeasured };
std::string_view source_name(Source source);  // "estimate", "backend", "measured"

struct NodeVerdict {
  uint32_t answer = BP_ANSWER_NO;
  uint32_t reason = BP_REASON_OPERATOR;
  uint32_t compute_types = 0;  // BP_COMPUTE_* in which it computes
  float confidence = 0;
  double seconds = 0;  // 0: unknown
  Source source = Source::kEstimate;
  uint64_t bytes = 0;
  std::string detail;          // of a refusal, for people
  uint32_t part = 0;           // set by review: nodes of one device with different parts never share an island
  uint64_t call = BP_NO_NODE;  // the call that is claimed whole and whose body the node is part of

  bool usable() const { return answer != BP_ANSWER_NO; }
};

// Nodes that a device runs as one, ascending. The verdicts of an atomic group's nodes hold only while all of them are
// in one island.
struct NodeGroup {
  std::vector<uint32_t> nodes;
  bool atomic = false;
  double seconds = 0;  // for all of them, 0: unknown
  std::string name;
};

struct DeviceCoverage {
  Device* device = nullptr;
  bp_device_t* handle = nullptr;
  model::WholeCalls calls;           // those that it claims whole, in sub-graphs too
  std::vector<NodeVerdict> nodes;    // one for each node of the graph
  std::vector<NodeGroup> groups;     // first those that are calls
  std::set<uint64_t> foreign;        // nodes of foreign domains that it claims, by id, in sub-graphs too
  std::shared_ptr<Profile> profile;  // what is known of it; null: nothing is to be
};

// Which costs count.
enum class Costs {
  kTold,     // what backends say, and estimates
  kKnown,    // what was measured overrides them
  kMeasure,  // the same, measured before (profiling/measure.h)
};

struct CoverageOptions {
  uint32_t compute_types = 0;  // BP_COMPUTE_* that are allowed
  Costs costs = Costs::kKnown;
  const bp_cancel_t* cancel = nullptr;
  // For each backend id, what it is told ("name" without the id).
  std::map<std::string, Host::Options, std::less<>> options;
};

// Asks `devices` in order. A call of a function is offered to each as one node; where a device refuses it, it is
// offered the nodes of the body, and calls among them in the same way. What a device claims whole is an atomic group of
// the body's nodes. A node with bodies is taken by a device that takes every node in them: each body is asked about as
// a graph of its own, and a refusal is one of the node with BP_REASON_SUBGRAPH. A node that a backend did not mention
// is a refusal; a conditional answer whose range does not hold everything that the model's symbols may be is one too,
// with BP_REASON_SHAPE.
Result<std::vector<DeviceCoverage>> ask(const std::shared_ptr<const model::Model>& model,
                                        const std::vector<Device*>& devices, const CoverageOptions& options);

// Puts what the device's profile knows of its nodes into the verdicts.
void recall(const model::Graph& graph, uint32_t compute_types, DeviceCoverage& coverage);

// "operator", "opset", "dtype" …: how reports spell BP_REASON_*.
std::string_view reason_name(uint32_t reason);

// The options of one backend as the ABI's array; borrows `options`.
std::vector<bp_option_t> abi_options(const Host::Options& options);

}  // namespace backplane
