// SPDX-License-Identifier: Apache-2.0
// Integers that the planner computes on the host: extents of tensors, and what nodes compute from extents and
// constants. A plan is made for concrete extents, so these are constants of the plan, and other nodes can use them as
// extents, axes or ranges.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backplane/sdk/coverage.hpp"
#include "engine/shape.h"

namespace backplane::gpu {

// The elements of an INT64, INT32 or BOOL tensor, row-major.
struct HostValue {
  Shape shape;
  std::vector<int64_t> elements;
};

// Values with more elements are left to the device.
inline constexpr int64_t kMostOnHost = 1024;

// A node, and the inputs whose elements the host knows.
struct HostCall {
  const sdk::Node& node;
  std::vector<const HostValue*> inputs;         // NULL: omitted. Empty with HostRule::from_extents
  std::function<Shape(uint32_t slot)> extents;  // of any input

  bool has(uint32_t slot) const { return slot < inputs.size() && inputs[slot] != nullptr; }
  const HostValue& in(uint32_t slot) const { return *inputs.at(slot); }
};

// How the host computes an operator's only output.
struct HostRule {
  // NULL: the operator is never computed on the host. Throws sdk::Error if the node is invalid. Returns nullopt if the
  // device must compute the node: the result has too many elements, or `computes` is false.
  std::optional<HostValue> (*compute)(const HostCall& call) = nullptr;
  bool from_extents = false;                          // `compute` uses the inputs' extents, and no elements
  bool (*computes)(const sdk::Node& node) = nullptr;  // whether the host computes the node; NULL: always
};

bool is_host_dtype(bp_dtype_t dtype);
// host_bytes_of: the elements as a tensor of type `dtype` has them in memory. host_value_of: the reverse. `dtype` must
// be a type for which is_host_dtype returns true.
std::vector<std::byte> host_bytes_of(const HostValue& value, bp_dtype_t dtype);
HostValue host_value_of(bp_dtype_t dtype, Shape shape, const void* data, uint64_t bytes);

}  // namespace backplane::gpu
