// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {

void add_resize_cases(OpCases& cases) {
  struct Row {
    const char* variant;
    const char* mode;
    const char* coordinates;
    const char* nearest;
    std::vector<float> scales;  // or sizes
    Extents sizes;
  };
  // Scales are powers of two: every coordinate is exact in any precision, so that ties fall the same way everywhere.
  const Row rows[] = {
      {"nearest_up", "nearest", "asymmetric", "floor", {1, 1, 2, 2}, {}},
      {"nearest_half_pixel", "nearest", "half_pixel", "round_prefer_floor", {1, 1, 2, 4}, {}},
      {"nearest_down", "nearest", "half_pixel", "round_prefer_ceil", {1, 1, 0.5f, 0.5f}, {}},
      {"nearest_ceil", "nearest", "asymmetric", "ceil", {1, 1, 4, 0.5f}, {}},
      {"nearest_sizes", "nearest", "asymmetric", "floor", {}, {1, 2, 8, 12}},
      {"linear_up", "linear", "half_pixel", "round_prefer_floor", {1, 1, 2, 2}, {}},
      {"linear_down", "linear", "half_pixel", "round_prefer_floor", {1, 1, 0.5f, 0.5f}, {}},
      {"linear_corners", "linear", "align_corners", "round_prefer_floor", {}, {1, 2, 7, 11}},
      {"linear_pytorch", "linear", "pytorch_half_pixel", "round_prefer_floor", {}, {1, 2, 8, 1}},
      {"linear_asymmetric", "linear", "asymmetric", "floor", {1, 1, 2, 4}, {}},
  };
  for (const Row& row : rows) {
    cases.add_real("Resize", row.variant, [=](Random& random, bp_dtype_t dtype) {
      Problem problem{"Resize",
                      {{"antialias", int64_t{0}},
                       {"coordinate_transformation_mode", std::string(row.coordinates)},
                       {"cubic_coeff_a", -0.75f},
                       {"exclude_outside", int64_t{0}},
                       {"extrapolation_value", 0.0f},
                       {"keep_aspect_ratio_policy", std::string("stretch")},
                       {"mode", std::string(row.mode)},
                       {"nearest_mode", std::string(row.nearest)}},
                      {random_tensor(random, dtype, {1, 2, 4, 6}, Fill::kWide), {}}};
      if (row.sizes.empty()) {
        problem.arguments.push_back(constant(floats({4}, row.scales)));
      } else {
        problem.arguments.emplace_back();
        problem.arguments.push_back(constant(integers(row.sizes)));
      }
      return problem;
    });
  }
}

}  // namespace backplane::conform
