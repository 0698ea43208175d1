// SPDX-License-Identifier: Apache-2.0
// Builds a random graph node by node, with an estimate of every value and its error.
#pragma once

#include <functional>

#include "cases/network.h"

namespace backplane::conform {

class GraphSampler {
 public:
  GraphSampler(Random& random, const Recipe& recipe, uint32_t opset);

  Random& random() { return random_; }
  const Recipe& recipe() const { return recipe_; }
  bool chance(double probability) { return random_.uniform(0, 1) < probability; }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(choices.size()) - 1))];
  }

  const Array& at(uint32_t value) const { return values_[value].value; }
  const Extents& shape(uint32_t value) const { return values_[value].value.extents; }

  // A computed value or input of the recipe's type for which `suits` is true, preferring later ones; BP_NONE if none.
  uint32_t pick(const std::function<bool(uint32_t value)>& suits);
  uint32_t pick() {
    return pick([](uint32_t) { return true; });
  }
  uint32_t pick_rank(size_t least, size_t most = 5) {
    return pick([&](uint32_t v) { return shape(v).size() >= least && shape(v).size() <= most; });
  }
  uint32_t pick_bool();
  uint32_t input(Extents extents);
  uint32_t constant(const onnx::Tensor& tensor);
  uint32_t constant(Extents extents, Fill fill);
  // A constant with numbers around zero, scaled so that a sum of `terms` products with it is about as large as a
  // factor.
  uint32_t weights(Extents extents, int64_t terms);

  // Adds a node. Returns false if the opset lacks the operator, or if a result would be empty, too large or not finite,
  // or its error bounds too wide. Throws std::invalid_argument if the operator is unknown or the inputs do not fit.
  bool add(const std::string& op, std::vector<uint32_t> inputs, Attributes attributes = {}, uint32_t outputs = 1);
  // Call `start` before creating a node's constants and inputs, and `undo` to remove them if the node cannot be added.
  void start();
  void undo();

  // The value added last: after add(), the last output of the node.
  uint32_t last_value() const { return static_cast<uint32_t>(values_.size() - 1); }
  uint32_t node_count() const { return static_cast<uint32_t>(network_.spec.nodes.size()); }
  Network finish() &&;

 private:
  uint32_t add_value(Estimate estimate);
  bool is_useful(const Estimate& estimate) const;

  Random& random_;
  const Recipe& recipe_;
  Network network_;
  std::vector<Estimate> values_;
  std::vector<bool> constants_;
  size_t start_values_ = 0, start_inputs_ = 0;
};

}  // namespace backplane::conform
