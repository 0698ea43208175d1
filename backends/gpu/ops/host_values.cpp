// SPDX-License-Identifier: Apache-2.0
#include "ops/host_values.h"

#include <algorithm>
#include <cstring>

#include "backplane/sdk/weights.hpp"
#include "engine/expression.h"
#include "ops/extents.h"
#include "ops/row.h"

namespace backplane::gpu::on_host {
namespace {

std::optional<HostValue> within_limit(HostValue value) {
  return static_cast<int64_t>(value.elements.size()) <= kMostOnHost ? std::optional(std::move(value)) : std::nullopt;
}

// Whether a result has few enough elements to be computed. Throws if an extent is negative.
bool fits(const Shape& shape) {
  if (std::ranges::any_of(shape, [](int64_t extent) { return extent < 0; }))
    throw sdk::Error(BP_INVALID_ARGUMENT, "the shape " + to_string(shape) + " has a negative extent");
  return elements(shape) <= kMostOnHost;
}

// The elements of a strided view.
HostValue viewed(const HostValue& x, const Shape& shape, const std::vector<int64_t>& strides, int64_t offset) {
  HostValue result{shape, {}};
  const int64_t count = elements(shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = offset, rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
    result.elements.push_back(x.elements.at(static_cast<size_t>(at)));
  }
  return result;
}

HostValue broadcast_to(const HostValue& x, const Shape& shape) {
  std::vector<int64_t> strides = broadcast_view({0, BP_DTYPE_INT64, x.shape}, shape).strides;
  return viewed(x, shape, strides, 0);
}

// The same elements with other extents.
HostValue with_shape(const HostValue& x, Shape shape) {
  if (elements(shape) != static_cast<int64_t>(x.elements.size()))
    throw sdk::Error(BP_TYPE_MISMATCH, to_string(x.shape) + " does not have as many elements as " + to_string(shape));
  return {std::move(shape), x.elements};
}

// Integers wrap around as on the device: INT32 after 32 bits, INT64 after 64.
int64_t wrapped(bp_dtype_t dtype, uint64_t bits) {
  return dtype == BP_DTYPE_INT32 ? static_cast<int32_t>(static_cast<uint32_t>(bits)) : static_cast<int64_t>(bits);
}

// Combines all inputs, broadcast, from the left. `combine` returns nullopt if the device must compute the node.
template <class Combine>
std::optional<HostValue> combined(const HostCall& call, const Combine& combine) {
  const bp_dtype_t dtype = call.node.input(0).dtype();
  HostValue result = call.in(0);
  for (uint32_t slot = 1; slot < call.node.input_count(); ++slot) {
    const Shape shape = broadcast(result.shape, call.in(slot).shape);
    if (!fits(shape)) return std::nullopt;
    result = broadcast_to(result, shape);
    const HostValue other = broadcast_to(call.in(slot), shape);
    for (size_t i = 0; i < result.elements.size(); ++i) {
      const std::optional<int64_t> one = combine(dtype, result.elements[i], other.elements[i]);
      if (!one) return std::nullopt;
      result.elements[i] = *one;
    }
  }
  return result;
}

uint64_t bits(int64_t x) {
  return static_cast<uint64_t>(x);
}

}  // namespace

std::optional<HostValue> shape(const HostCall& call) {
  const Shape all = call.extents(0);
  const auto rank = static_cast<int64_t>(all.size());
  const auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t begin = within(call.node.int_attribute("start", 0)), end = within(call.node.int_attribute("end", rank));
  HostValue result{{std::max<int64_t>(end - begin, 0)}, {}};
  for (int64_t i = begin; i < end; ++i) result.elements.push_back(all[static_cast<size_t>(i)]);
  return result;
}

std::optional<HostValue> size(const HostCall& call) {
  return HostValue{{}, {elements(call.extents(0))}};
}

std::optional<HostValue> identity(const HostCall& call) {
  return call.in(0);
}

std::optional<HostValue> reshape(const HostCall& call) {
  const HostValue& x = call.in(0);
  return with_shape(x, reshaped(x.shape, call.in(1).elements, call.node.int_attribute("allowzero", 0) != 0));
}

std::optional<HostValue> squeeze(const HostCall& call) {
  const HostValue& x = call.in(0);
  return with_shape(x, squeezed(x.shape, call.has(1) ? std::optional(call.in(1).elements) : std::nullopt));
}

std::optional<HostValue> unsqueeze(const HostCall& call) {
  return with_shape(call.in(0), unsqueezed(call.in(0).shape, call.in(1).elements));
}

std::optional<HostValue> expand(const HostCall& call) {
  const Shape shape = broadcast(call.in(0).shape, call.in(1).elements);
  if (!fits(shape)) return std::nullopt;
  return broadcast_to(call.in(0), shape);
}

std::optional<HostValue> slice(const HostCall& call) {
  const auto numbers = [&](uint32_t slot) { return call.has(slot) ? call.in(slot).elements : std::vector<int64_t>(); };
  const SliceExtents part = sliced(call.in(0).shape, numbers(1), numbers(2), numbers(3), numbers(4));
  return viewed(call.in(0), part.shape, part.strides, part.offset);
}

std::optional<HostValue> concat(const HostCall& call) {
  Shape shape = call.in(0).shape;
  const size_t axis = axis_of(call.node.int_attribute("axis", 0), shape.size());
  std::vector<int64_t> elements;
  const int64_t outer = gpu::elements(shape, 0, axis);
  int64_t extent = 0;
  for (uint32_t slot = 0; slot < call.node.input_count(); ++slot) {
    Shape fitting = shape;
    if (call.in(slot).shape.size() == shape.size()) fitting[axis] = call.in(slot).shape[axis];
    if (call.in(slot).shape != fitting)
      throw sdk::Error(BP_TYPE_MISMATCH, "input " + std::to_string(slot) + " has shape " +
                                             to_string(call.in(slot).shape) + " but input 0 has " + to_string(shape));
    extent += fitting[axis];
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (uint32_t slot = 0; slot < call.node.input_count(); ++slot) {
      const HostValue& x = call.in(slot);
      const int64_t part = gpu::elements(x.shape, axis, x.shape.size());
      elements.insert(elements.end(), x.elements.begin() + o * part, x.elements.begin() + (o + 1) * part);
    }
  }
  shape[axis] = extent;
  return within_limit({std::move(shape), std::move(elements)});
}

std::optional<HostValue> gather(const HostCall& call) {
  const HostValue &x = call.in(0), &indices = call.in(1);
  const size_t axis = axis_of(call.node.int_attribute("axis", 0), x.shape.size());
  const int64_t outer = elements(x.shape, 0, axis), extent = x.shape[axis];
  const int64_t inner = elements(x.shape, axis + 1, x.shape.size());
  HostValue result{Shape(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(axis)), {}};
  result.shape.insert(result.shape.end(), indices.shape.begin(), indices.shape.end());
  result.shape.insert(result.shape.end(), x.shape.begin() + static_cast<ptrdiff_t>(axis) + 1, x.shape.end());
  if (!fits(result.shape)) return std::nullopt;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t given : indices.elements) {
      const int64_t index = given < 0 ? given + extent : given;
      if (index < 0 || index >= extent)
        throw sdk::Error(BP_INVALID_ARGUMENT, "index " + std::to_string(given) + " is out of range for " +
                                                  std::to_string(extent) + " elements");
      const auto from = x.elements.begin() + (o * extent + index) * inner;
      result.elements.insert(result.elements.end(), from, from + inner);
    }
  }
  return result;
}

