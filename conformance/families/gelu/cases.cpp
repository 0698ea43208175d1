// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

// Below about -5, a device that computes 1 + erf(x/√2) or the like returns 0, within the bounds. If this is so for many
// elements, the judge takes them for memory that was never written: in a row of few elements, chance decides how many.
// Only long rows have such numbers.
struct Row {
  const char* variant;
  Extents extents;
  double low = -3, high = 8;
};
const Row kRows[] = {
    {"plain", {2, 3, 16}},   {"odd", {7, 13}},        {"one", {1, 1, 1}}, {"near_zero", {5, 33}, -1, 1},
    {"long", {1, 4099}, -8}, {"wide", {3, 3072}, -8}, {"empty", {3, 0}},
};

onnx::Tensor between(Random& random, bp_dtype_t dtype, const Extents& extents, double low, double high) {
  Array array(dtype, extents);
  for (double& x : array.values) x = random.uniform(low, high);
  return to_tensor(array);
}

void add_one(OpCases& cases, const std::string& op, const std::string& variant, const Row& row, bool bias,
             const Attributes& attributes = {}) {
  for (const bp_dtype_t dtype : real_types()) {
    cases.add_to(kMicrosoft, op, dtype, row.variant + variant, [=](Random& random) {
      Problem problem{op, attributes, {between(random, dtype, row.extents, row.low, row.high)}};
      if (bias) problem.arguments.push_back(constant(between(random, dtype, {row.extents.back()}, -1, 1)));
      return problem;
    });
  }
}

}  // namespace

void add_gelu_cases(OpCases& cases) {
  for (const Row& row : kRows) {
    add_one(cases, "com.microsoft.Gelu", "", row, false);
    add_one(cases, "BiasGelu", "", row, true);
    add_one(cases, "FastGelu", "", row, false);
    add_one(cases, "FastGelu", "_bias", row, true);
    add_one(cases, "QuickGelu", "", row, false, {{"alpha", 1.702f}});
    add_one(cases, "QuickGelu", "_steep", row, false, {{"alpha", -2.5f}});
  }
}

}  // namespace backplane::conform
