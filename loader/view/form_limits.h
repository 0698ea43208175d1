// SPDX-License-Identifier: Apache-2.0
// What older forms of operators cannot express, beyond what their schemas say.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "ir/graph.h"

namespace backplane::model {

// The weights of the outermost graph that a refit has replaced.
using ReplacedWeights = std::map<WeightId, std::shared_ptr<const Weight>>;

// Whether an older form can express a node. kUnknown: that depends on extents or elements that only a run determines,
// or the older version of ONNX leaves the result open or computes it differently. If the model was written for that
// version, the node is shown in that form.
enum class Fit { kNever, kUnknown, kAlways };

// A node that is to be shown in an older form.
struct Candidate {
  const Graph& graph;
  const Node& node;
  const ReplacedWeights& replaced;
};

// What forms of an operator before `version` cannot express although they have the same attributes, inputs and types:
// values of an attribute or input, or shapes.
struct Limit {
  std::string_view domain;
  std::string_view op;
  uint32_t version;
  Fit (*fits)(const Candidate&);
  std::string_view what;  // what needs `version`, for refusals
};

std::span<const Limit> all_limits();
// The limit of the forms before `to`; null if there is none.
const Limit* find_limit(const ops::Schema& to);

}  // namespace backplane::model
