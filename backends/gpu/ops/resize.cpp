// SPDX-License-Identifier: Apache-2.0
// Resize, one axis at a time: each output position is computed from a few input positions. The host determines them in
// double precision, so that rounding on the device cannot change them.
#include <algorithm>
#include <cmath>

#include "ops/resample.h"
#include "ops/table.h"

namespace backplane::gpu {
namespace {

struct Axis {
  int64_t from, to;
  double scale = 1;
  double begin = 0, end = 1;  // of the region to resize (input roi), as fractions of the extent
};

struct Method {
  std::string mode, coordinates, nearest;
  double cubic;
  bool antialias, exclude_outside;

  explicit Method(const Node& node)
      : mode(node.text_attribute("mode", "nearest")),
        coordinates(node.text_attribute("coordinate_transformation_mode", "half_pixel")),
        nearest(node.text_attribute("nearest_mode", "round_prefer_floor")),
        cubic(static_cast<double>(node.float_attribute("cubic_coeff_a", -0.75f))),
        antialias(node.int_attribute("antialias", 0) != 0),
        exclude_outside(node.int_attribute("exclude_outside", 0) != 0) {}
};

// The input coordinate of output position i.
double position(const Axis& axis, const Method& method, int64_t i) {
  const double x = static_cast<double>(i), n = static_cast<double>(axis.from), whole = axis.scale * n;
  const double center = (x + 0.5) / axis.scale - 0.5;
  if (method.coordinates == "half_pixel") return center;
  // Computes center + n/2 · (1 - to / whole) with one division by the scale, so that coordinates that coincide with a
  // pixel are exact.
  if (method.coordinates == "half_pixel_symmetric")
    return ((2 * x + 1 - static_cast<double>(axis.to)) / axis.scale + n - 1) / 2;
  if (method.coordinates == "pytorch_half_pixel") return axis.to > 1 ? center : 0;
  if (method.coordinates == "align_corners") return axis.to > 1 && whole != 1 ? x * (n - 1) / (whole - 1) : 0;
  if (method.coordinates == "asymmetric") return x / axis.scale;
  if (method.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  const double region = (axis.end - axis.begin) * (n - 1);  // tf_crop_and_resize
  if (axis.to == 1) return (axis.begin + axis.end) / 2 * (n - 1);
  return axis.begin * (n - 1) + x * region / static_cast<double>(axis.to - 1);
}

double nearest_of(double x, const std::string& rule) {
  const double low = std::floor(x);
  if (rule == "floor") return low;
  if (rule == "ceil") return std::ceil(x);
  if (rule == "round_prefer_ceil") return x - low < 0.5 ? low : low + 1;
  return x - low <= 0.5 ? low : low + 1;
}

// The weight of an input position at this distance from the coordinate.
double weight_of(double distance, const Method& method) {
  const double d = std::fabs(distance), a = method.cubic;
  if (method.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  return d < 2 ? a * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

Taps taps_of(size_t dimension, const Axis& axis, const Method& method) {
  Taps taps{.axis = dimension, .to = axis.to};
  if (axis.to == 0) return taps;  // axis.scale may be 0
  const bool nearest = method.mode == "nearest";
  const double squeeze = method.antialias ? std::min(axis.scale, 1.0) : 1;
  const auto reach = static_cast<int64_t>(std::ceil((method.mode == "cubic" ? 2 : 1) / squeeze));
  if (!nearest) taps.count = 2 * reach;
  if (static_cast<double>(taps.count) * static_cast<double>(axis.to) > static_cast<double>(kMaxTaps))
    throw sdk::Error(BP_UNSUPPORTED, "a scale of " + std::to_string(axis.scale) + " needs more than " +
                                         std::to_string(kMaxTaps) + " input positions in all");
  const auto inside = [&](double source) {
    return static_cast<int32_t>(std::clamp(source, 0.0, static_cast<double>(axis.from - 1)));
  };
  for (int64_t i = 0; i < axis.to; ++i) {
    const double x = position(axis, method, i);
    if (!std::isfinite(x) ||
        (method.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.from - 1)))) {
      taps.positions.insert(taps.positions.end(), static_cast<size_t>(taps.count), -1);
      taps.weights.insert(taps.weights.end(), static_cast<size_t>(taps.count), 0);
      continue;
    }
    if (nearest) {
      taps.positions.push_back(inside(nearest_of(x, method.nearest)));
      continue;
    }
    std::vector<double> weights;
    double sum = 0;
    const double low = std::floor(x);
    for (int64_t k = 1 - reach; k <= reach; ++k) {
      const double source = low + static_cast<double>(k);
      const bool counts = !method.exclude_outside || (source >= 0 && source < static_cast<double>(axis.from));
      weights.push_back(counts ? weight_of((source - x) * squeeze, method) : 0);
      sum += weights.back();
      taps.positions.push_back(inside(source));
    }
    const double whole = (method.antialias || method.exclude_outside) && sum != 0 ? sum : 1;
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / whole));
  }
  return taps;
}

std::vector<Axis> axes_of(Emit& e, const Method& method) {
  const Shape shape = e.shape(0);
  std::vector<Axis> all;
  for (const int64_t extent : shape) all.push_back({extent, extent});
  std::vector<int64_t> axes = e.node.ints_attribute("axes");
  if (axes.empty()) {
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const std::vector<double> region = e.numbers(1), scales = e.numbers(2), sizes = e.numbers(3);
  const std::string policy(e.node.text_attribute("keep_aspect_ratio_policy", "stretch"));
  double common = policy == "not_larger" ? INFINITY : 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = all[axis_of(axes[i], shape.size())];
    const double n = static_cast<double>(axis.from);
    axis.scale = !sizes.empty() ? (n == 0 ? 1 : sizes.at(i) / n) : scales.at(i);
    // ONNX's shape inference multiplies floats: in float, 80 * 1.3f is 104, although 1.3f is less than 1.3.
    const double to = !sizes.empty() ? sizes[i] : std::floor(static_cast<float>(n) * static_cast<float>(axis.scale));
    if (!(axis.scale >= 0) || !(to >= 0) || to > INT32_MAX || (n == 0 && to > 0))
      throw sdk::Error(BP_INVALID_ARGUMENT, "cannot resize dimension " + std::to_string(axes[i]) + " of extent " +
                                                std::to_string(axis.from) + " to " + std::to_string(to));
    axis.to = static_cast<int64_t>(to);
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
    if (method.coordinates == "tf_crop_and_resize") {
      axis.begin = region.at(i);
      axis.end = region.at(i + axes.size());
    }
  }
  if (sizes.empty() || policy == "stretch") return all;
  for (const int64_t each : axes) {
    Axis& axis = all[axis_of(each, shape.size())];
    const double to = std::floor(common * static_cast<double>(axis.from) + 0.5);
    if (!(to <= INT32_MAX))
      throw sdk::Error(BP_INVALID_ARGUMENT,
                       "size " + std::to_string(to) + ", which keeps the aspect ratio, is too large");
    axis.scale = common;
    axis.to = static_cast<int64_t>(to);
  }
  return all;
}

void emit_resize(Emit& e, std::string_view) {
  const Method method(e.node);
  const std::vector<Axis> axes = axes_of(e, method);
  std::vector<Taps> tables;
  for (size_t i = axes.size(); i-- > 0;) {
    const Axis& axis = axes[i];
    const bool moves = method.coordinates == "tf_half_pixel_for_nn" || axis.begin != 0 || axis.end != 1;
    if (axis.to != axis.from || axis.scale != 1 || moves) tables.push_back(taps_of(i, axis, method));
  }
  const std::vector<float> value{e.node.float_attribute("extrapolation_value", 0)};
  const bp_dtype_t dtype = e.node.input(0).dtype();
  Tensor fill;
  if (method.coordinates == "tf_crop_and_resize")
    fill = e.computed("$0", dtype, {}, {{e.table(BP_DTYPE_FLOAT, {}, value), {}, 0}});
  emit_resample(e, tables, fill ? fill : zero(e, dtype));
}

Verdict supports_resize(const Node& node) {
  const struct {
    const char* name;
    std::initializer_list<std::string_view> values;  // the first is the default
  } choices[] = {
      {"mode", {"nearest", "linear", "cubic"}},
      {"coordinate_transformation_mode",
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize"}},
      {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
      {"keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}},
  };
  for (const auto& [name, values] : choices) {
    const std::string_view value = node.text_attribute(name, *values.begin());
    if (std::ranges::find(values, value) == values.end())
      return sdk::no(BP_REASON_ATTRIBUTE, std::string(name) + " '" + std::string(value) + "' is not supported");
  }
  if (node.text_attribute("mode", "nearest") != "nearest" && (kFloats >> node.input(0).dtype() & 1) == 0)
    return sdk::no(BP_REASON_DTYPE, "mode '" + std::string(node.text_attribute("mode", "nearest")) +
                                        "' requires floating-point numbers");
  for (const uint32_t slot : {1u, 2u, 3u}) {
    if (slot == 1 && node.text_attribute("coordinate_transformation_mode", "") != "tf_crop_and_resize") continue;
    if (slot == 1 && node.input(1) && node.input(1).dtype() != BP_DTYPE_FLOAT &&
        node.input(1).dtype() != BP_DTYPE_DOUBLE)
      return sdk::no(BP_REASON_DTYPE, "roi is neither float nor double");
    if (Verdict v = known_on_host(node, slot); !accepted(v)) return v;
  }
  return accept();
}

}  // namespace

std::span<const Row> resize_rows() {
  static constexpr Row kRows[] = {
      {"", "Resize", 11, kAnything, {1, 4}, supports_resize, emit_resize},
  };
  return kRows;
}

}  // namespace backplane::gpu
