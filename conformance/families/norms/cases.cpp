// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

using Make = std::function<Problem(Random& random, bp_dtype_t dtype)>;

void add(OpCases& cases, const char* op, const std::string& variant, const Make& make) {
  for (const bp_dtype_t dtype : real_types())
    cases.add_to(kExtended, op, dtype, variant, [=](Random& random) { return make(random, dtype); });
}

onnx::Tensor scalar(int64_t value) {
  Array array(BP_DTYPE_INT64, {});
  array.values[0] = static_cast<double>(value);
  return to_tensor(array);
}

void add_cumulative(OpCases& cases) {
  for (const char* op : {"CumSum", "CumProd"}) {
    for (const int64_t flags : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}}) {
      for (const int64_t axis : {int64_t{0}, int64_t{-1}}) {
        const bool multiplies = std::string_view(op) == "CumProd";
        const auto make = [=](Random& random, bp_dtype_t dtype) {
          return Problem{op,
                         {{"exclusive", flags & 1}, {"reverse", flags >> 1}},
                         {multiplies ? random_factors(random, dtype, {5, 11}, 11)
                                     : random_tensor(random, dtype, {5, 11}, Fill::kAroundZero),
                          constant(scalar(axis))}};
        };
        add(cases, op, "axis" + std::to_string(axis) + "_flags" + std::to_string(flags), make);
      }
    }
  }
}

}  // namespace

