// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

onnx::Tensor drawn(Random& random, bp_dtype_t dtype, Extents extents, double low, double high) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) x = random.uniform(low, high);
  return to_tensor(array);
}

// Grid positions for nearest sampling that avoid midpoints between elements, where rounding decides. Each is within a
// quarter of an element of the center of one of the 5 elements of an axis, or of one position beyond either end.
onnx::Tensor near_centres(Random& random, bp_dtype_t dtype, Extents extents, bool align) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) {
    const double at = static_cast<double>(random.integer(-1, 5)) + random.uniform(-0.25, 0.25);
    x = align ? at / 4 * 2 - 1 : (at + 0.5) / 5 * 2 - 1;
  }
  return to_tensor(array);
}

void add_grid_samples(OpCases& cases) {
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const bool align : {false, true}) {
      for (const bool nearest : {false, true}) {
        for (const int axes : {2, 3}) {
          // The grid is fp32, because coordinates with fewer bits are too coarse.
          cases.add_to(kExtended, "GridSample", BP_DTYPE_FLOAT,
                       std::string(padding) + (align ? "_corners" : "") + (nearest ? "_nearest" : "") +
                           (axes == 3 ? "_volume" : ""),
                       [=](Random& random) {
                         const Extents x = axes == 2 ? Extents{2, 3, 5, 5} : Extents{1, 2, 5, 5, 5};
                         const Extents grid = axes == 2 ? Extents{2, 4, 6, 2} : Extents{1, 3, 2, 4, 3};
                         onnx::Tensor image = random_tensor(random, BP_DTYPE_FLOAT, x, Fill::kWide);
                         return Problem{"GridSample",
                                        {{"align_corners", int64_t{align}},
                                         {"mode", std::string(nearest ? "nearest" : "linear")},
                                         {"padding_mode", std::string(padding)}},
                                        {std::move(image), nearest ? near_centres(random, BP_DTYPE_FLOAT, grid, align)
                                                                   : drawn(random, BP_DTYPE_FLOAT, grid, -1.4, 1.4)}};
                       });
        }
      }
    }
  }
  for (const bool align : {false, true}) {
    for (const Extents& size : {Extents{2, 3, 5, 6}, Extents{1, 2, 3, 4, 5}}) {
      cases.add_to(kExtended, "AffineGrid", BP_DTYPE_FLOAT,
                   std::string(align ? "corners" : "centres") + std::to_string(size.size()), [=](Random& random) {
                     const auto axes = static_cast<int64_t>(size.size()) - 2;
                     return Problem{
                         "AffineGrid",
                         {{"align_corners", int64_t{align}}},
                         {random_tensor(random, BP_DTYPE_FLOAT, {size[0], axes, axes + 1}, Fill::kAroundZero),
                          constant(integers(size))}};
                   });
    }
  }
}

