// SPDX-License-Identifier: Apache-2.0
#include "cases/graph_sampler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace backplane::conform {

GraphSampler::GraphSampler(Random& random, const Recipe& recipe, uint32_t opset) : random_(random), recipe_(recipe) {
  network_.spec.opset = opset;
}

uint32_t GraphSampler::add_value(Estimate estimate) {
  network_.spec.values.push_back({estimate.value.dtype, estimate.value.extents, {}});
  values_.push_back(std::move(estimate));
  constants_.push_back(false);
  return static_cast<uint32_t>(values_.size() - 1);
}

uint32_t GraphSampler::pick(const std::function<bool(uint32_t value)>& suits) {
  std::vector<uint32_t> found;
  for (uint32_t v = 0; v < values_.size(); ++v) {
    if (!constants_[v] && at(v).dtype == recipe_.dtype && suits(v)) found.push_back(v);
  }
  if (found.empty()) return BP_NONE;
  const auto last = static_cast<int64_t>(found.size()) - 1;
  return found[static_cast<size_t>(
      std::max({random_.integer(0, last), random_.integer(0, last), random_.integer(0, last)}))];
}

uint32_t GraphSampler::pick_bool() {
  std::vector<uint32_t> found;
  for (uint32_t v = 0; v < values_.size(); ++v) {
    if (at(v).dtype == BP_DTYPE_BOOL) found.push_back(v);
  }
  return found.empty() ? BP_NONE : one_of(found);
}

uint32_t GraphSampler::input(Extents extents) {
  const Fill fill = recipe_.linear || chance(0.5) ? Fill::kAroundZero : Fill::kPositive;
  network_.inputs.push_back(random_tensor(random_, recipe_.dtype, std::move(extents), fill));
  const uint32_t value = add_value(exact_estimate(network_.inputs.back()));
  network_.spec.inputs.push_back(value);
  return value;
}

uint32_t GraphSampler::constant(const onnx::Tensor& tensor) {
  const uint32_t value = add_value(exact_estimate(tensor));
  network_.spec.values[value].weight = tensor;
  constants_[value] = true;
  return value;
}

uint32_t GraphSampler::constant(Extents extents, Fill fill) {
  return constant(random_tensor(random_, recipe_.dtype, std::move(extents), fill));
}

uint32_t GraphSampler::weights(Extents extents, int64_t terms) {
  Array array = to_array(random_tensor(random_, recipe_.dtype, std::move(extents), Fill::kAroundZero));
  for (double& x : array.values) x *= 1.5 / std::sqrt(static_cast<double>(terms));
  return constant(to_tensor(array));
}

void GraphSampler::start() {
  start_values_ = values_.size();
  start_inputs_ = network_.inputs.size();
}

void GraphSampler::undo() {
  values_.resize(start_values_);
  constants_.resize(start_values_);
  network_.spec.values.resize(start_values_);
  network_.inputs.resize(start_inputs_);
  network_.spec.inputs.resize(start_inputs_);
}

// True if there are 1 to 2048 elements in at most 5 dimensions, all finite. Integers and bools must be exact. Floats
// must be small enough not to overflow 16-bit types, and their error bounds tight; for fp32, tight enough to detect a
// device that computes in 16 bits.
bool GraphSampler::is_useful(const Estimate& estimate) const {
  constexpr double kLargest = 256;
  if (estimate.value.values.empty() || estimate.value.values.size() > 2048 || estimate.value.rank() > 5) return false;
  double largest = 0, error = 0;
  for (size_t i = 0; i < estimate.error.size(); ++i) {
    largest = std::max(largest, std::fabs(estimate.value.values[i]));
    error = std::max(error, estimate.error[i]);
    if (!std::isfinite(estimate.value.values[i]) || !std::isfinite(estimate.error[i])) return false;
  }
  if (!is_float(estimate.value.dtype)) return error == 0;
  const double digits = std::min(1.0 / 8, 0x1p11 * float_type(estimate.value.dtype).epsilon());
  return largest < kLargest && error <= digits * largest;
}

bool GraphSampler::add(const std::string& op, std::vector<uint32_t> inputs, Attributes attributes, uint32_t outputs) {
  const auto version = newest_form(find_operator(op).versions, network_.spec.opset, recipe_.dtype == BP_DTYPE_BFLOAT16);
  if (!version) return false;
  drop_newer_attributes(op, *version, attributes);
  NodeSpec node{op, "", *version, std::move(inputs), std::vector<uint32_t>(outputs), std::move(attributes)};
  std::vector<const Estimate*> operands;
  for (const uint32_t value : node.inputs) operands.push_back(value == BP_NONE ? nullptr : &values_[value]);
  std::vector<Estimate> results = estimate(node, operands, false);
  if (!std::all_of(results.begin(), results.end(), [&](const Estimate& one) { return is_useful(one); })) {
    return false;
  }
  for (uint32_t o = 0; o < outputs; ++o) node.outputs[o] = add_value(std::move(results[o]));
  network_.spec.nodes.push_back(std::move(node));
  return true;
}

Network GraphSampler::finish() && {
  GraphSpec& spec = network_.spec;
  std::vector<bool> read(spec.values.size()), computed(spec.values.size());
  for (const NodeSpec& node : spec.nodes) {
    for (const uint32_t value : node.inputs) {
      if (value != BP_NONE) read[value] = true;
    }
    for (const uint32_t value : node.outputs) computed[value] = true;
  }
  for (uint32_t value = 0; value < spec.values.size(); ++value) {
    if (computed[value] && (!read[value] || chance(0.1))) spec.outputs.push_back(value);
  }
  return std::move(network_);
}

}  // namespace backplane::conform
