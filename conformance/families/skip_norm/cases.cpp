// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* variant;
  Extents x, skip;
  bool beta = true, bias = false, sums = false;
  float epsilon = 1e-12f;
};
const Row kRows[] = {
    {"plain", {2, 5, 33}, {2, 5, 33}},
    {"bias", {2, 5, 33}, {2, 5, 33}, true, true},
    {"no_beta", {3, 4, 16}, {3, 4, 16}, false},
    {"no_beta_but_bias", {3, 4, 16}, {3, 4, 16}, false, true},
    {"sums", {2, 3, 24}, {2, 3, 24}, true, false, true},
    {"sums_and_bias", {2, 3, 24}, {2, 3, 24}, true, true, true},
    {"shared_skip", {3, 4, 17}, {1, 4, 17}, true, false, true},
    {"skip_without_batch", {3, 4, 17}, {4, 17}, true, true},
    {"tokens", {7, 40}, {7, 40}, true, true, true},
    {"epsilon", {2, 4, 8}, {2, 4, 8}, true, false, true, 0.125f},
    {"one_element", {2, 3, 1}, {2, 3, 1}, true, false, false, 0.125f},
    {"wide", {1, 3, 768}, {1, 3, 768}},
    {"empty", {0, 4, 8}, {0, 4, 8}, true, true, true},
};

// SkipLayerNormalization and SkipSimplifiedLayerNormalization, of which only the first has the input beta.
Problem skipped(const std::string& op, const Row& row, bool has_beta, Random& random, bp_dtype_t dtype) {
  const auto vector = [&](bool is_there, Fill fill) {
    return is_there ? constant(random_tensor(random, dtype, {row.x.back()}, fill)) : Argument();
  };
  Problem problem{op,
                  {{"epsilon", row.epsilon}},
                  {random_tensor(random, dtype, row.x, Fill::kAroundZero),
                   random_tensor(random, dtype, row.skip, Fill::kAroundZero), vector(true, Fill::kPositive)}};
  // The sums are output 3. ONNX Runtime computes the mean and the inverse deviation of a row, outputs 1 and 2, only in
  // training.
  if (row.sums) problem.outputs = 4, problem.omitted = {1, 2};
  if (has_beta) problem.arguments.push_back(vector(row.beta, Fill::kAroundZero));
  problem.arguments.push_back(vector(row.bias, Fill::kAroundZero));
  while (!problem.arguments.back().tensor) problem.arguments.pop_back();
  return problem;
}

struct Simplified {
  const char* variant;
  Extents x;
  uint32_t outputs = 1;
  float epsilon = 1e-5f;
};
const Simplified kSimplified[] = {
    {"plain", {2, 5, 33}},         {"two_outputs", {2, 5, 16}, 2}, {"epsilon", {3, 8}, 2, 0.125f},
    {"wide", {1, 3, 768}},         {"four_axes", {2, 2, 3, 7}, 2}, {"vector", {19}},
    {"one_element", {4, 1}, 2, 1}, {"empty", {0, 4, 8}, 2},
};

}  // namespace

void add_skip_norm_cases(OpCases& cases) {
  for (const bp_dtype_t dtype : real_types()) {
    for (const Row& row : kRows) {
      for (const bool has_beta : {true, false}) {
        if (!has_beta && !row.beta) continue;
        const std::string op = has_beta ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization";
        cases.add_to(kMicrosoft, op, dtype, row.variant,
                     [=, &row](Random& random) { return skipped(op, row, has_beta, random, dtype); });
      }
    }
    for (const Simplified& row : kSimplified) {
      cases.add_to(kMicrosoft, "SimplifiedLayerNormalization", dtype, row.variant, [=, &row](Random& random) {
        return Problem{"SimplifiedLayerNormalization",
                       {{"axis", int64_t{-1}}, {"epsilon", row.epsilon}},
                       {random_tensor(random, dtype, row.x, Fill::kAroundZero),
                        constant(random_tensor(random, dtype, {row.x.back()}, Fill::kPositive))},
                       row.outputs};
      });
    }
  }
}

}  // namespace backplane::conform
