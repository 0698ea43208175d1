// SPDX-License-Identifier: Apache-2.0
// Resize. Each axis is resampled separately: the element at a result position is a weighted sum of the elements at a
// few input positions, called its taps. The taps of an axis are computed once, while planning, unless they take much
// memory (runtime/tables.h): then each run computes those of one result position at a time. The nearest filter has one
// tap of weight 1, so it moves elements of any type.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/mapped_copy.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"
#include "runtime/memory.h"
#include "runtime/tables.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

enum class Filter { kNearest, kLinear, kCubic };
enum class Coordinates {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixel,
  kTfCrop
};
enum class Rounding { kPreferFloor, kPreferCeil, kFloor, kCeil };
enum class Aspect { kStretch, kNotLarger, kNotSmaller };

constexpr std::string_view kFilterNames[] = {"nearest", "linear", "cubic"};
constexpr std::string_view kCoordinateNames[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                                 "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                                 "tf_crop_and_resize"};
constexpr std::string_view kRoundingNames[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr std::string_view kAspectNames[] = {"stretch", "not_larger", "not_smaller"};

// Returns the index of an attribute's value in `names`, or -1 if it is not there. The first name is the default.
template <size_t kCount>
int position(const Node& node, std::string_view attribute, const std::string_view (&names)[kCount]) {
  const std::string value =
      node.attr(attribute, names[0].data());  // NOLINT(bugprone-suspicious-stringview-data-usage): literals
  for (size_t i = 0; i < kCount; ++i)
    if (names[i] == value) return static_cast<int>(i);
  return -1;
}

struct Attributes {
  Filter filter;
  Coordinates coordinates;
  Rounding rounding;
  Aspect aspect;
  double cubic_coefficient;
  float extrapolation_value;
  bool antialias, exclude_outside;
  std::vector<int64_t> axes;

  explicit Attributes(const Node& node)
      : filter(static_cast<Filter>(position(node, "mode", kFilterNames))),
        coordinates(static_cast<Coordinates>(position(node, "coordinate_transformation_mode", kCoordinateNames))),
        rounding(static_cast<Rounding>(position(node, "nearest_mode", kRoundingNames))),
        aspect(static_cast<Aspect>(position(node, "keep_aspect_ratio_policy", kAspectNames))),
        cubic_coefficient(node.attr("cubic_coeff_a", -0.75f)),
        extrapolation_value(node.attr("extrapolation_value", 0.0f)),
        antialias(node.attr("antialias", int64_t{0}) != 0),
        exclude_outside(node.attr("exclude_outside", int64_t{0}) != 0),
        axes(node.ints("axes")) {}
};

// The extents of one axis before and after resampling, and the parameters that map its positions.
struct Axis {
  int64_t from = 0, to = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

struct Taps {
  size_t count = 0;            // number of taps per result position
  std::vector<int64_t> index;  // by result position and tap: the input position
  std::vector<float> weight;   // by result position and tap
};

double original_position(const Axis& axis, int64_t i, Coordinates coordinates) {
  const double x = static_cast<double>(i), n = static_cast<double>(axis.from), exact_to = axis.scale * n;
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  switch (coordinates) {
    case Coordinates::kHalfPixel:
      return half_pixel;
    case Coordinates::kHalfPixelSymmetric:
      // n/2 · (1 - to / exact_to) + half_pixel, written with a single division so that positions that coincide with a
      // pixel are exact.
      return ((2 * x + 1 - static_cast<double>(axis.to)) / axis.scale + n - 1) / 2;
    case Coordinates::kPytorchHalfPixel:
      return axis.to > 1 ? half_pixel : 0;
    case Coordinates::kAlignCorners:
      return axis.to > 1 && exact_to != 1 ? x * (n - 1) / (exact_to - 1) : 0;
    case Coordinates::kAsymmetric:
      return x / axis.scale;
    case Coordinates::kTfHalfPixel:
      return (x + 0.5) / axis.scale;
    case Coordinates::kTfCrop:
      if (axis.to == 1) return 0.5 * (axis.roi_start + axis.roi_end) * (n - 1);
      return axis.roi_start * (n - 1) +
             x * (axis.roi_end - axis.roi_start) * (n - 1) / static_cast<double>(axis.to - 1);
  }
  return 0;
}

int64_t nearest(double x, Rounding rounding) {
  const double low = std::floor(x);
  switch (rounding) {
    case Rounding::kPreferFloor:
      return static_cast<int64_t>(x - low <= 0.5 ? low : low + 1);
    case Rounding::kPreferCeil:
      return static_cast<int64_t>(x - low < 0.5 ? low : low + 1);
    case Rounding::kFloor:
      return static_cast<int64_t>(low);
    case Rounding::kCeil:
      return static_cast<int64_t>(std::ceil(x));
  }
  return 0;
}

double linear_weight(double distance) {
  return std::max(0.0, 1 - std::fabs(distance));
}

double cubic_weight(double distance, double a) {
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The positions and weights of the taps of an axis.
class Filtering {
 public:
  Filtering(const Axis& axis, const Attributes& a)
      : axis_(axis),
        filter_(a.filter),
        coordinates_(a.coordinates),
        rounding_(a.rounding),
        cubic_coefficient_(a.cubic_coefficient),
        exclude_outside_(a.exclude_outside),
        normalizes_(a.antialias || a.exclude_outside) {
    // When shrinking, antialiasing widens the filter.
    stretch_ = a.antialias ? std::min(axis.scale, 1.0) : 1.0;
    const double reach = a.filter == Filter::kCubic ? 2 : 1;
    first_ = static_cast<int64_t>(std::floor(-reach / stretch_)) + 1;
  }

  // Number of taps per result position, of the linear and cubic filters.
  int64_t count() const { return 2 - 2 * first_; }
  // Whether result position `i` is extrapolated.
  bool outside(int64_t i) const {
    const double x = original_position(axis_, i, coordinates_);
    return coordinates_ == Coordinates::kTfCrop && !(x >= 0 && x <= static_cast<double>(axis_.from - 1));
  }
  int64_t nearest_index(int64_t i) const { return within(nearest(source_position(i), rounding_)); }

  // The taps of result position `i`.
  struct Window {
    double fraction;  // the source position minus `low`: 0 to 1
    int64_t low;      // the input position at or before the source position
    double sum;       // the number by which the taps' weights are divided
  };
  Window window(int64_t i, Pace& pace) const {
    const double x = source_position(i), low = std::floor(x);
    Window window{x - low, static_cast<int64_t>(low), 1};
    if (!normalizes_) return window;
    double sum = 0;
    for (int64_t k = 0; k < count(); ++k) {
      pace.spend(4);
      sum += raw_weight(window, k);
    }
    if (sum != 0) window.sum = sum;
    return window;
  }
  int64_t index(const Window& window, int64_t k) const { return within(window.low + first_ + k); }
  float weight(const Window& window, int64_t k) const { return static_cast<float>(raw_weight(window, k) / window.sum); }

 private:
  double source_position(int64_t i) const {
    const double x = original_position(axis_, i, coordinates_);
    return std::isnan(x) ? 0 : std::clamp(x, -0x1p40, 0x1p40);
  }
  int64_t within(int64_t index) const { return std::clamp<int64_t>(index, 0, axis_.from - 1); }
  double raw_weight(const Window& window, int64_t k) const {
    const int64_t index = window.low + first_ + k;
    if (exclude_outside_ && (index < 0 || index >= axis_.from)) return 0;
    const double distance = (static_cast<double>(first_ + k) - window.fraction) * stretch_;
    return filter_ == Filter::kLinear ? linear_weight(distance) : cubic_weight(distance, cubic_coefficient_);
  }

  Axis axis_;
  Filter filter_;
  Coordinates coordinates_;
  Rounding rounding_;
  double cubic_coefficient_;
  bool exclude_outside_, normalizes_;
  double stretch_;
  int64_t first_;  // the input position of the first tap, relative to Window::low
};

Taps taps_of(const Filtering& filtering, int64_t to) {
  Taps taps;
  taps.count = static_cast<size_t>(filtering.count());
  taps.index.reserve(static_cast<size_t>(to) * taps.count);
  taps.weight.reserve(static_cast<size_t>(to) * taps.count);
  Pace pace;
  for (int64_t i = 0; i < to; ++i) {
    const Filtering::Window window = filtering.window(i, pace);
    for (int64_t k = 0; k < filtering.count(); ++k) {
      pace.spend(4);
      taps.index.push_back(filtering.index(window, k));
      taps.weight.push_back(filtering.weight(window, k));
    }
  }
  return taps;
}

// ---- One axis at a time: x is [outer, from, inner], y is [outer, to, inner] ----------------------------------------

template <class To, class C>
To rounded(C value) {
  if constexpr (kIsFloating<To>) {
    return static_cast<To>(value);
  } else {
    const C whole = std::nearbyint(value);
    if (!(whole > static_cast<C>(std::numeric_limits<To>::lowest()))) return std::numeric_limits<To>::lowest();
    return whole >= std::ldexp(C(1), std::numeric_limits<To>::digits) ? std::numeric_limits<To>::max()
                                                                      : static_cast<To>(whole);
  }
}

// Computes y = Σ weights[k] · rows[k], for rows of `n` floats.
template <int kBytes>
CLONED void weighted_sum_of_rows(const float* const* rows, const float* weights, size_t count, float* y, int64_t n) {
  using Lanes = FloatLanes<kBytes>;
  int64_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) {
    Lanes sum = Lanes::all(weights[0]) * Lanes::load(rows[0] + i);
    for (size_t k = 1; k < count; ++k) sum = sum + Lanes::all(weights[k]) * Lanes::load(rows[k] + i);
    sum.store(y + i);
  }
  for (; i < n; ++i) {
    float sum = weights[0] * rows[0][i];
    for (size_t k = 1; k < count; ++k) sum += weights[k] * rows[k][i];
    y[i] = sum;
  }
}

// Computes a row of results that have two taps each. A second tap of weight 0 is ignored, even if its input is NaN.
CLONED void weighted_sum_of_pairs(const float* x, const int32_t* first, const int32_t* second,
                                  const float* first_weight, const float* second_weight, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float a = x[first[i]] * first_weight[i], b = x[second[i]] * second_weight[i];
    y[i] = second_weight[i] == 0.0f ? a : a + b;
  }
}

// Resamples floats. If inner > 1, a result row is a weighted sum of whole input rows. If inner is 1, each result is a
// weighted sum of two elements of a row, so there must be two taps.
void resample_floats(const float* x, float* y, const Taps& taps, int64_t outer, int64_t from, int64_t to,
                     int64_t inner) {
  const auto count = static_cast<int64_t>(taps.count);
  if (inner > 1) {
    parallel(outer * to, 1 + kCheapGrain / (inner * count), [&](int64_t begin, int64_t end) {
      std::vector<const float*> rows(taps.count);
      std::vector<float> weights(taps.count);
      for (int64_t row = begin; row < end; ++row) {
        const size_t first = static_cast<size_t>(row % to) * taps.count;
        size_t used = 0;
        for (size_t k = 0; k < taps.count; ++k) {
          if (k > 0 && taps.weight[first + k] == 0) continue;
          rows[used] = x + (row / to * from + taps.index[first + k]) * inner;
          weights[used++] = taps.weight[first + k];
        }
        clone_of<weighted_sum_of_rows<64>, weighted_sum_of_rows<32>, weighted_sum_of_rows<16>>(
            rows.data(), weights.data(), used, y + row * inner, inner);
      }
    });
    return;
  }
  std::vector<int32_t> indices[2];
  std::vector<float> weights[2];
  for (size_t i = 0; i < taps.index.size(); ++i) {
    indices[i % 2].push_back(static_cast<int32_t>(taps.index[i]));
    weights[i % 2].push_back(taps.weight[i]);
  }
  parallel(outer, 1 + kCheapGrain / (2 * to), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      clone_of<weighted_sum_of_pairs>(x + row * from, indices[0].data(), indices[1].data(), weights[0].data(),
                                      weights[1].data(), y + row * to, to);
  });
}

template <class C, class From, class To>
void resample(const From* x, To* y, const Taps& taps, int64_t outer, int64_t from, int64_t to, int64_t inner) {
  if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float>) {
    if (inner > 1 || (taps.count == 2 && from <= INT32_MAX)) return resample_floats(x, y, taps, outer, from, to, inner);
  }
  parallel(outer * to, std::max<int64_t>(1, kCheapGrain / (inner * static_cast<int64_t>(taps.count))),
           [&](int64_t begin, int64_t end) {
             constexpr int64_t kWidth = 256;
             C sums[kWidth];
             for (int64_t row = begin; row < end; ++row) {
               const size_t first = static_cast<size_t>(row % to) * taps.count;
               const From* source = x + row / to * from * inner;
               for (int64_t at = 0; at < inner; at += kWidth) {
                 const int64_t n = std::min(kWidth, inner - at);
                 for (size_t k = 0; k < taps.count; ++k) {
                   const From* line = source + taps.index[first + k] * inner + at;
                   const C weight = taps.weight[first + k];
                   if (k == 0)
                     for (int64_t i = 0; i < n; ++i) sums[i] = weight * static_cast<C>(line[i]);
                   else if (weight != 0)
                     for (int64_t i = 0; i < n; ++i) sums[i] += weight * static_cast<C>(line[i]);
                 }
                 for (int64_t i = 0; i < n; ++i) y[row * inner + at + i] = rounded<To>(sums[i]);
               }
             }
           });
}

