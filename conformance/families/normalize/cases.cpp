// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

onnx::Tensor draw(Random& random, bp_dtype_t dtype, Extents extents, Fill fill) {
  return random_tensor(random, dtype, std::move(extents), fill);
}

}  // namespace

void add_normalize_cases(OpCases& cases) {
  for (const Extents& extents : {Extents{2, 3, 5, 7}, Extents{4, 6}, Extents{1, 17, 9}, Extents{0, 3, 4, 4}}) {
    cases.add_real("BatchNormalization", "rank" + std::to_string(extents.size()) + "_" + std::to_string(extents[0]),
                   [=](Random& random, bp_dtype_t dtype) {
                     Problem problem{"BatchNormalization",
                                     {{"epsilon", 1e-5f}, {"momentum", 0.9f}, {"training_mode", int64_t{0}}},
                                     {draw(random, dtype, extents, Fill::kWide)}};
                     const Fill fills[] = {Fill::kAroundZero, Fill::kWide, Fill::kAroundZero, Fill::kPositive};
                     for (const Fill fill : fills)
                       problem.arguments.push_back(constant(draw(random, dtype, {extents[1]}, fill)));
                     return problem;
                   });
  }

  struct Row {
    const char* name;
    Extents x;
    int64_t axis;
    bool bias;
  };
  const Row rows[] = {{"last", {2, 5, 64}, -1, true},
                      {"no_bias", {3, 33}, -1, false},
                      {"two_axes", {2, 3, 4, 5}, 2, true},
                      {"all", {3, 7}, 0, true},
                      {"bert", {1, 4, 768}, 2, true}};
  for (const Row& row : rows) {
    cases.add_real("LayerNormalization", row.name, [=](Random& random, bp_dtype_t dtype) {
      const Extents inner(row.x.begin() + normal_axis(row.axis, static_cast<int64_t>(row.x.size())), row.x.end());
      Problem problem{"LayerNormalization",
                      {{"axis", row.axis}, {"epsilon", 1e-5f}, {"stash_type", int64_t{1}}},
                      {draw(random, dtype, row.x, Fill::kWide), constant(draw(random, dtype, inner, Fill::kWide))}};
      if (row.bias) problem.arguments.push_back(constant(draw(random, dtype, inner, Fill::kAroundZero)));
      return problem;
    });
  }
  // Scale and bias broadcast to x, so they may differ by row. There are as many rows as elements in a row, so that a
  // backend could mistake a scale for each row for a scale for each element of a row.
  struct Affine {
    const char* name;
    Extents scale, bias;
  };
  for (const Affine& row : {Affine{"scale_of_rows", {7, 1}, {7}}, Affine{"bias_of_rows", {7}, {7, 1}},
                            Affine{"scale_of_batches", {2, 1, 1}, {2, 1, 7}}, Affine{"scale_of_all", {2, 7, 7}, {1}}}) {
    for (const bp_dtype_t dtype : real_types()) {
      cases.add_to(kExtended, "LayerNormalization", dtype, row.name, [=](Random& random) {
        onnx::Tensor x = draw(random, dtype, {2, 7, 7}, Fill::kWide),
                     scale = draw(random, dtype, row.scale, Fill::kWide);
        return Problem{
            "LayerNormalization",
            {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}, {"stash_type", int64_t{1}}},
            {std::move(x), constant(std::move(scale)), constant(draw(random, dtype, row.bias, Fill::kAroundZero))}};
      });
    }
  }
  for (const Extents& extents : {Extents{2, 3, 6, 6}, Extents{1, 5, 17}}) {
    cases.add_real(
        "InstanceNormalization", "rank" + std::to_string(extents.size()), [=](Random& random, bp_dtype_t dtype) {
          return Problem{
              "InstanceNormalization",
              {{"epsilon", 1e-5f}},
              {draw(random, dtype, extents, Fill::kWide), constant(draw(random, dtype, {extents[1]}, Fill::kWide)),
               constant(draw(random, dtype, {extents[1]}, Fill::kAroundZero))}};
        });
  }

  for (const bp_dtype_t dtype : real_types()) {
    cases.add_to(kExtended, "InstanceNormalization", dtype, "large_epsilon", [=](Random& random) {
      onnx::Tensor x = draw(random, dtype, {2, 3, 5, 4}, Fill::kAroundZero),
                   scale = draw(random, dtype, {3}, Fill::kPositive);
      return Problem{"InstanceNormalization",
                     {{"epsilon", 0.5f}},
                     {std::move(x), constant(std::move(scale)), constant(draw(random, dtype, {3}, Fill::kAroundZero))}};
    });
  }

  struct Axis {
    const char* name;
    Extents x;
    int64_t axis;
  };
  const Axis axes[] = {{"last", {3, 17}, -1},   {"middle", {2, 5, 7}, 1}, {"first", {4, 3}, 0}, {"one", {5, 1}, 1},
                       {"long", {2, 1000}, -1}, {"vector", {9}, 0},       {"empty", {0, 4}, 1}};
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Axis& axis : axes) {
      cases.add_real(op, axis.name, [=](Random& random, bp_dtype_t dtype) {
        return Problem{op, {{"axis", axis.axis}}, {draw(random, dtype, axis.x, Fill::kWide)}};
      });
    }
    cases.add_real(op, "large_numbers", [=](Random& random, bp_dtype_t dtype) {
      Array x = to_array(draw(random, dtype, {3, 9}, Fill::kAroundZero));
      for (double& value : x.values) value += 1e4;  // without subtracting the maximum first, exp of these overflows
      return Problem{op, {{"axis", int64_t{-1}}}, {to_tensor(x)}};
    });
  }
}

}  // namespace backplane::conform
