// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

namespace backplane::conform {
namespace {

// Random indices into the first axes of a tensor, which have the extents `limits`. Positions are distinct unless
// `may_repeat`; with repeats, only reductions have a defined result.
onnx::Tensor places(Random& random, Extents extents, const Extents& limits, bool may_repeat) {
  Array array(BP_DTYPE_INT64, std::move(extents));
  const size_t depth = limits.size();
  std::vector<std::vector<double>> all(1);
  for (const int64_t limit : limits) {
    std::vector<std::vector<double>> longer;
    for (const std::vector<double>& one : all) {
      for (int64_t i = 0; i < limit; ++i) {
        longer.push_back(one);
        longer.back().push_back(static_cast<double>(i));
      }
    }
    all = std::move(longer);
  }
  for (size_t at = 0; at + depth <= array.values.size() && depth != 0; at += depth) {
    const auto drawn = static_cast<size_t>(random.integer(0, static_cast<int64_t>(all.size()) - 1));
    for (size_t i = 0; i < depth; ++i) {
      const bool from_end = random.integer(0, 3) == 0;
      array.values[at + i] = all[drawn][i] - (from_end ? static_cast<double>(limits[i]) : 0);
    }
    if (!may_repeat) all.erase(all.begin() + static_cast<int64_t>(drawn));
  }
  return to_tensor(array);
}

// Random indices for a scatter along an axis, some of them negative. They are distinct within each line along the axis
// unless `may_repeat`.
onnx::Tensor lines(Random& random, const Extents& extents, size_t axis, int64_t limit, bool may_repeat) {
  Array array(BP_DTYPE_INT64, extents);
  Extents first = extents;
  first[axis] = 1;
  for_each_index(first, [&](const Index& line) {
    std::vector<int64_t> left(static_cast<size_t>(limit));
    for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int64_t>(i);
    Index index = line;
    for (index[axis] = 0; index[axis] < extents[axis]; ++index[axis]) {
      const auto drawn = static_cast<size_t>(random.integer(0, static_cast<int64_t>(left.size()) - 1));
      array.at(index) = static_cast<double>(left[drawn] - (random.integer(0, 3) == 0 ? limit : 0));
      if (!may_repeat) left.erase(left.begin() + static_cast<int64_t>(drawn));
    }
  });
  return to_tensor(array);
}

bool is_half(bp_dtype_t dtype) {
  return dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
}

}  // namespace

void add_scatter_cases(OpCases& cases) {
  const bp_dtype_t types[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16,
                              BP_DTYPE_INT64, BP_DTYPE_INT32,   BP_DTYPE_UINT8};
  for (const bp_dtype_t dtype : types) {
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      const bool is_sum = std::string_view(reduction) == "add" || std::string_view(reduction) == "mul";
      // Sums and products in 8 bits wrap, which ONNX does not define. Those of 16-bit floats are left out, too.
      if (is_sum && (dtype == BP_DTYPE_UINT8 || is_half(dtype))) continue;
      const bool repeats = std::string_view(reduction) != "none";
      // Integers are small, so that products of a few of them stay in range.
      const Fill fill = dtype == BP_DTYPE_FLOAT || is_half(dtype) ? Fill::kAroundZero : Fill::kWhole;
      for (const size_t axis : {size_t{0}, size_t{1}}) {
        cases.add_to(kExtended, "ScatterElements", dtype, std::string(reduction) + "_axis" + std::to_string(axis),
                     [=](Random& random) {
                       const Extents chosen = {3, 4};
                       onnx::Tensor data = random_tensor(random, dtype, {5, 6}, fill);
                       onnx::Tensor indices = lines(random, chosen, axis, axis == 0 ? 5 : 6, repeats);
                       return Problem{
                           "ScatterElements",
                           {{"axis", static_cast<int64_t>(axis)}, {"reduction", std::string(reduction)}},
                           {std::move(data), std::move(indices), random_tensor(random, dtype, chosen, fill)}};
                     });
      }
      for (const int64_t depth : {int64_t{1}, int64_t{2}}) {
        cases.add_to(
            kExtended, "ScatterND", dtype, std::string(reduction) + "_depth" + std::to_string(depth),
            [=](Random& random) {
              const Extents limits = depth == 1 ? Extents{4} : Extents{4, 5};
              const Extents updates = depth == 1 ? Extents{3, 5, 2} : Extents{2, 3, 2};
              onnx::Tensor data = random_tensor(random, dtype, {4, 5, 2}, fill);
              onnx::Tensor indices = places(random, depth == 1 ? Extents{3, 1} : Extents{2, 3, 2}, limits, repeats);
              return Problem{"ScatterND",
                             {{"reduction", std::string(reduction)}},
                             {std::move(data), std::move(indices), random_tensor(random, dtype, updates, fill)}};
            });
      }
    }
    struct Row {
      const char* variant;
      int64_t batch;
      Extents data, indices, limits;
    };
    const Row rows[] = {{"elements", 0, {4, 5}, {3, 2}, {4, 5}},
                        {"rows", 0, {4, 5, 2}, {2, 3, 1}, {4}},
                        {"batch", 1, {2, 4, 5}, {2, 3, 1}, {4}},
                        {"batch_elements", 1, {2, 4, 5}, {2, 2}, {4, 5}}};
    for (const Row& row : rows) {
      cases.add_to(kExtended, "GatherND", dtype, row.variant, [=](Random& random) {
        onnx::Tensor data = random_tensor(random, dtype, row.data, Fill::kWhole);
        return Problem{
            "GatherND", {{"batch_dims", row.batch}}, {std::move(data), places(random, row.indices, row.limits, true)}};
      });
    }
  }
  for (const int64_t axis : {int64_t{0}, int64_t{1}}) {
    cases.add_to(kExtended, "Scatter", BP_DTYPE_FLOAT, "axis" + std::to_string(axis), [=](Random& random) {
      onnx::Tensor data = random_tensor(random, BP_DTYPE_FLOAT, {5, 6}, Fill::kWide);
      onnx::Tensor indices = lines(random, {3, 4}, static_cast<size_t>(axis), axis == 0 ? 5 : 6, false);
      return Problem{"Scatter",
                     {{"axis", axis}},
                     {std::move(data), std::move(indices), random_tensor(random, BP_DTYPE_FLOAT, {3, 4}, Fill::kWide)}};
    });
  }
  for (const bp_dtype_t dtype : real_types()) {
    for (const char* mode : {"linear", "circular"}) {
      cases.add_to(kExtended, "TensorScatter", dtype, mode, [=](Random& random) {
        const bool is_circular = std::string_view(mode) == "circular";
        return Problem{"TensorScatter",
                       {{"axis", int64_t{-2}}, {"mode", std::string(mode)}},
                       {random_tensor(random, dtype, {2, 3, 6, 4}, Fill::kWide),
                        random_tensor(random, dtype, {2, 3, 2, 4}, Fill::kWide),
                        integers({random.integer(0, is_circular ? 5 : 4), random.integer(0, is_circular ? 5 : 4)})}};
      });
    }
  }
}

}  // namespace backplane::conform