// As `resample`, but computes the taps of each result position in turn. There may be millions of taps, so sums are in
// double.
template <class From, class To>
void resample_without_taps(const From* x, To* y, const Filtering& filtering, int64_t outer, int64_t from, int64_t to,
                           int64_t inner) {
  parallel(outer * to, std::max<int64_t>(1, kCheapGrain / (inner * filtering.count())),
           [&](int64_t begin, int64_t end) {
             constexpr int64_t kWidth = 256;
             double sums[kWidth];
             Pace pace;
             for (int64_t row = begin; row < end; ++row) {
               const Filtering::Window window = filtering.window(row % to, pace);
               const From* source = x + row / to * from * inner;
               for (int64_t at = 0; at < inner; at += kWidth) {
                 const int64_t n = std::min(kWidth, inner - at);
                 for (int64_t k = 0; k < filtering.count(); ++k) {
                   pace.spend(8 + n);
                   const From* line = source + filtering.index(window, k) * inner + at;
                   const double weight = filtering.weight(window, k);
                   if (k == 0)
                     for (int64_t i = 0; i < n; ++i) sums[i] = weight * static_cast<double>(line[i]);
                   else if (weight != 0)
                     for (int64_t i = 0; i < n; ++i) sums[i] += weight * static_cast<double>(line[i]);
                 }
                 for (int64_t i = 0; i < n; ++i) y[row * inner + at + i] = rounded<To>(sums[i]);
               }
             }
           });
}

