// SPDX-License-Identifier: Apache-2.0
// Operators on images and boxes.
#include <cmath>

#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

// Returns floor(extent * scale). A symbolic extent stays symbolic if the scale or its inverse is a whole number.
Scalar scaled(Expressions& m, const Scalar& extent, const Scalar& scale) {
  if (scale.kind != Scalar::kReal || !(scale.real_value > 0) || scale.real_value > 1e9) return {};
  float factor = static_cast<float>(scale.real_value);
  if (extent.is_number()) {
    double size = std::floor(static_cast<double>(static_cast<float>(extent.value) * factor));
    return size < 1e15 ? Scalar(static_cast<int64_t>(size)) : Scalar();
  }
  if (factor >= 1 && factor == std::floor(factor)) return m.multiply(extent, static_cast<int64_t>(factor));
  double inverse = 1.0 / factor;  // a whole number for 0.5 or 0.25
  return inverse == std::floor(inverse) && inverse < 1e9 ? m.floor_divide(extent, static_cast<int64_t>(inverse))
                                                         : Scalar();
}

Status resize(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  std::vector<int64_t> axes;
  if (c.has_attribute("axes")) {
    BP_TRY(c.axes(c.integers("axes"), c.rank(0), axes));
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  auto scale_count = c.length(2);
  bool by_size = c.has(3), by_scale = !by_size && c.has(2) && scale_count != std::optional<int64_t>(0);
  if (!by_size && !by_scale) return c.fail("has neither scales nor sizes: one of them must be given");
  size_t slot = by_size ? 3 : 2;
  if (auto count = c.length(slot); count && *count != static_cast<int64_t>(axes.size())) {
    return c.fail((by_size ? "sizes has " : "scales has ") + counted(*count, "entry", "entries") + " for " +
                  counted(axes.size(), "axis", "axes"));
  }
  const KnownData* values = c.known_data(slot);
  if (values && values->size() != axes.size()) values = nullptr;
  std::string_view policy = c.text("keep_aspect_ratio_policy");
  if (by_size && policy != "stretch" && !policy.empty()) {
    // The policy scales all axes by the same factor: the smallest (not_larger) or the largest (not_smaller) of the
    // ratios of requested to input extents.
    bool not_larger = policy == "not_larger";
    double factor = not_larger ? INFINITY : 0;
    bool known = values != nullptr;
    for (size_t i = 0; known && i < axes.size(); ++i) {
      const Scalar& extent = shape[axes[i]];
      known = extent.is_number() && extent.value > 0 && (*values)[i].is_number();
      if (!known) break;
      double one = static_cast<double>((*values)[i].value) / static_cast<double>(extent.value);
      factor = not_larger ? std::min(factor, one) : std::max(factor, one);
    }
    for (int64_t axis : axes) {
      double size = known ? std::floor(factor * static_cast<double>(shape[axis].value) + 0.5) : 0;
      shape[axis] = known && size < 1e15 ? Scalar(static_cast<int64_t>(size)) : Scalar();
    }
    return c.set_shape(0, shape);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Scalar& extent = shape[axes[i]];
    extent = !values ? Scalar() : by_size ? (*values)[i] : scaled(c.math(), extent, (*values)[i]);
  }
  return c.set_shape(0, shape);
}

// X [N, C, D...] and grid [N, D_out..., r] yield [N, C, D_out...].
Status grid_sample(Context& c) {
  BP_TRY(c.expect_rank(0, 3, BP_MAX_RANK));
  BP_TRY(c.expect_rank(1, 3, BP_MAX_RANK));
  if (!c.ranked(0) || !c.ranked(1)) return {};
  BP_TRY(c.expect_rank(1, c.rank(0), c.rank(0)));
  Shape shape = c.shape(1);
  shape.pop_back();
  shape.insert(shape.begin() + 1, c.dim(0, 1));
  BP_TRY(c.merge(shape[0], c.dim(0, 0), shape[0], "the batches of X and grid"));
  return c.set_shape(0, shape);
}

// With size [N, C, H, W], theta [N, 2, 3] yields [N, H, W, 2]. With size [N, C, D, H, W], theta [N, 3, 4] yields [N, D,
// H, W, 3].
Status affine_grid(Context& c) {
  BP_TRY(c.expect_rank(0, 3, 3));
  const KnownData* size = c.known_data(1);
  const auto rank = size ? std::optional(std::ssize(*size)) : c.length(1);
  if (!rank) return {};
  if (*rank != 4 && *rank != 5) {
    return c.fail("size has " + std::to_string(*rank) + " entries, but it must have 4 or 5");
  }
  const Shape wanted = size ? Shape(*size) : Shape(static_cast<size_t>(*rank));
  Shape shape(wanted.begin() + 2, wanted.end());
  shape.insert(shape.begin(), size ? wanted.front() : c.dim(0, 0));
  shape.push_back(*rank - 2);
  return c.set_shape(0, shape);
}

Status roi_align(Context& c) {
  BP_TRY(c.expect_rank(0, 4, 4));
  BP_TRY(c.expect_rank(1, 2, 2));
  BP_TRY(c.expect_rank(2, 1, 1));
  Scalar boxes;
  BP_TRY(c.merge(c.dim(1, 0), c.dim(2, 0), boxes, "the counts of rois and batch_indices"));
  return c.set_shape(0, {boxes, c.dim(0, 1), c.integer("output_height"), c.integer("output_width")});
}

Status max_roi_pool(Context& c) {
  BP_TRY(c.expect_rank(0, 4, 4));
  BP_TRY(c.expect_rank(1, 2, 2));
  const auto& pooled = c.integers("pooled_shape");
  if (pooled.size() != 2)
    return c.fail("pooled_shape has " + std::to_string(pooled.size()) + " entries, but it must have 2");
  return c.set_shape(0, {c.dim(1, 0), c.dim(0, 1), pooled[0], pooled[1]});
}

Status non_max_suppression(Context& c) {
  BP_TRY(c.expect_rank(0, 3, 3));
  BP_TRY(c.expect_rank(1, 3, 3));
  return c.set_shape(0, {Scalar(), 3});
}

Status image_decoder(Context& c) {
  BP_TRY(c.expect_rank(0, 1, 1));
  return c.set_shape(0, {Scalar(), Scalar(), c.text("pixel_format") == "Grayscale" ? 1 : 3});
}

}  // namespace

std::span<const RuleRow> vision_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "AffineGrid", affine_grid},
      {"", "GridSample", grid_sample},
      {"", "ImageDecoder", image_decoder},
      {"", "MaxRoiPool", max_roi_pool},
      {"", "NonMaxSuppression", non_max_suppression},
      {"", "Resize", resize},
      {"", "RoiAlign", roi_align},
  };
  return kRows;
}

}  // namespace backplane::ops
