// SPDX-License-Identifier: Apache-2.0
// Resize by nearest neighbour and linear interpolation.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>

namespace backplane::conform {
namespace {

// Where in the input, as a real number, position `out` of an axis lies.
double coordinate(std::string_view mode, int64_t out, int64_t in_extent, double out_extent, double scale) {
  const auto x = static_cast<double>(out);
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") {
    return out_extent == 1 ? 0 : x * static_cast<double>(in_extent - 1) / (out_extent - 1);
  }
  if (mode == "pytorch_half_pixel" && out_extent == 1) return 0;
  return (x + 0.5) / scale - 0.5;
}

int64_t nearest(std::string_view mode, double x) {
  if (mode == "floor") return whole(std::floor(x));
  if (mode == "ceil") return whole(std::ceil(x));
  if (mode == "round_prefer_ceil") return whole(std::floor(x + 0.5));
  return whole(std::ceil(x - 0.5));  // round_prefer_floor
}

// Inputs: data, region of interest (unused by these modes), scales, sizes.
References resize(const Call& call) {
  const Array& x = call.in(0);
  const std::string_view where = call.text("coordinate_transformation_mode");
  const bool linear = call.text("mode") == "linear";
  require(linear || call.text("mode") == "nearest", "the oracle knows the modes nearest and linear");
  require(where.empty() || where == "half_pixel" || where == "asymmetric" || where == "align_corners" ||
              where == "pytorch_half_pixel",
          "the oracle does not know this coordinate_transformation_mode");
  require(call.integer("antialias") == 0 && call.ints("axes").empty(), "the oracle knows no antialias and no axes");
  require(
      call.has(3) ? call.integers(3).size() == x.extents.size() : call.vector(2, x.rank()).size() == x.extents.size(),
      "there is not one size for each axis");
  Extents shape;
  std::vector<double> scales;
  for (size_t i = 0; i < x.extents.size(); ++i) {
    const auto extent = static_cast<double>(x.extents[i]);
    const bool by_size = call.has(3);
    require(by_size || (call.in(2).values[i] > 0 && extent * call.in(2).values[i] < static_cast<double>(kMaxElements)),
            "a scale is out of range");
    shape.push_back(by_size ? call.integers(3)[i] : whole(std::floor(extent * call.in(2).values[i])));
    scales.push_back(by_size ? static_cast<double>(shape[i]) / extent : call.in(2).values[i]);
  }
  require(x.count() != 0 || count_of(shape) == 0, "there is nothing to resize");
  require(x.rank() <= 8, "the oracle resizes 8 axes at most");
  const auto source = [&](size_t axis, int64_t out) {
    // As ONNX has it, the resized extent is the real number before it is cut down.
    return coordinate(where, out, x.extents[axis], static_cast<double>(x.extents[axis]) * scales[axis], scales[axis]);
  };
  const auto inside = [&](size_t axis, int64_t at) { return std::clamp<int64_t>(at, 0, x.extents[axis] - 1); };

  Reference result(Array(x.dtype, shape), linear ? Rule::of(Rule::kResize) : Rule::bits());
  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::fabs(value));
  if (linear) result.scale.assign(result.value.values.size(), largest);

  for_each_index(shape, [&](const Index& index) {
    if (!linear) {
      Index from(index.size());
      for (size_t i = 0; i < index.size(); ++i)
        from[i] = inside(i, nearest(call.text("nearest_mode"), source(i, index[i])));
      result.value.at(index) = x.at(from);
      return;
    }
    // The corners of the cell, each with the product of its axes' weights.
    double sum = 0;
    for_each_index(Extents(index.size(), 2), [&](const Index& corner) {
      Index from(index.size());
      double weight = 1;
      for (size_t i = 0; i < index.size(); ++i) {
        const double at = source(i, index[i]), low = std::floor(at);
        weight *= corner[i] == 0 ? 1 - (at - low) : at - low;
        from[i] = inside(i, whole(low) + corner[i]);
      }
      if (weight != 0) sum += weight * x.at(from);
    });
    result.value.at(index) = sum;
  });
  return {result};
}

const Operator kOperators[] = {
    {"Resize", {18, 19}, resize},
};

}  // namespace

std::span<const Operator> resize_operators() {
  return kOperators;
}

}  // namespace backplane::conform