struct Pass {
  Filtering filtering;
  std::optional<Taps> taps;  // nullopt if they are not tabulated
  int64_t outer, from, to, inner;
};

template <class C, class From, class To>
void resample(const From* x, To* y, const Pass& p) {
  if (p.taps)
    resample<C>(x, y, *p.taps, p.outer, p.from, p.to, p.inner);
  else
    resample_without_taps(x, y, p.filtering, p.outer, p.from, p.to, p.inner);
}

template <class T>
using accumulator_t =
    std::conditional_t<std::is_same_v<T, double> || (std::is_integral_v<T> && sizeof(T) >= 4), double, float>;

template <class T>
void run_passes(const std::vector<Pass>& passes, const Tensor& in, const Tensor& out, void* scratch, int64_t half) {
  using C = accumulator_t<T>;
  C* buffers[] = {static_cast<C*>(scratch), static_cast<C*>(scratch) + half};
  for (size_t i = 0; i < passes.size(); ++i) {
    const Pass& p = passes[i];
    const C* before = buffers[(i + 1) % 2];
    C* after = buffers[i % 2];
    const bool first = i == 0, last = i + 1 == passes.size();
    if (first && last)
      resample<C>(in.as<T>(), out.as<T>(), p);
    else if (first)
      resample<C>(in.as<T>(), after, p);
    else if (last)
      resample<C>(before, out.as<T>(), p);
    else
      resample<C>(before, after, p);
  }
}

