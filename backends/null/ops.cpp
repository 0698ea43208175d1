// SPDX-License-Identifier: Apache-2.0
#include "ops.h"

namespace null_backend {
namespace {

using namespace backplane::sdk;

// Conservative guesses: the bandwidth of a plain loop on one thread, and the cost of a call.
constexpr double kBytesPerSecond = 5e9, kSecondsPerCall = 1e-6;

// Accepts a node if all its operands are float tensors of the same static shape; the loops below can do nothing else.
template <uint32_t kInputs>
Verdict floats(const Node& node) {
  const double seconds = kSecondsPerCall + bytes_moved(node).value_or(0) / kBytesPerSecond;
  return expect(node)
      .inputs(kInputs)
      .outputs(1)
      .dtypes(one(BP_DTYPE_FLOAT))
      .static_shapes()
      .same_shapes()
      .yes(seconds, 0.3f);
}

// Turns a formula into a kernel. `b` is 0 for operators with one input.
template <float (*kFormula)(float a, float b)>
std::unique_ptr<Kernel> elementwise(const Node&) {
  return std::make_unique<Kernel>([](const NodeCall& call) {
    const float *a = call.input<float>(0), *b = call.input<float>(1);
    float* y = call.output<float>(0);
    for (uint64_t i = 0; i < call.count(); ++i) y[i] = kFormula(a[i], b == nullptr ? 0.0f : b[i]);
  });
}

float identity(float a, float) {
  return a;
}
float neg(float a, float) {
  return -a;
}
float relu(float a, float) {
  return a < 0 ? 0 : a;  // NaN stays NaN
}
float add(float a, float b) {
  return a + b;
}

// A row applies to its since version and later ones, up to the version in the operator's next row.
constexpr Op<Kernel> kRows[] = {
    {"", "Identity", 25, floats<1>, elementwise<identity>},
    {"", "Neg", 13, floats<1>, elementwise<neg>},
    {"", "Relu", 14, floats<1>, elementwise<relu>},
    {"", "Add", 14, floats<2>, elementwise<add>},
};

}  // namespace

const OpTable<Kernel> kOps(kRows, kOpsets);

}  // namespace null_backend
