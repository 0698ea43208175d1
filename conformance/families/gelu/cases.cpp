// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* variant;
  Extents extents;
  Fill fill = Fill::kWide;
};
const Row kRows[] = {
    {"plain", {2, 3, 16}}, {"odd", {7, 13}},    {"one", {1, 1, 1}}, {"near_zero", {5, 33}, Fill::kAroundZero},
    {"long", {1, 4099}},   {"wide", {3, 3072}}, {"empty", {3, 0}},
};

void add_one(OpCases& cases, const std::string& op, const std::string& variant, const Row& row, bool bias,
             const Attributes& attributes = {}) {
  for (const bp_dtype_t dtype : real_types()) {
    cases.add_to(kMicrosoft, op, dtype, row.variant + variant, [=](Random& random) {
      Problem problem{op, attributes, {random_tensor(random, dtype, row.extents, row.fill)}};
      if (bias)
        problem.arguments.push_back(constant(random_tensor(random, dtype, {row.extents.back()}, Fill::kAroundZero)));
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