// An axis that is resampled.
struct Resampled {
  int dimension;
  Filtering filtering;
};

// Sets the results whose source positions are outside the input along any axis to `value`.
template <class T>
void extrapolate(const Tensor& out, const std::vector<Resampled>& axes, float value) {
  const T filler = rounded<T>(static_cast<accumulator_t<T>>(value));
  const Shape& shape = out.shape;
  for (const Resampled& axis : axes) {
    const int d = axis.dimension;
    const int64_t outer = shape.elements(0, d), inner = shape.elements(d + 1, shape.rank()), n = shape[d];
    parallel(n, 1 + kCheapGrain / (outer * inner), [&](int64_t begin, int64_t end) {
      Pace pace;
      for (int64_t i = begin; i < end; ++i) {
        if (!axis.filtering.outside(i)) continue;
        for (int64_t o = 0; o < outer; ++o) {
          pace.spend(8 + inner);
          std::fill_n(out.as<T>() + (o * n + i) * inner, inner, filler);
        }
      }
    });
  }
}

// ---- Planning ------------------------------------------------------------------------------------------------------

// Fills `result`, one Axis per dimension, from the inputs scales or sizes, and roi. Returns a message if they are
// invalid.
std::optional<std::string> read_axes(Tensors inputs, const Attributes& a, std::vector<Axis>& result) {
  const Shape& shape = inputs[0].shape;
  std::vector<int64_t> axes = a.axes;
  if (axes.empty())
    for (int d = 0; d < shape.rank(); ++d) axes.push_back(d);
  if (!axis_set(axes, shape.rank())) return axes_error(axes, shape.rank());
  for (int64_t extent : shape) result.push_back({extent, extent});
  const Tensor roi = at(inputs, 1), scales = at(inputs, 2), sizes = at(inputs, 3);
  const auto count = static_cast<int64_t>(axes.size());
  const auto axis = [&](int64_t k) -> Axis& {
    return result[static_cast<size_t>(axis_of(axes[static_cast<size_t>(k)], shape.rank()))];
  };
  const bool by_size = sizes.present() && sizes.shape.elements() > 0;
  const Tensor& chosen = by_size ? sizes : scales;
  if (!chosen.present()) return "scales and sizes are both missing or empty; one of them is needed";
  if (chosen.shape.elements() != count)
    return std::string(by_size ? "sizes" : "scales") + " has shape " + to_string(chosen.shape) +
           "; it must have one element for each of " + std::to_string(count) + " axes";
  for (int64_t k = 0; k < count; ++k) {
    Axis& one = axis(k);
    const auto n = static_cast<double>(one.from);
    if (by_size) {
      one.to = sizes.as<int64_t>()[k];
      if (one.to < 0 || one.to > INT32_MAX) return "size " + std::to_string(one.to) + " must be 0 to 2^31 - 1";
      one.scale = one.from == 0 ? 1 : static_cast<double>(one.to) / n;
    } else {
      const float scale = scales.as<float>()[k];
      one.scale = scale;
      if (!(one.scale > 0)) return "scale " + std::to_string(one.scale) + " is not positive";
      if (!(n * one.scale < INT32_MAX))
        return "scale " + std::to_string(one.scale) + " is too large for an axis of extent " +
               std::to_string(one.from) + ": the result must have fewer than 2^31 - 1 elements along the axis";
      // ONNX's shape inference multiplies floats: 80 times 1.3f is 104, though 1.3f is less than 1.3.
      one.to = static_cast<int64_t>(std::floor(static_cast<float>(one.from) * scale));
    }
    if (one.from == 0 && one.to > 0) return "an axis of extent 0 cannot get extent " + std::to_string(one.to);
  }
  if (by_size && a.aspect != Aspect::kStretch && count > 0) {
    double scale = axis(0).scale;
    for (int64_t k = 1; k < count; ++k)
      scale = a.aspect == Aspect::kNotLarger ? std::min(scale, axis(k).scale) : std::max(scale, axis(k).scale);
    for (int64_t k = 0; k < count; ++k) {
      const double to = std::floor(scale * static_cast<double>(axis(k).from) + 0.5);
      if (!(to <= INT32_MAX)) return "size " + std::to_string(to) + ", which keeps the aspect ratio, is too large";
      axis(k).scale = scale;
      axis(k).to = static_cast<int64_t>(to);
    }
  }
  if (a.coordinates == Coordinates::kTfCrop) {
    if (!roi.present()) return "roi is missing; coordinate_transformation_mode 'tf_crop_and_resize' needs it";
    if (roi.shape.elements() != 2 * count)
      return "roi has shape " + to_string(roi.shape) + "; it must have two elements for each of " +
             std::to_string(count) + " axes";
    dispatch<Floats>(roi.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t k = 0; k < count; ++k) {
        axis(k).roi_start = static_cast<double>(roi.as<T>()[k]);
        axis(k).roi_end = static_cast<double>(roi.as<T>()[k + count]);
      }
    });
  }
  return std::nullopt;
}