void add_regions(OpCases& cases) {
  for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
    for (const int64_t ratio : {int64_t{1}, int64_t{2}}) {
      cases.add_to(kExtended, "RoiAlign", BP_DTYPE_FLOAT, std::string(coordinates) + std::to_string(ratio),
                   [=](Random& random) {
                     Array rois(BP_DTYPE_FLOAT, {3, 4}), batches(BP_DTYPE_INT64, {3});
                     for (int64_t r = 0; r < 3; ++r) {
                       for (const int64_t i : {int64_t{0}, int64_t{1}}) {
                         rois.at({r, i}) = random.uniform(0, 8);
                         rois.at({r, i + 2}) = rois.at({r, i}) + random.uniform(2, 8);
                       }
                       batches.at({r}) = static_cast<double>(random.integer(0, 1));
                     }
                     return Problem{"RoiAlign",
                                    {{"coordinate_transformation_mode", std::string(coordinates)},
                                     {"mode", std::string("avg")},
                                     {"output_height", int64_t{3}},
                                     {"output_width", int64_t{2}},
                                     {"sampling_ratio", ratio},
                                     {"spatial_scale", 0.5f}},
                                    {random_tensor(random, BP_DTYPE_FLOAT, {2, 3, 9, 8}, Fill::kWide), to_tensor(rois),
                                     to_tensor(batches)}};
                   });
    }
  }
  cases.add_to(kExtended, "MaxRoiPool", BP_DTYPE_FLOAT, "regions", [](Random& random) {
    Array rois(BP_DTYPE_FLOAT, {3, 5});
    for (int64_t r = 0; r < 3; ++r) {
      rois.at({r, 0}) = static_cast<double>(random.integer(0, 1));
      for (const int64_t i : {int64_t{1}, int64_t{2}}) {
        rois.at({r, i}) = static_cast<double>(random.integer(0, 4));
        rois.at({r, i + 2}) = rois.at({r, i}) + static_cast<double>(random.integer(1, 5));
      }
    }
    return Problem{"MaxRoiPool",
                   {{"pooled_shape", Extents{2, 2}}, {"spatial_scale", 1.0f}},
                   {random_tensor(random, BP_DTYPE_FLOAT, {2, 3, 10, 10}, Fill::kWide), to_tensor(rois)}};
  });
  struct Row {
    const char* variant;
    int64_t batch, classes, boxes, most;
    float iou, least;
    bool centres;
  };
  const Row rows[] = {{"plain", 1, 1, 12, 5, 0.5f, 0, false},
                      {"classes", 2, 3, 9, 4, 0.3f, 0.2f, false},
                      {"centres", 1, 2, 10, 20, 0.4f, 0.1f, true},
                      {"one", 1, 1, 6, 1, 0.5f, 0, false}};
  for (const Row& row : rows) {
    cases.add_to(kExtended, "NonMaxSuppression", BP_DTYPE_FLOAT, row.variant, [=](Random& random) {
      Array boxes(BP_DTYPE_FLOAT, {row.batch, row.boxes, 4}),
          scores(BP_DTYPE_FLOAT, {row.batch, row.classes, row.boxes});
      for (int64_t i = 0; i < row.batch * row.boxes; ++i) {
        // Multiples of 1/8, so that overlaps are computed almost without rounding.
        const double y = static_cast<double>(random.integer(0, 16)) / 8,
                     x = static_cast<double>(random.integer(0, 16)) / 8,
                     height = static_cast<double>(random.integer(4, 12)) / 8,
                     width = static_cast<double>(random.integer(4, 12)) / 8;
        const double box[] = {y, x, row.centres ? height : y + height, row.centres ? width : x + width};
        std::copy(box, box + 4, boxes.values.begin() + i * 4);
      }
      // Distinct scores, because ONNX does not say which of two boxes with equal scores comes first.
      for (int64_t i = 0; i < scores.count(); ++i)
        scores.values[static_cast<size_t>(i)] =
            static_cast<double>(random.integer(0, (1 << 16) - 1) * 64 + i) / (1 << 22);
      return Problem{"NonMaxSuppression",
                     {{"center_point_box", int64_t{row.centres}}},
                     {to_tensor(boxes), to_tensor(scores), constant(integers({row.most})),
                      constant(floats({1}, {row.iou + 0.003f})), constant(floats({1}, {row.least}))}};
    });
  }
}

