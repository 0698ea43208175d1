// SPDX-License-Identifier: Apache-2.0
// Oracles that sample images and regions at positions given by other inputs.
#include <algorithm>

#include "judge/tracked.h"
#include "judge/window.h"

namespace backplane::conform {
namespace {

// A position: one coordinate for each axis, with its error.
using Coordinates = std::vector<Tracked>;

// Returns the element of x at [batch, channel, position…]. Outside the image, it is 0, the nearest edge element or a
// reflection, depending on `padding`.
double element(const Array& x, const Index& head, std::vector<int64_t> at, std::string_view padding, bool align) {
  Index index = head;
  for (size_t i = 0; i < at.size(); ++i) {
    const int64_t n = x.extents[i + 2];
    if (padding == "zeros" && (at[i] < 0 || at[i] >= n)) return 0;
    if (padding == "border") at[i] = std::clamp<int64_t>(at[i], 0, n - 1);
    if (padding == "reflection") {
      // Reflects at the centers of the first and last element with `align`, else half an element outside them.
      const int64_t period = align ? std::max<int64_t>(1, 2 * (n - 1)) : 2 * n;
      int64_t m = (at[i] % period + period) % period;
      if (m >= n) m = (align ? period : period - 1) - m;
      at[i] = n == 1 ? 0 : m;
    }
    index.push_back(at[i]);
  }
  return x.at(index);
}

// Linear interpolation between the corners around the position. `at(corner)` returns an element. Each weight is a
// product of differences. An error of the position changes the result by at most that error times the difference of the
// largest and smallest corner.
template <class F>
Tracked interpolate(const Coordinates& coordinates, bp_dtype_t dtype, F at) {
  const size_t axes = coordinates.size();
  std::vector<int64_t> floor(axes);
  for (size_t i = 0; i < axes; ++i) floor[i] = whole(std::floor(coordinates[i].value));
  TrackedSum sum(dtype);
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (size_t corner = 0; corner < size_t{1} << axes; ++corner) {
    Tracked weight(1.0);
    std::vector<int64_t> index = floor;
    for (size_t i = 0; i < axes; ++i) {
      const bool is_upper = (corner >> i & 1) != 0;
      const double part = coordinates[i].value - static_cast<double>(floor[i]);
      index[i] += is_upper;
      // The error of 1 is the rounding of the difference. The error of the position is added below.
      weight = weight * Tracked(is_upper ? part : 1 - part, 1);
    }
    const double value = at(index);
    low = std::min(low, value);
    high = std::max(high, value);
    sum.add(value, weight);
  }
  Tracked result = sum.result();
  for (size_t i = 0; i < axes; ++i) result.error += (high - low) * coordinates[i].error;
  return result;
}

// Grid positions are in [-1, 1] inside the image, and begin with the coordinate along the image's last axis.
References grid_sample(const Call& call) {
  const Array &x = call.in(0, 3), &grid = call.in(1, 3);
  require(is_float(x.dtype) && grid.dtype == x.dtype, "image and grid are not of the same floating-point type");
  const int64_t axes = x.rank() - 2;
  require(grid.rank() == x.rank() && grid.extents.back() == axes && grid.extents[0] == x.extents[0],
          "the grid does not fit the image");
  const std::string_view mode = call.text("mode"), given = call.text("padding_mode"),
                         padding = given.empty() ? "zeros" : given;
  require_known(mode == "linear" || mode == "nearest" || mode.empty(),
                "the oracle supports linear and nearest sampling");
  require(padding == "zeros" || padding == "border" || padding == "reflection", "the padding is not known");
  const bool align = call.integer("align_corners") != 0;
  for (int64_t i = 0; i < axes; ++i) require(x.extents[static_cast<size_t>(i + 2)] > 0, "the image is empty");
  Extents shape = {x.extents[0], x.extents[1]};
  shape.insert(shape.end(), grid.extents.begin() + 1, grid.extents.end() - 1);
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    Index from = {index[0]};
    from.insert(from.end(), index.begin() + 2, index.end());
    from.push_back(0);
    Coordinates coordinates;
    for (int64_t i = 0; i < axes; ++i) {
      from.back() = axes - 1 - i;
      const Tracked extent(static_cast<double>(x.extents[static_cast<size_t>(i + 2)])), at(grid.at(from));
      require(std::fabs(at.value) < 1e6, "a position is far outside, or NaN");
      coordinates.push_back(align ? (at + Tracked(1.0)) / Tracked(2.0) * (extent - Tracked(1.0))
                                  : ((at + Tracked(1.0)) * extent - Tracked(1.0)) / Tracked(2.0));
    }
    const Index head = {index[0], index[1]};
    if (mode == "nearest") {
      std::vector<int64_t> at;
      for (const Tracked& one : coordinates) at.push_back(whole(std::nearbyint(one.value)));
      elements.emplace_back(element(x, head, at, padding, align));
      return;
    }
    elements.push_back(interpolate(
        coordinates, x.dtype, [&](const std::vector<int64_t>& at) { return element(x, head, at, padding, align); }));
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

// The positions of an output image of `size`, transformed by one matrix per batch. They are in [-1, 1], with the
// coordinate along the last axis first.
References affine_grid(const Call& call) {
  const Array& theta = call.in(0, 3);
  const Extents size = call.integers(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  require(is_float(theta.dtype) && (axes == 2 || axes == 3) && theta.extents == Extents{size[0], axes, axes + 1},
          "theta must be floating-point, of shape [N, 2, 3] for a size of 4 extents or [N, 3, 4] for one of 5");
  const bool align = call.integer("align_corners") != 0;
  Extents shape = {size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(axes);
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    TrackedSum sum(theta.dtype);
    for (int64_t i = 0; i < axes; ++i) {
      const auto n = static_cast<double>(size[static_cast<size_t>(axes + 1 - i)]);
      const auto at = static_cast<double>(index[static_cast<size_t>(axes - i)]);
      const double centre = align ? (n > 1 ? 2 * at / (n - 1) - 1 : 0) : (2 * at + 1) / n - 1;
      // A device may start at -1 and add steps, or compute a linear ramp: a few roundings of numbers up to 1.
      sum.add(Tracked(centre, 8), theta.at({index[0], index.back(), i}));
    }
    sum.add(theta.at({index[0], index.back(), axes}));
    elements.push_back(sum.result());
  });
  return {tracked_reference(theta.dtype, shape, elements)};
}

// The mean of the samples inside each bin of a region.
References roi_align(const Call& call) {
  const Array &x = call.in(0, 4), &rois = call.in(1, 2), &batches = call.in(2, 1);
  require(is_float(x.dtype) && x.rank() == 4, "the image is not floating-point, or not of rank 4");
  require(rois.extents.size() == 2 && rois.extents[1] == 4 && batches.extents == Extents{rois.extents[0]},
          "the regions and their batch indices must have the shapes [n, 4] and [n]");
  const std::string_view coordinates = call.text("coordinate_transformation_mode"), mode = call.text("mode");
  require_known(mode.empty() || mode == "avg", "the oracle supports only the mean");
  require(coordinates.empty() || coordinates == "half_pixel" || coordinates == "output_half_pixel",
          "the coordinates are not known");
  const double shift = coordinates == "output_half_pixel" ? 0 : 0.5, spatial = call.real("spatial_scale", 1);
  const int64_t height = call.integer("output_height", 1), width = call.integer("output_width", 1),
                ratio = call.integer("sampling_ratio");
  require_known(height > 0 && width > 0 && height < 4096 && width < 4096 && ratio > 0 && ratio < 256,
                "the oracle supports only a sampling ratio from 1 to 255 and an output from 1 by 1 to 4095 by 4095");
  const Extents shape = {rois.extents[0], x.extents[1], height, width};
  const std::vector<double> n = {static_cast<double>(x.extents[2]), static_cast<double>(x.extents[3])};
  require(n[0] > 0 && n[1] > 0, "the image is empty");
  require_steps(static_cast<double>(count_of(shape)) * static_cast<double>(ratio * ratio));
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    const int64_t r = index[0], batch = whole(batches.values[static_cast<size_t>(r)]);
    require(batch >= 0 && batch < x.extents[0], "a batch index is out of range");
    const auto corner = [&](int64_t i) { return Tracked(rois.at({r, i})) * Tracked(spatial) - Tracked(shift); };
    const Tracked begin[] = {corner(1), corner(0)};
    Tracked size[] = {corner(3) - begin[0], corner(2) - begin[1]};
    if (shift == 0) {
      for (Tracked& one : size) one = max(one, Tracked(1.0));
    }
    const double bins[] = {static_cast<double>(height), static_cast<double>(width)};
    TrackedSum sum(x.dtype);
    for (int64_t sample = 0; sample < ratio * ratio; ++sample) {
      const int64_t inner[] = {sample / ratio, sample % ratio};
      Coordinates position;
      bool is_outside = false;
      for (size_t i = 0; i < 2; ++i) {
        const double part =
            static_cast<double>(index[i + 2]) + (static_cast<double>(inner[i]) + 0.5) / static_cast<double>(ratio);
        Tracked at = begin[i] + size[i] * Tracked(part, 2 * part) / Tracked(bins[i]);
        is_outside = is_outside || at.value < -1 || at.value > n[i];
        at.value = std::clamp(at.value, 0.0, n[i] - 1);
        position.push_back(at);
      }
      if (is_outside) continue;
      sum.add(interpolate(position, x.dtype, [&](const std::vector<int64_t>& at) {
        return x.at({batch, index[1], std::min(at[0], x.extents[2] - 1), std::min(at[1], x.extents[3] - 1)});
      }));
    }
    elements.push_back(sum.result() / Tracked(static_cast<double>(ratio * ratio)));
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

// The largest element in each bin of a region [batch, x1, y1, x2, y2]. The region's corners are rounded and inclusive.
References max_roi_pool(const Call& call) {
  const Array &x = call.in(0, 4), &rois = call.in(1, 2);
  const Extents pooled = call.ints("pooled_shape");
  require(
      x.rank() == 4 && rois.rank() == 2 && rois.extents[1] == 5 && pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0,
      "the image must be of rank 4, the regions of shape [n, 5], and pooled_shape two positive numbers");
  const double spatial = call.real("spatial_scale", 1);
  Reference result(Array(x.dtype, {rois.extents[0], x.extents[1], pooled[0], pooled[1]}), Rule::exact());
  for_each_index(result.value.extents, [&](const Index& index) {
    const auto corner = [&](int64_t i) { return std::round(rois.at({index[0], i}) * spatial); };
    const double begin[] = {corner(2), corner(1)}, end[] = {corner(4), corner(3)};
    int64_t first[2], last[2];
    for (size_t i = 0; i < 2; ++i) {
      const double bin = std::fmax(end[i] - begin[i] + 1, 1) / static_cast<double>(pooled[i]);
      const auto number = static_cast<double>(index[i + 2]);
      const auto extent = static_cast<double>(x.extents[i + 2]);
      first[i] = whole(std::clamp(std::floor(number * bin) + begin[i], 0.0, extent));
      last[i] = whole(std::clamp(std::ceil((number + 1) * bin) + begin[i], 0.0, extent));
    }
    double most = first[0] < last[0] && first[1] < last[1] ? -HUGE_VAL : 0;
    for (int64_t i = first[0]; i < last[0]; ++i) {
      for (int64_t j = first[1]; j < last[1]; ++j)
        most = std::fmax(most, x.at({whole(rois.at({index[0], 0})), index[1], i, j}));
    }
    result.value.at(index) = most;
  });
  return {Reference(std::move(result))};
}

// A convolution in which each kernel element (tap) has its own offset and an optional mask factor.
References deform_conv(const Call& call) {
  const Array &x = call.in(0, 4), &w = call.in(1, 4), &offset = call.in(2, 4);
  require(is_float(x.dtype) && x.rank() == 4 && w.rank() == 4 && w.dtype == x.dtype && offset.dtype == x.dtype,
          "the inputs have wrong types or ranks");
  const Window window(call, x.extents, {w.extents[2], w.extents[3]});
  const int64_t group = call.integer("group", 1), offsets = call.integer("offset_group", 1),
                taps = w.extents[2] * w.extents[3];
  require(group > 0 && offsets > 0 && x.extents[1] == group * w.extents[1] && w.extents[0] % group == 0 &&
              x.extents[1] % offsets == 0,
          "group and offset_group must be positive and fit the channels of X and the weights");
  const Extents shape = {x.extents[0], w.extents[0], window.out[0], window.out[1]};
  require(offset.extents == Extents{shape[0], offsets * taps * 2, shape[2], shape[3]}, "the offsets do not fit");
  if (call.has(4))
    require(call.in(4).extents == Extents{shape[0], offsets * taps, shape[2], shape[3]}, "the mask does not fit");
  require_steps(4 * static_cast<double>(count_of(shape)) * static_cast<double>(taps * w.extents[1]));
  std::vector<Tracked> elements;
  for_each_index(shape, [&](const Index& index) {
    TrackedSum sum(x.dtype);
    for (int64_t c = 0; c < w.extents[1]; ++c) {
      const int64_t channel = index[1] / (w.extents[0] / group) * w.extents[1] + c;
      const int64_t set = channel / (x.extents[1] / offsets);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t at[] = {tap / w.extents[3], tap % w.extents[3]};
        Coordinates coordinates;
        bool is_outside = false;
        for (size_t i = 0; i < 2; ++i) {
          const auto base =
              static_cast<double>(index[i + 2] * window.strides[i] - window.begin[i] + at[i] * window.dilations[i]);
          coordinates.push_back(
              Tracked(base) +
              Tracked(offset.at({index[0], (set * taps + tap) * 2 + static_cast<int64_t>(i), index[2], index[3]})));
          is_outside =
              is_outside || coordinates[i].value <= -1 || coordinates[i].value >= static_cast<double>(x.extents[i + 2]);
        }
        Tracked value(0.0);
        if (!is_outside)
          value = interpolate(coordinates, x.dtype, [&](const std::vector<int64_t>& near) {
            return element(x, {index[0], channel}, near, "zeros", false);
          });
        if (call.has(4)) value = value * Tracked(call.in(4).at({index[0], set * taps + tap, index[2], index[3]}));
        sum.add(value, w.at({index[1], c, at[0], at[1]}));
      }
    }
    if (call.has(3)) sum.add(call.vector(3, w.extents[0])[static_cast<size_t>(index[1])]);
    elements.push_back(sum.result());
  });
  return {tracked_reference(x.dtype, shape, elements)};
}

struct Box {
  double low[2], high[2];
};
double area(const Box& box) {
  return std::fmax(0, box.high[0] - box.low[0]) * std::fmax(0, box.high[1] - box.low[1]);
}
double overlap(const Box& a, const Box& b) {
  Box both;
  for (size_t i = 0; i < 2; ++i) {
    both.low[i] = std::fmax(a.low[i], b.low[i]);
    both.high[i] = std::fmin(a.high[i], b.high[i]);
  }
  const double shared = area(both), all = area(a) + area(b) - shared;
  return all > 0 ? shared / all : 0;
}

// For each batch and class, repeatedly selects the best remaining box whose overlap with every selected box is small
// enough.
References non_max_suppression(const Call& call) {
  const Array &boxes = call.in(0, 3), &scores = call.in(1, 3);
  require(boxes.rank() == 3 && scores.rank() == 3 && boxes.extents[2] == 4 && boxes.extents[0] == scores.extents[0] &&
              boxes.extents[1] == scores.extents[2],
          "boxes and scores must have the shapes [batches, boxes, 4] and [batches, classes, boxes]");
  require(boxes.extents[1] <= 4096, "there are more boxes than the oracle supports");
  const int64_t most = call.has(2) ? whole(call.single(2)) : 0;
  const double iou = call.has(3) ? call.single(3) : 0, least = call.has(4) ? call.single(4) : -HUGE_VAL;
  const bool centres = call.integer("center_point_box") != 0;
  std::vector<double> selected;
  for (int64_t b = 0; b < scores.extents[0]; ++b) {
    const auto box = [&](int64_t i) {
      Box result;
      for (int64_t axis = 0; axis < 2; ++axis) {
        const double first = boxes.at({b, i, axis}), second = boxes.at({b, i, axis + 2});
        result.low[axis] = centres ? first - second / 2 : std::fmin(first, second);
        result.high[axis] = centres ? first + second / 2 : std::fmax(first, second);
      }
      return result;
    };
    for (int64_t c = 0; c < scores.extents[1]; ++c) {
      std::vector<int64_t> order, chosen;
      for (int64_t i = 0; i < boxes.extents[1]; ++i) {
        if (scores.at({b, c, i}) > least) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return scores.at({b, c, i}) > scores.at({b, c, j});
      });
      for (const int64_t i : order) {
        if (static_cast<int64_t>(chosen.size()) >= most) break;
        if (std::any_of(chosen.begin(), chosen.end(), [&](int64_t j) { return overlap(box(i), box(j)) > iou; }))
          continue;
        chosen.push_back(i);
        for (const int64_t part : {b, c, i}) selected.push_back(static_cast<double>(part));
      }
    }
  }
  Array result(BP_DTYPE_INT64, {static_cast<int64_t>(selected.size()) / 3, 3});
  result.values = std::move(selected);
  return {Reference(std::move(result), Rule::exact())};
}

// Sums overlapping blocks of an image. The input has the shape [batch, channels·kernel, blocks].
References col2im(const Call& call) {
  const Array& x = call.in(0, 3);
  const Extents image = call.integers(1), block = call.integers(2);
  const size_t axes = image.size();
  require(block.size() == axes && axes > 0 && x.rank() == 3,
          "image and block must have one number of axes, at least 1, and the input must be of rank 3");
  const Extents ones(axes, 1), pads = call.ints("pads", Extents(2 * axes, 0)), strides = call.ints("strides", ones),
                               dilations = call.ints("dilations", ones);
  require(pads.size() == 2 * axes && strides.size() == axes && dilations.size() == axes,
          "strides and dilations must have one number for each axis, and pads two");
  Extents counts;
  for (size_t i = 0; i < axes; ++i) {
    require(block[i] > 0 && strides[i] > 0 && dilations[i] > 0 && block[i] < 4096 && dilations[i] < 4096 &&
                image[i] < 1 << 20 && pads[i] >= 0 && pads[i + axes] >= 0 && pads[i] < 1 << 20 &&
                pads[i + axes] < 1 << 20,
            "an extent, stride, dilation or pad is out of range");
    const int64_t room = image[i] + pads[i] + pads[i + axes] - dilations[i] * (block[i] - 1) - 1;
    require(room >= 0, "the block is larger than the padded image");
    counts.push_back(room / strides[i] + 1);
  }
  const int64_t taps = count_of(block), blocks = count_of(counts);
  require(x.extents[1] % taps == 0 && x.extents[2] == blocks,
          "the last two extents of the input do not fit the block and the image");
  Extents shape = {x.extents[0], x.extents[1] / taps};
  shape.insert(shape.end(), image.begin(), image.end());
  Reference result(Array(x.dtype, shape),
                   is_float(x.dtype) ? Rule::of(Rule::kDot, static_cast<double>(taps)) : Rule::exact());
  Array scale(BP_DTYPE_DOUBLE, shape);
  for (int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    int64_t tap = 0;
    for_each_index(block, [&](const Index& inner) {
      int64_t number = 0;
      for_each_index(counts, [&](const Index& at) {
        Index to = {head / shape[1], head % shape[1]};
        bool is_inside = true;
        for (size_t i = 0; i < axes; ++i) {
          to.push_back(at[i] * strides[i] - pads[i] + inner[i] * dilations[i]);
          is_inside = is_inside && to.back() >= 0 && to.back() < image[i];
        }
        const double value = x.at({to[0], to[1] * taps + tap, number++});
        if (!is_inside) return;
        result.value.at(to) += value;
        scale.at(to) += std::fabs(value);
      });
      ++tap;
    });
  }
  result.scale = std::move(scale.values);
  return {Reference(std::move(result))};
}

// Writes each element to its position in the original image; all other elements are 0. If the output's extents are an
// input, the image occupies their first rows and columns.
References max_unpool(const Call& call) {
  const Array &x = call.in(0, 3), &indices = call.in(1, 3);
  require(x.extents == indices.extents && !is_float(indices.dtype),
          "the indices are not integers, or not of the shape of the input");
  const Extents kernel = call.ints("kernel_shape"), ones(kernel.size(), 1), strides = call.ints("strides", ones),
                pads = call.ints("pads", Extents(2 * kernel.size(), 0));
  require(static_cast<int64_t>(kernel.size()) == x.rank() - 2 && strides.size() == kernel.size() &&
              pads.size() == 2 * kernel.size(),
          "kernel_shape, strides or pads do not fit the number of spatial axes");
  Extents pooled = {x.extents[0], x.extents[1]};
  for (size_t i = 0; i < kernel.size(); ++i) {
    for (const int64_t number : {kernel[i], strides[i], pads[i], pads[i + kernel.size()]})
      require(number >= 0 && number < 1 << 20, "an extent of the kernel, a stride or a pad is not from 0 to 2^20 - 1");
    pooled.push_back((x.extents[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + kernel.size()]);
  }
  const Extents shape = call.has(2) ? call.integers(2) : pooled;
  Array result(x.dtype, shape);
  const int64_t count = count_of(pooled);
  for (size_t i = 0; i < x.values.size(); ++i) {
    int64_t at = whole(indices.values[i]);
    require(at >= 0 && at < count, "an index is outside the pooled image");
    Index to(pooled.size());
    for (size_t axis = pooled.size(); axis-- > 0; at /= pooled[axis]) to[axis] = at % pooled[axis];
    result.at(to) = x.values[i];
  }
  return {Reference(std::move(result), Rule::bits())};
}

const Operator kOperators[] = {
    {"GridSample", {20, 22}, grid_sample},
    {"AffineGrid", {20}, affine_grid},
    {"RoiAlign", {16, 22}, roi_align},
    {"MaxRoiPool", {1, 22}, max_roi_pool},
    {"DeformConv", {19, 22}, deform_conv},
    {"NonMaxSuppression", {11}, non_max_suppression},
    {"Col2Im", {18}, col2im},
    {"MaxUnpool", {11, 22}, max_unpool},
};

}  // namespace

std::span<const Operator> image_operators() {
  return kOperators;
}

}  // namespace backplane::conform