Plan plan_resize(const PlanContext& context, Tensors inputs, const Attributes& a) {
  for (const Tensor& input : inputs.subspan(1))
    if (input.present() && !known(input)) return deferred();
  const Shape from = inputs[0].shape;
  std::vector<Axis> axes;
  if (auto error = read_axes(inputs, a, axes)) return fail(*error);
  Shape to;
  for (const Axis& axis : axes) to.push_back(axis.to);
  if (Plan plain = make_plan({to}, [](Tensors, Tensors) {}); !plain.step || to.elements() == 0) return plain;

  std::vector<Resampled> resampled;  // innermost first
  for (int d = from.rank() - 1; d >= 0; --d) {
    const Axis& axis = axes[static_cast<size_t>(d)];
    const bool untouched = axis.to == axis.from && axis.scale == 1 &&
                           (a.coordinates != Coordinates::kTfCrop || (axis.roi_start == 0 && axis.roi_end == 1)) &&
                           a.coordinates != Coordinates::kTfHalfPixel;
    if (!untouched) resampled.push_back({d, Filtering(axis, a)});
  }
  const bp_dtype_t dtype = inputs[0].dtype;
  const auto finish = [axes = a.coordinates == Coordinates::kTfCrop ? resampled : decltype(resampled)(),
                       value = a.extrapolation_value](const Tensor& out) {
    if (!axes.empty())
      dispatch<Numbers>(out.dtype, [&](auto tag) { extrapolate<typename decltype(tag)::type>(out, axes, value); });
  };
  if (a.filter == Filter::kNearest) {
    std::vector<MappedCopy::Map> maps(static_cast<size_t>(from.rank()));
    for (const Resampled& axis : resampled)
      maps[static_cast<size_t>(axis.dimension)] = {to[axis.dimension],
                                                   [axis](int64_t i) { return axis.filtering.nearest_index(i); }};
    return make_plan(
        {to}, [copy = MappedCopy(context, from, std::move(maps), bytes_of(dtype, 1)), finish](Tensors in, Tensors out) {
          copy(in[0].data, out[0].data, nullptr);
          finish(out[0]);
        });
  }
  std::vector<Pass> passes;  // innermost axis first
  Shape now = from;
  int64_t half = 0;  // elements of the largest result of a pass: the size of each of the two scratch buffers
  for (const auto& [d, filtering] : resampled) {
    Pass pass{filtering, std::nullopt, now.elements(0, d), now[d], to[d], now.elements(d + 1, now.rank())};
    if (may_build_tables(context, product({to[d], filtering.count(), int64_t{sizeof(int64_t) + sizeof(float)}})))
      pass.taps = taps_of(filtering, to[d]);
    passes.push_back(std::move(pass));
    now[d] = to[d];
    half = std::max(half, now.elements());
  }
  if (passes.empty()) return make_plan({to}, [](Tensors, Tensors) {}, {.alias = 0});
  const int64_t scratch = passes.size() > 1 ? product({2, half, static_cast<int64_t>(sizeof(double))}) : 0;
  return make_plan({to},
                   [passes = std::move(passes), half, finish](Tensors in, Tensors out, void* buffer) {
                     dispatch<Numbers>(in[0].dtype, [&](auto tag) {
                       run_passes<typename decltype(tag)::type>(passes, in[0], out[0], buffer, half);
                     });
                     finish(out[0]);
                   },
                   {.scratch_bytes = scratch});
}

