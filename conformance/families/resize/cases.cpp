// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {

void add_resize_cases(OpCases& cases) {
  struct Row {
    const char* variant;
    const char* mode;
    const char* coordinates;
    const char* nearest;
    std::vector<float> scales;  // empty if `sizes` is used
    Extents sizes;
  };
  // In mode nearest, scales are powers of two. Coordinates are then exact in any precision, and all devices round ties
  // the same way.
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

  struct Mode {
    const char* variant;
    const char* mode;
    const char* coordinates;
    std::vector<float> scales;  // empty if `sizes` is used
    Extents sizes;
    int64_t antialias = 0, exclude_outside = 0;
    const char* policy = "stretch";
    float a = -0.75f;
    std::vector<float> region = {};
  };
  const Mode modes[] = {
      {"cubic_up", "cubic", "half_pixel", {1, 1, 2, 2}, {}},
      {"cubic_down", "cubic", "half_pixel", {1, 1, 0.5f, 0.5f}, {}},
      {"cubic_a", "cubic", "asymmetric", {1, 1, 2, 4}, {}, 0, 0, "stretch", -0.5f},
      {"cubic_corners", "cubic", "align_corners", {}, {1, 2, 7, 11}},
      {"cubic_exclude_outside", "cubic", "half_pixel", {1, 1, 2, 2}, {}, 0, 1},
      {"linear_antialias", "linear", "half_pixel", {1, 1, 0.5f, 0.25f}, {}, 1},
      {"cubic_antialias", "cubic", "half_pixel", {1, 1, 0.5f, 0.5f}, {}, 1},
      {"linear_symmetric", "linear", "half_pixel_symmetric", {1, 1, 0.625f, 1.5f}, {}},
      {"linear_not_larger", "linear", "half_pixel", {}, {1, 2, 8, 9}, 0, 0, "not_larger"},
      {"linear_not_smaller", "linear", "half_pixel", {}, {1, 2, 6, 12}, 0, 0, "not_smaller"},
      {"linear_region",
       "linear",
       "tf_crop_and_resize",
       {},
       {1, 2, 3, 5},
       0,
       0,
       "stretch",
       -0.75f,
       {0, 0, 0.25f, 0.125f, 1, 1, 0.75f, 1.25f}},
  };
  for (const Mode& row : modes) {
    for (const bp_dtype_t dtype : real_types()) {
      cases.add_to(kExtended, "Resize", dtype, row.variant, [=](Random& random) {
        // A policy applies one scale to all resized axes, so they must not include batch and channels.
        const bool keeps = std::string_view(row.policy) != "stretch";
        Problem problem{"Resize",
                        {{"antialias", row.antialias},
                         {"coordinate_transformation_mode", std::string(row.coordinates)},
                         {"cubic_coeff_a", row.a},
                         {"exclude_outside", row.exclude_outside},
                         {"extrapolation_value", 1.5f},
                         {"keep_aspect_ratio_policy", std::string(row.policy)},
                         {"mode", std::string(row.mode)},
                         {"nearest_mode", std::string("round_prefer_floor")}},
                        {random_tensor(random, dtype, {1, 2, 4, 6}, Fill::kWide)}};
        if (keeps) problem.attributes.push_back({"axes", Extents{2, 3}});
        const auto count = static_cast<int64_t>(row.region.size());
        problem.arguments.push_back(
            row.region.empty() ? Argument() : constant(reals(dtype, {count}, {row.region.begin(), row.region.end()})));
        if (row.sizes.empty()) {
          problem.arguments.push_back(constant(floats({4}, row.scales)));
        } else {
          problem.arguments.emplace_back();
          problem.arguments.push_back(constant(integers(keeps ? Extents{row.sizes[2], row.sizes[3]} : row.sizes)));
        }
        return problem;
      });
    }
  }
}

}  // namespace backplane::conform
