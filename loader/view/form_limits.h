// SPDX-License-Identifier: Apache-2.0
// Limits of older forms of operators that their schemas do not state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "ir/graph.h"

namespace backplane::model {

// The replacements of weights of the outermost graph, after a refit.
using ReplacedWeights = std::map<WeightId, std::shared_ptr<const Weight>>;

// Whether an older form can express a node. kUnknown: this depends on extents or elements that only a run determines,
// or ONNX's text on the older form leaves the result open, or the form computes it differently. A kUnknown node is
// shown in the older form only if the model was written for a version before Limit::version.
enum class Fit { kNever, kUnknown, kAlways };

// A node that is to be shown in an older form.
struct Candidate {
  const Graph& graph;
  const Node& node;
  const ReplacedWeights& replaced;
};

// A limit of the forms of an operator before `version`: values of an attribute or input, or shapes, that they cannot
// express although they have the same attributes, inputs and types.
struct Limit {
  std::string_view domain;
  std::string_view op;
  uint32_t version;
  Fit (*fits)(const Candidate&);
  std::string_view what;  // the part of the node that needs `version`, for refusals
};

std::span<const Limit> all_limits();
// The limit of the forms before `to`; null if there is none.
const Limit* find_limit(const ops::Schema& to);

}  // namespace backplane::model