Verdict supports(const Node& node) {
  if (position(node, "mode", kFilterNames) < 0)
    return no(BP_REASON_ATTRIBUTE, "mode '" + node.attr("mode", "") + "' is not supported");
  if (position(node, "coordinate_transformation_mode", kCoordinateNames) < 0)
    return no(BP_REASON_ATTRIBUTE, "coordinate_transformation_mode '" +
                                       node.attr("coordinate_transformation_mode", "") + "' is not supported");
  if (position(node, "nearest_mode", kRoundingNames) < 0)
    return no(BP_REASON_ATTRIBUTE, "nearest_mode '" + node.attr("nearest_mode", "") + "' is not supported");
  if (position(node, "keep_aspect_ratio_policy", kAspectNames) < 0)
    return no(BP_REASON_ATTRIBUTE,
              "keep_aspect_ratio_policy '" + node.attr("keep_aspect_ratio_policy", "") + "' is not supported");
  const Attributes a(node);
  const bool moves = a.filter == Filter::kNearest && a.coordinates != Coordinates::kTfCrop;
  return accepts(node, 1,
                 {moves ? kByteTypes : set_of(Numbers{}), kFloatTypes, just(BP_DTYPE_FLOAT), just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create(const Node& node) {
  return make_kernel(
      [a = Attributes(node)](const PlanContext& context, Tensors inputs) { return plan_resize(context, inputs, a); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> resize_rows() {
  static constexpr Row kRows[] = {Row{"", "Resize", 11, supports, create}.in_fp32()};
  return kRows;
}

}  // namespace backplane::cpu
