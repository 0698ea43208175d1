// SPDX-License-Identifier: Apache-2.0
// Oracle of Resize with nearest-neighbor, linear and cubic interpolation.
#include "judge/oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace backplane::conform {
namespace {

// The resizing of one axis.
struct Axis {
  int64_t in = 0, out = 0;
  double scale = 1, first = 0, last = 1;  // `first` and `last` bound the region of interest, as fractions of the axis
};

// The input coordinate of output position `out` along an axis.
double coordinate(std::string_view mode, int64_t out, const Axis& axis) {
  const auto x = static_cast<double>(out), in = static_cast<double>(axis.in);
  const double extent = in * axis.scale;  // as in ONNX, the resized extent before truncation to an integer
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return extent == 1 ? 0 : x * (in - 1) / (extent - 1);
  if (mode == "tf_crop_and_resize") {
    const double from = axis.first * (in - 1), width = (axis.last - axis.first) * (in - 1);
    return extent == 1 ? from + width / 2 : from + x * width / (extent - 1);
  }
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  // Centers the output over the input, even if the output's extent was truncated.
  if (mode == "half_pixel_symmetric") return in / 2 * (1 - static_cast<double>(axis.out) / extent) + half_pixel;
  return mode == "pytorch_half_pixel" && extent == 1 ? 0 : half_pixel;
}

int64_t nearest(std::string_view mode, double x) {
  if (mode == "floor") return whole(std::floor(x));
  if (mode == "ceil") return whole(std::ceil(x));
  if (mode == "round_prefer_ceil") return whole(std::floor(x + 0.5));
  return whole(std::ceil(x - 0.5));  // round_prefer_floor
}

// The weight of an element at a distance: a triangle, or Keys' cubic with parameter a.
double kernel(bool cubic, double a, double distance) {
  const double x = std::fabs(distance);
  if (!cubic) return std::fmax(0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

struct Tap {
  int64_t at;
  double weight;
};
// The elements around x and their weights, with edge elements repeated. If the image shrinks, `antialias` stretches the
// kernel over all input elements of an output element.
std::vector<Tap> taps_of(const Call& call, double x, const Axis& axis) {
  const bool cubic = call.text("mode") == "cubic";
  if (call.text("mode") == "nearest")
    return {{std::clamp<int64_t>(nearest(call.text("nearest_mode"), x), 0, axis.in - 1), 1}};
  const bool antialias = call.integer("antialias") != 0;
  const double stretch = antialias ? std::fmin(1, axis.scale) : 1, reach = (cubic ? 2 : 1) / stretch;
  require(reach < 4096, "the scale is too small");
  std::vector<Tap> taps;
  double sum = 0;
  for (int64_t at = whole(std::floor(x - reach)); at <= whole(std::ceil(x + reach)); ++at) {
    double weight = kernel(cubic, call.real("cubic_coeff_a", -0.75), (static_cast<double>(at) - x) * stretch);
    if (call.integer("exclude_outside") != 0 && (at < 0 || at >= axis.in)) weight = 0;
    sum += weight;
    if (weight != 0) taps.push_back({std::clamp<int64_t>(at, 0, axis.in - 1), weight});
  }
  require(sum != 0, "the weights of the elements add up to 0");
  for (Tap& tap : taps) tap.weight /= sum;
  return taps;
}

// The inputs are data, region of interest, scales and sizes. The last three have entries for all axes, or for those
// that `axes` names.
std::vector<Axis> axes_of(const Call& call) {
  const Array& x = call.in(0);
  Extents named = call.ints("axes");
  if (named.empty()) {
    named.resize(x.extents.size());
    std::iota(named.begin(), named.end(), 0);
  }
  const bool by_size = call.has(3), has_region = call.text("coordinate_transformation_mode") == "tf_crop_and_resize";
  const auto count = static_cast<int64_t>(named.size());
  require(
      by_size ? static_cast<int64_t>(call.integers(3).size()) == count : call.vector(2, count).size() == named.size(),
      "there is not one size for each axis");
  std::vector<Axis> axes;
  for (const int64_t extent : x.extents) axes.push_back({extent, extent});
  const std::string_view policy = call.text("keep_aspect_ratio_policy");
  require(policy.empty() || policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "the policy is not known");
  double kept = policy == "not_larger" ? HUGE_VAL : 0;  // the common scale that keeps the aspect ratio
  for (size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(normal_axis(named[i], x.rank()))];
    const auto extent = static_cast<double>(axis.in);
    axis.scale = by_size ? static_cast<double>(call.integers(3)[i]) / extent : call.in(2).values[i];
    require(by_size || (axis.scale > 0 && extent * axis.scale < static_cast<double>(kMaxElements)),
            "a scale is out of range");
    axis.out = by_size ? call.integers(3)[i] : whole(std::floor(extent * axis.scale));
    kept = policy == "not_larger" ? std::fmin(kept, axis.scale) : std::fmax(kept, axis.scale);
    if (!has_region) continue;
    const std::vector<double>& region = call.vector(1, 2 * count);
    axis.first = region[i];
    axis.last = region[i + named.size()];
  }
  for (const int64_t at : named) {
    if (!by_size || policy.empty() || policy == "stretch") break;
    Axis& axis = axes[static_cast<size_t>(normal_axis(at, x.rank()))];
    require(kept > 0 && static_cast<double>(axis.in) * kept < static_cast<double>(kMaxElements),
            "a scale is out of range");
    axis.scale = kept;
    axis.out = whole(std::floor(static_cast<double>(axis.in) * kept + 0.5));
  }
  return axes;
}

References resize(const Call& call) {
  const Array& x = call.in(0);
  const std::string_view mode = call.text("mode"), where = call.text("coordinate_transformation_mode");
  require(mode == "linear" || mode == "nearest" || mode == "cubic", "the mode is not known");
  require(where.empty() || where == "half_pixel" || where == "asymmetric" || where == "align_corners" ||
              where == "pytorch_half_pixel" || where == "half_pixel_symmetric" || where == "tf_crop_and_resize",
          "the coordinate_transformation_mode is not known");
  const std::vector<Axis> axes = axes_of(call);
  Extents shape;
  for (const Axis& axis : axes) shape.push_back(axis.out);
  require(x.count() != 0 || count_of(shape) == 0, "the input is empty, but the output is not");
  require(x.rank() <= 8, "the oracle supports at most 8 axes");

  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::fabs(value));
  Reference result(Array(x.dtype, shape), mode == "nearest"  ? Rule::bits()
                                          : mode == "linear" ? Rule::of(Rule::kResize)
                                                             : Rule::of(Rule::kSum, 16));
  if (count_of(shape) == 0) return {result};
  double steps = static_cast<double>(count_of(shape));
  std::vector<std::vector<std::vector<Tap>>> taps(axes.size());  // by axis and output position
  std::vector<std::vector<bool>> outside(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    size_t most = 1;
    for (int64_t out = 0; out < axes[i].out; ++out) {
      const double at = coordinate(where, out, axes[i]);
      require(std::fabs(at) < 0x1p40, "a position is far outside, or NaN");
      taps[i].push_back(taps_of(call, at, axes[i]));
      outside[i].push_back(where == "tf_crop_and_resize" && (at < 0 || at > static_cast<double>(axes[i].in - 1)));
      most = std::max(most, taps[i].back().size());
    }
    steps *= static_cast<double>(most);
  }
  require_steps(steps);

  for_each_index(shape, [&](const Index& index) {
    Extents counts;
    bool is_outside = false;
    for (size_t i = 0; i < index.size(); ++i) {
      counts.push_back(static_cast<int64_t>(taps[i][static_cast<size_t>(index[i])].size()));
      is_outside = is_outside || outside[i][static_cast<size_t>(index[i])];
    }
    double sum = 0, scale = 0;
    for_each_index(counts, [&](const Index& chosen) {
      Index from(index.size());
      double weight = 1;
      for (size_t i = 0; i < index.size(); ++i) {
        const Tap& tap = taps[i][static_cast<size_t>(index[i])][static_cast<size_t>(chosen[i])];
        from[i] = tap.at;
        weight *= tap.weight;
      }
      sum += weight * x.at(from);
      scale += std::fabs(weight * x.at(from));
    });
    if (is_outside) sum = call.real("extrapolation_value");
    result.value.at(index) = sum;
    // Linear interpolation has the bound of its own rule. Cubic interpolation is a sum of 16 products, whose weights
    // have the rounding of their coordinate times a slope of 2.
    if (mode != "nearest") result.scale.push_back(mode == "linear" ? largest : scale + 2 * largest);
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
