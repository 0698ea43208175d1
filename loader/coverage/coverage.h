// SPDX-License-Identifier: Apache-2.0
// What every device says of every node: one call a device, all nodes at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/plugin.h"
#include "discover/environment.h"
#include "model/graph.h"
#include "model/view.h"
#include "status.h"

namespace backplane {

struct NodeVerdict {
  uint32_t answer = BP_ANSWER_NO;
  uint32_t reason = BP_REASON_OPERATOR;
  bp_dtype_t precision = 0;  // less than the node's own, or 0
  float confidence = 0;
  double seconds = 0;  // 0: unknown
  uint64_t bytes = 0;
  std::string detail;  // of a refusal, for people
  uint32_t part = 0;   // set by review: nodes of one device with different parts never share an island

  bool usable() const { return answer != BP_ANSWER_NO; }
};

// Nodes that a device runs as one, ascending. The verdicts of an atomic group's nodes hold only while all of them are in one island.
struct NodeGroup {
  std::vector<uint32_t> nodes;
  bool atomic = false;
  double seconds = 0;  // for all of them, 0: unknown
  std::string name;
};

struct DeviceCoverage {
  Device* device = nullptr;
  bp_device_t* handle = nullptr;
  std::shared_ptr<const model::View> view;  // the whole graph as this device's backend sees it
  std::vector<NodeVerdict> nodes;           // one for each node of the graph
  std::vector<NodeGroup> groups;
};

struct CoverageOptions {
  uint32_t precision = BP_PRECISION_STRICT;
  const bp_cancel_t* cancel = nullptr;
  // For each backend id, what it is told ("name" without the id).
  std::map<std::string, Host::Options, std::less<>> options;
};

// Asks `devices` in order. A node that a backend did not mention is a refusal; a conditional answer whose range does not hold
// everything that the model's symbols may be is one too, with BP_REASON_SHAPE.
Result<std::vector<DeviceCoverage>> ask(const std::shared_ptr<const model::Model>& model, const std::vector<Device*>& devices,
                                        const CoverageOptions& options);

// "operator", "opset", "dtype" …: how reports spell BP_REASON_*.
std::string_view reason_name(uint32_t reason);

// The options of one backend as the ABI's array; borrows `options`.
std::vector<bp_option_t> abi_options(const Host::Options& options);

}  // namespace backplane