void add_deformed(OpCases& cases) {
  struct Row {
    const char* variant;
    int64_t channels, group, offsets, stride, dilation;
    bool bias, mask;
  };
  const Row rows[] = {{"plain", 3, 1, 1, 1, 1, false, false},  {"bias", 3, 1, 1, 1, 1, true, false},
                      {"mask", 4, 1, 2, 1, 1, true, true},     {"groups", 4, 2, 1, 1, 1, true, true},
                      {"strides", 2, 1, 1, 2, 1, false, true}, {"dilations", 2, 1, 1, 1, 2, false, false}};
  for (const Row& row : rows) {
    cases.add_to(kExtended, "DeformConv", BP_DTYPE_FLOAT, row.variant, [=](Random& random) {
      const int64_t out = (7 + 2 - row.dilation * 2 - 1) / row.stride + 1;
      const auto tensor = [&](const Extents& extents) {
        return random_tensor(random, BP_DTYPE_FLOAT, extents, Fill::kAroundZero);
      };
      Problem problem{"DeformConv",
                      {{"dilations", Extents{row.dilation, row.dilation}},
                       {"group", row.group},
                       {"kernel_shape", Extents{3, 3}},
                       {"offset_group", row.offsets},
                       {"pads", Extents{1, 1, 1, 1}},
                       {"strides", Extents{row.stride, row.stride}}},
                      {}};
      problem.arguments.emplace_back(tensor({1, row.channels, 7, 7}));
      problem.arguments.push_back(constant(tensor({4, row.channels / row.group, 3, 3})));
      problem.arguments.emplace_back(tensor({1, row.offsets * 18, out, out}));
      if (row.bias || row.mask) problem.arguments.push_back(row.bias ? constant(tensor({4})) : Argument());
      if (row.mask) problem.arguments.emplace_back(drawn(random, BP_DTYPE_FLOAT, {1, row.offsets * 9, out, out}, 0, 1));
      return problem;
    });
  }
}

}  // namespace

void add_image_cases(OpCases& cases) {
  add_grid_samples(cases);
  add_regions(cases);
  add_deformed(cases);
  struct Row {
    const char* variant;
    Extents image, block, pads, strides, dilations;
    int64_t blocks;
  };
  const Row rows[] = {{"apart", {6, 4}, {2, 2}, {0, 0, 0, 0}, {2, 2}, {1, 1}, 6},
                      {"overlapping", {5, 5}, {3, 3}, {0, 0, 0, 0}, {1, 1}, {1, 1}, 9},
                      {"pads", {5, 5}, {3, 2}, {1, 0, 1, 1}, {2, 1}, {1, 1}, 15},
                      {"dilations", {6, 6}, {2, 2}, {0, 0, 0, 0}, {1, 2}, {2, 3}, 8}};
  for (const Row& row : rows) {
    cases.add_to(kExtended, "Col2Im", BP_DTYPE_FLOAT, row.variant, [=](Random& random) {
      return Problem{
          "Col2Im",
          {{"dilations", row.dilations}, {"pads", row.pads}, {"strides", row.strides}},
          {random_tensor(random, BP_DTYPE_FLOAT, {2, 3 * count_of(row.block), row.blocks}, Fill::kAroundZero),
           constant(integers(row.image)), constant(integers(row.block))}};
    });
  }
  for (const bool given : {false, true}) {
    cases.add_to(kExtended, "MaxUnpool", BP_DTYPE_FLOAT, given ? "extents" : "plain", [=](Random& random) {
      const Extents shape = {1, 2, given ? 5 : 4, given ? 7 : 6};
      Array indices(BP_DTYPE_INT64, {1, 2, 2, 3});
      for_each_index(indices.extents, [&](const Index& at) {  // the position of one of the four elements of each window
        const int64_t row = 2 * at[2] + random.integer(0, 1), column = 2 * at[3] + random.integer(0, 1);
        indices.at(at) = static_cast<double>((at[1] * 4 + row) * 6 + column);
      });
      Problem problem{"MaxUnpool",
                      {{"kernel_shape", Extents{2, 2}}, {"pads", Extents{0, 0, 0, 0}}, {"strides", Extents{2, 2}}},
                      {random_tensor(random, BP_DTYPE_FLOAT, {1, 2, 2, 3}, Fill::kWide), to_tensor(indices)}};
      if (given) problem.arguments.push_back(constant(integers(shape)));
      return problem;
    });
  }
}

}  // namespace backplane::conform