void add_norms_cases(OpCases& cases) {
  add_cumulative(cases);
  for (const int64_t keep : {int64_t{0}, int64_t{1}}) {
    add(cases, "ReduceLogSum", "keep" + std::to_string(keep), [=](Random& random, bp_dtype_t dtype) {
      return Problem{"ReduceLogSum",
                     {{"keepdims", keep}, {"noop_with_empty_axes", int64_t{0}}},
                     {random_tensor(random, dtype, {3, 5, 4}, Fill::kPositive), constant(integers({0, 2}))}};
    });
  }
  for (const int64_t p : {int64_t{1}, int64_t{2}}) {
    const std::string name = "p" + std::to_string(p);
    for (const int64_t axis : {int64_t{-1}, int64_t{0}}) {
      add(cases, "LpNormalization", name + "_axis" + std::to_string(axis), [=](Random& random, bp_dtype_t dtype) {
        return Problem{
            "LpNormalization", {{"axis", axis}, {"p", p}}, {random_tensor(random, dtype, {5, 13}, Fill::kWide)}};
      });
    }
    add(cases, "GlobalLpPool", name, [=](Random& random, bp_dtype_t dtype) {
      return Problem{"GlobalLpPool", {{"p", p}}, {random_tensor(random, dtype, {2, 3, 5, 7}, Fill::kWide)}};
    });
    for (const int64_t step : {int64_t{1}, int64_t{2}}) {
      add(cases, "LpPool", name + "_stride" + std::to_string(step), [=](Random& random, bp_dtype_t dtype) {
        return Problem{"LpPool",
                       {{"auto_pad", std::string("NOTSET")},
                        {"ceil_mode", int64_t{0}},
                        {"dilations", Extents{1, 1}},
                        {"kernel_shape", Extents{3, 2}},
                        {"p", p},
                        {"pads", Extents{1, 0, 1, 1}},
                        {"strides", Extents{step, step}}},
                       {random_tensor(random, dtype, {1, 2, 7, 6}, Fill::kWide)}};
      });
    }
  }
  for (const bool ceil : {false, true}) {
    add(cases, "LpPool", ceil ? "ceil_dilated" : "floor_dilated", [=](Random& random, bp_dtype_t dtype) {
      return Problem{"LpPool",
                     {{"auto_pad", std::string("NOTSET")},
                      {"ceil_mode", int64_t{ceil}},
                      {"dilations", Extents{2, 1}},
                      {"kernel_shape", Extents{2, 3}},
                      {"p", int64_t{2}},
                      {"pads", Extents{0, 0, 0, 0}},
                      {"strides", Extents{2, 2}}},
                     {random_tensor(random, dtype, {1, 2, 8, 6}, Fill::kWide)}};
    });
  }
  const auto add_lrn = [&](const std::string& name, int64_t size, float beta) {
    add(cases, "LRN", name, [=](Random& random, bp_dtype_t dtype) {
      return Problem{"LRN",
                     {{"alpha", 0.25f}, {"beta", beta}, {"bias", 1.5f}, {"size", size}},
                     {random_tensor(random, dtype, {2, 7, 3, 5}, Fill::kWide)}};
    });
  };
  for (const int64_t size : {int64_t{1}, int64_t{3}, int64_t{5}, int64_t{4}})
    add_lrn("size" + std::to_string(size), size, 0.75f);
  add_lrn("beta", 3, 0.5f);
  add(cases, "MeanVarianceNormalization", "images", [](Random& random, bp_dtype_t dtype) {
    return Problem{"MeanVarianceNormalization",
                   {{"axes", Extents{0, 2, 3}}},
                   {random_tensor(random, dtype, {2, 3, 5, 4}, Fill::kWide)}};
  });
  for (const int64_t groups : {int64_t{1}, int64_t{2}, int64_t{6}}) {
    add(cases, "GroupNormalization", "groups" + std::to_string(groups), [=](Random& random, bp_dtype_t dtype) {
      onnx::Tensor x = random_tensor(random, dtype, {2, 6, 5, 4}, Fill::kWide);
      onnx::Tensor scale = random_tensor(random, dtype, {6}, Fill::kPositive);
      return Problem{
          "GroupNormalization",
          {{"epsilon", groups == 2 ? 0.5f : 1e-5f}, {"num_groups", groups}, {"stash_type", int64_t{1}}},
          {std::move(x), constant(std::move(scale)), constant(random_tensor(random, dtype, {6}, Fill::kAroundZero))}};
    });
  }
  for (const int64_t axis : {int64_t{-1}, int64_t{1}}) {
    add(cases, "RMSNormalization", "axis" + std::to_string(axis), [=](Random& random, bp_dtype_t dtype) {
      onnx::Tensor x = random_tensor(random, dtype, {2, 4, 9}, Fill::kWide);
      const Extents scale = axis < 0 ? Extents{9} : Extents{4, 9};
      return Problem{"RMSNormalization",
                     {{"axis", axis}, {"epsilon", axis < 0 ? 1e-5f : 0.5f}, {"stash_type", int64_t{1}}},
                     {std::move(x), constant(random_tensor(random, dtype, scale, Fill::kPositive))}};
    });
  }
  // There are as many rows as elements in a row, so that a backend could mistake a scale for each row for a scale for
  // each element of a row.
  for (const Extents& scale : {Extents{7, 1}, Extents{2, 1, 1}, Extents{2, 7, 7}, Extents{1}}) {
    add(cases, "RMSNormalization", "scale_" + std::to_string(count_of(scale)), [=](Random& random, bp_dtype_t dtype) {
      onnx::Tensor x = random_tensor(random, dtype, {2, 7, 7}, Fill::kWide);
      return Problem{"RMSNormalization",
                     {{"axis", int64_t{-1}}, {"epsilon", 1e-5f}, {"stash_type", int64_t{1}}},
                     {std::move(x), constant(random_tensor(random, dtype, scale, Fill::kPositive))}};
    });
  }
  add(cases, "Mean", "three", [](Random& random, bp_dtype_t dtype) {
    onnx::Tensor a = random_tensor(random, dtype, {4, 5}, Fill::kWide),
                 b = random_tensor(random, dtype, {5}, Fill::kWide);
    return Problem{"Mean", {}, {std::move(a), std::move(b), random_tensor(random, dtype, {4, 1}, Fill::kWide)}};
  });
}

}  // namespace backplane::conform