std::optional<HostValue> constant_of_shape(const HostCall& call) {
  const Shape& shape = call.in(0).elements;
  if (!fits(shape)) return std::nullopt;
  int64_t value = 0;
  const bp_attribute_t* attribute = call.node.attribute("value");
  if (attribute != nullptr) {
    const bp_weight_t* weight = bp_graph_weight(call.node.graph(), *static_cast<const uint32_t*>(attribute->data));
    value = host_value_of(weight->dtype, {}, weight->data, weight->bytes).elements.at(0);
  }
  return HostValue{shape, std::vector<int64_t>(static_cast<size_t>(elements(shape)), value)};
}

std::optional<HostValue> range(const HostCall& call) {
  const int64_t start = call.in(0).elements.at(0), limit = call.in(1).elements.at(0), by = call.in(2).elements.at(0);
  if (by == 0) return std::nullopt;  // the operator's `emit` reports the error
  HostValue result{{0}, {}};
  for (int64_t at = start; by > 0 ? at < limit : at > limit;) {
    if (++result.shape[0] > kMostOnHost) return std::nullopt;
    result.elements.push_back(at);
    if (__builtin_add_overflow(at, by, &at)) break;
  }
  return result;
}

std::optional<HostValue> cast(const HostCall& call) {
  HostValue result = call.in(0);
  const bp_dtype_t to = call.node.output(0).dtype();
  for (int64_t& x : result.elements) x = to == BP_DTYPE_BOOL ? x != 0 : wrapped(to, bits(x));
  return result;
}

