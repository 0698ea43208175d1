// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

namespace null_backend {
namespace {

using namespace backplane::sdk;

// One thread and plain loops, guessed on the slow side: two reads and a write of 4 bytes at 5 GB/s, and what a call
// costs.
constexpr double kSecondsPerElement = 2.4e-9;
constexpr double kSecondsPerCall = 1e-6;

// All operands are float tensors of one static shape: that is all that the loops below can do.
template <uint32_t kInputs>
Verdict same_shape_floats(const Node& node) {
  const Value y = node.output(0);
  if (node.input_count() != kInputs || node.output_count() != 1)
    return no(BP_REASON_OTHER, "it has " + std::to_string(node.input_count()) + " inputs and " +
                                   std::to_string(node.output_count()) + " outputs; it takes " +
                                   std::to_string(kInputs) + " and 1");
  if (y.dtype() != BP_DTYPE_FLOAT)
    return no(BP_REASON_DTYPE, "its output is not float; only float tensors are supported");
  if (!y.has_static_shape())
    return no(BP_REASON_SHAPE, "the shape is not known before the run; only static shapes are supported");
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    const Value x = node.input(i);
    if (!x) return no(BP_REASON_OTHER, "input " + std::to_string(i) + " is omitted");
    if (!x.is_tensor() || x.dtype() != BP_DTYPE_FLOAT) {
      return no(BP_REASON_DTYPE, "input " + std::to_string(i) + " is " +
                                     std::string(backplane::view::dtype_name(x.dtype())) +
                                     "; only float tensors are supported");
    }
    if (x.extents() != y.extents())
      return no(BP_REASON_SHAPE, "input " + std::to_string(i) + " is broadcast; only equal shapes are supported");
  }
  return yes(kSecondsPerCall + static_cast<double>(count(y)) * kSecondsPerElement, 0.3f);
}

// Turns a formula into a kernel.
template <float (*kFunction)(float, float)>
std::unique_ptr<Kernel> elementwise(const Node&) {
  return std::make_unique<Kernel>(Kernel{[](const float* a, const float* b, float* y, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) y[i] = kFunction(a[i], b == nullptr ? 0.0f : b[i]);
  }});
}

float identity(float a, float) {
  return a;
}
float neg(float a, float) {
  return -a;
}
float relu(float a, float) {
  return a < 0 ? 0 : a;
}  // NaN stays NaN
float add(float a, float b) {
  return a + b;
}

constexpr Op<Kernel> kRows[] = {
    {"", "Identity", 25, same_shape_floats<1>, elementwise<identity>},
    {"", "Neg", 13, same_shape_floats<1>, elementwise<neg>},
    {"", "Relu", 14, same_shape_floats<1>, elementwise<relu>},
    {"", "Add", 14, same_shape_floats<2>, elementwise<add>},
};

}  // namespace

const OpTable<Kernel> kOps(kRows);

uint64_t count(const Value& value) {
  uint64_t n = 1;
  for (const int64_t extent : value.extents()) n *= static_cast<uint64_t>(extent);
  return n;
}

}  // namespace null_backend