std::optional<HostValue> add(const HostCall& call) {
  return combined(call, [](bp_dtype_t dtype, int64_t a, int64_t b) -> std::optional<int64_t> {
    return wrapped(dtype, bits(a) + bits(b));
  });
}

std::optional<HostValue> sub(const HostCall& call) {
  return combined(call, [](bp_dtype_t dtype, int64_t a, int64_t b) -> std::optional<int64_t> {
    return wrapped(dtype, bits(a) - bits(b));
  });
}

std::optional<HostValue> mul(const HostCall& call) {
  return combined(call, [](bp_dtype_t dtype, int64_t a, int64_t b) -> std::optional<int64_t> {
    return wrapped(dtype, bits(a) * bits(b));
  });
}

bool divides_by_constants(const Node& node) {
  const std::optional<std::vector<int64_t>> divisors = sdk::weight_ints(node.input(1));
  return divisors && std::ranges::count(*divisors, 0) == 0;
}

std::optional<HostValue> div(const HostCall& call) {
  return combined(call, [](bp_dtype_t dtype, int64_t a, int64_t b) -> std::optional<int64_t> {
    if (b == 0) return std::nullopt;
    return b == -1 ? wrapped(dtype, 0 - bits(a)) : a / b;
  });
}

// The result has the divisor's sign, or with fmod the dividend's.
std::optional<HostValue> mod(const HostCall& call) {
  const bool is_fmod = call.node.int_attribute("fmod", 0) != 0;
  return combined(call, [&](bp_dtype_t, int64_t a, int64_t b) -> std::optional<int64_t> {
    if (b == 0) return std::nullopt;
    const int64_t rest = b == -1 ? 0 : a % b;
    return !is_fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  });
}

std::optional<HostValue> min(const HostCall& call) {
  return combined(call, [](bp_dtype_t, int64_t a, int64_t b) { return std::optional(std::min(a, b)); });
}

std::optional<HostValue> max(const HostCall& call) {
  return combined(call, [](bp_dtype_t, int64_t a, int64_t b) { return std::optional(std::max(a, b)); });
}

std::optional<HostValue> equal(const HostCall& call) {
  return combined(call, [](bp_dtype_t, int64_t a, int64_t b) { return std::optional<int64_t>(a == b); });
}

std::optional<HostValue> where(const HostCall& call) {
  const Shape shape = broadcast(broadcast(call.in(0).shape, call.in(1).shape), call.in(2).shape);
  if (!fits(shape)) return std::nullopt;
  const HostValue condition = broadcast_to(call.in(0), shape), other = broadcast_to(call.in(2), shape);
  HostValue result = broadcast_to(call.in(1), shape);
  for (size_t i = 0; i < result.elements.size(); ++i)
    if (condition.elements[i] == 0) result.elements[i] = other.elements[i];
  return result;
}

}  // namespace backplane::gpu::on_host
