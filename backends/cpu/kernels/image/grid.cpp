// SPDX-License-Identifier: Apache-2.0
// GridSample samples an image at the positions that a grid contains, in any number of spatial dimensions. AffineGrid
// computes such grids for two and three dimensions.
#include <cmath>
#include <limits>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/parallel.h"
#include "runtime/watch.h"

namespace backplane::cpu {
namespace {

enum class Filter { kNearest, kLinear, kCubic };
enum class Padding { kZeros, kBorder, kReflection };

struct Sampler {
  Filter filter;
  Padding padding;
  bool align_corners;
};

// Reflects a position at the ends of [low, high] until it is within them.
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (x >= low && x <= high) return x;
  const double distance = x < low ? low - x : x - high;
  const double turns = std::floor(distance / range), rest = distance - turns * range;
  const bool from_low = (x < low) == (std::fmod(turns, 2) == 0);
  return from_low ? low + rest : high - rest;
}

// The input positions along one dimension that contribute to a sample, and their weights.
struct Taps {
  int count = 0;
  int64_t index[4];  // -1: outside the image, contributes zero
  double weight[4];
};

Taps taps_of(const Sampler& sampler, double x, int64_t extent) {
  const auto n = static_cast<double>(extent);
  const double low = sampler.align_corners ? 0 : -0.5, high = sampler.align_corners ? n - 1 : n - 0.5;
  x = sampler.align_corners ? (x + 1) / 2 * (n - 1) : ((x + 1) * n - 1) / 2;
  x = std::isnan(x) ? -0x1p30 : std::clamp(x, -0x1p30, 0x1p30);
  if (sampler.filter == Filter::kNearest) x = std::nearbyint(x);
  if (sampler.padding == Padding::kReflection) x = reflected(x, low, high);
  Taps taps;
  const auto add = [&](double position, double weight) {
    if (sampler.padding == Padding::kReflection) position = reflected(position, low, high);
    auto index = static_cast<int64_t>(position);
    if (sampler.padding == Padding::kZeros && (position < 0 || position > n - 1))
      index = -1;
    else
      index = std::clamp<int64_t>(index, 0, extent - 1);
    taps.index[taps.count] = index;
    taps.weight[taps.count++] = weight;
  };
  const double base = std::floor(x), t = x - base;
  switch (sampler.filter) {
    case Filter::kNearest:
      add(x, 1);
      break;
    case Filter::kLinear:
      add(base, 1 - t);
      add(base + 1, t);
      break;
    case Filter::kCubic:
      for (int k = -1; k <= 2; ++k) {
        constexpr double kA = -0.75;
        const double d = std::fabs(k - t);
        add(base + k, d <= 1 ? ((kA + 2) * d - (kA + 3)) * d * d + 1 : ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA);
      }
      break;
  }
  return taps;
}

// The number of pixels that contribute to a sample grows exponentially with the number of dimensions.
constexpr int64_t kMaxTaps = int64_t{1} << 16;
int64_t taps_per_sample(Filter filter, int dimensions) {
  const int bits = filter == Filter::kNearest ? 0 : filter == Filter::kLinear ? 1 : 2;  // log2 of Taps::count
  return int64_t{1} << (bits * dimensions);
}

// Converts a sum to T. For an integer type, rounds it and clamps it to the limits of T: a cubic filter may exceed them.
template <class T>
T from_sum(double sum) {
  if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(sum)) return 0;
    sum = std::nearbyint(sum);
    if (sum <= static_cast<double>(Limits::lowest())) return Limits::lowest();
    if (sum >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    return static_cast<T>(sum);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool(sum != 0);
  } else {
    return static_cast<T>(static_cast<compute_t<T>>(sum));
  }
}

// `x` is [batch, channels, extents…]. `grid` is [batch, results…, dimensions]; its last dimension holds the
// coordinates of a position, the innermost dimension first.
template <class T, class G>
void sample(const Sampler& sampler, const Shape& image, int64_t results, const T* x, const G* grid, T* y) {
  const int dimensions = image.rank() - 2;
  const int64_t channels = image[1], pixels = image.elements(2, image.rank());
  const Shape strides = strides_of(image);
  parallel(image[0] * results, 64, [&](int64_t begin, int64_t end) {
    Pace pace;
    std::vector<std::pair<int64_t, double>> points;  // offset and weight for each combination of taps
    for (int64_t i = begin; i < end; ++i) {
      points.assign(1, {0, 1.0});
      for (int d = 0; d < dimensions; ++d) {
        const Taps t = taps_of(sampler, static_cast<double>(grid[i * dimensions + dimensions - 1 - d]), image[2 + d]);
        std::vector<std::pair<int64_t, double>> finer;
        for (const auto& [offset, weight] : points)
          for (int k = 0; k < t.count; ++k)
            if (t.index[k] >= 0) finer.emplace_back(offset + t.index[k] * strides[2 + d], weight * t.weight[k]);
        points.swap(finer);
      }
      const int64_t batch = i / results, result = i % results;
      pace.spend(static_cast<int64_t>(points.size()) * (8 + channels));
      for (int64_t c = 0; c < channels; ++c) {
        const T* plane = x + (batch * channels + c) * pixels;
        double sum = 0;
        for (const auto& [offset, weight] : points)
          sum += weight * static_cast<double>(static_cast<compute_t<T>>(plane[offset]));
        y[(batch * channels + c) * results + result] = from_sum<T>(sum);
      }
    }
  });
}

// The four pixels around each of up to kChunk results, the same for all channels. For a pixel outside the image that
// counts as zero, the index and the mask that its value is ANDed with are 0.
constexpr int64_t kChunk = 128;
struct Neighbors {
  int32_t index[4][kChunk];
  uint32_t kept[4][kChunk];
  float weight[4][kChunk];
};
CLONED void add_neighbors(const float* plane, const int32_t* index, const uint32_t* kept, const float* weight, float* y,
                          int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] += __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, plane[index[i]]) & kept[i]) * weight[i];
}

// Samples two-dimensional images with a linear filter.
void sample_floats(const Sampler& sampler, const Shape& image, int64_t results, const float* x, const float* grid,
                   float* y) {
  const int64_t channels = image[1], height = image[2], width = image[3], chunks = (results + kChunk - 1) / kChunk;
  parallel(image[0] * chunks, 1 + kCheapGrain / (4 * kChunk * (1 + channels)), [&](int64_t begin, int64_t end) {
    Neighbors all;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t batch = task / chunks, first = task % chunks * kChunk, n = std::min(kChunk, results - first);
      for (int64_t i = 0; i < n; ++i) {
        const float* at = grid + (batch * results + first + i) * 2;
        const Taps across = taps_of(sampler, static_cast<double>(at[0]), width),
                   down = taps_of(sampler, static_cast<double>(at[1]), height);
        for (int k = 0; k < 4; ++k) {
          const int64_t row = down.index[k / 2], column = across.index[k % 2];
          const bool inside = row >= 0 && column >= 0;
          all.index[k][i] = inside ? static_cast<int32_t>(row * width + column) : 0;
          all.kept[k][i] = inside ? UINT32_MAX : 0;
          all.weight[k][i] = static_cast<float>(down.weight[k / 2] * across.weight[k % 2]);
        }
      }
      for (int64_t c = batch * channels; c < (batch + 1) * channels; ++c) {
        const float* plane = x + c * height * width;
        float* sums = y + c * results + first;
        std::fill_n(sums, n, 0.0f);
        for (int k = 0; k < 4; ++k) clone_of<add_neighbors>(plane, all.index[k], all.kept[k], all.weight[k], sums, n);
      }
    }
  });
}

Verdict supports_sample(const Node& node) {
  if (Verdict v = attribute_in(node, "mode", "linear", {"linear", "bilinear", "nearest", "cubic", "bicubic"}); !v)
    return v;
  if (Verdict v = attribute_in(node, "padding_mode", "zeros", {"zeros", "border", "reflection"}); !v) return v;
  return accepts(node, 2, {set_of(NumbersAndBool{}), kFloatTypes});
}

std::unique_ptr<Kernel> create_sample(const Node& node) {
  const std::string mode = node.attr("mode", "linear"), padding = node.attr("padding_mode", "zeros");
  const Sampler sampler{mode == "nearest"                      ? Filter::kNearest
                        : mode == "cubic" || mode == "bicubic" ? Filter::kCubic
                                                               : Filter::kLinear,
                        padding == "border"       ? Padding::kBorder
                        : padding == "reflection" ? Padding::kReflection
                                                  : Padding::kZeros,
                        node.attr("align_corners", int64_t{0}) != 0};
  return make_kernel([sampler](const PlanContext& context, Tensors inputs) -> Plan {
    const Shape image = inputs[0].shape, grid = inputs[1].shape;
    if (image.rank() < 3 || grid.rank() != image.rank() || grid[0] != image[0] ||
        grid[grid.rank() - 1] != image.rank() - 2)
      return fail("a grid of shape " + to_string(grid) + " does not fit an image of shape " + to_string(image));
    Shape to{image[0], image[1]};
    for (int d = 1; d + 1 < grid.rank(); ++d) to.push_back(grid[d]);
    if (image.elements(2, image.rank()) == 0 && to.elements() > 0)
      return fail("an image of shape " + to_string(image) + " has no pixels");
    if (taps_per_sample(sampler.filter, image.rank() - 2) > kMaxTaps)
      return fail("a sample of an image of shape " + to_string(image) + " has more than " + std::to_string(kMaxTaps) +
                  " taps, which is not supported");
    const int64_t results = to.elements(2, to.rank());
    if (sampler.filter == Filter::kLinear && image.rank() == 4 && inputs[0].dtype == BP_DTYPE_FLOAT &&
        inputs[1].dtype == BP_DTYPE_FLOAT && image.elements(2, 4) <= INT32_MAX && to.elements() > 0 &&
        !context.reference)
      return make_plan({to}, [=](Tensors in, Tensors out) {
        sample_floats(sampler, image, results, in[0].as<float>(), in[1].as<float>(), out[0].as<float>());
      });
    return make_plan({to}, [=](Tensors in, Tensors out) {
      dispatch<NumbersAndBool>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        dispatch<Floats>(in[1].dtype, [&](auto grid_tag) {
          using G = typename decltype(grid_tag)::type;
          sample(sampler, image, results, in[0].as<T>(), in[1].as<G>(), out[0].as<T>());
        });
      });
    });
  });
}

// ---- AffineGrid ----------------------------------------------------------------------------------------------------

Verdict supports_affine(const Node& node) {
  return accepts(node, 2, {kFloatTypes, just(BP_DTYPE_INT64)});
}

std::unique_ptr<Kernel> create_affine(const Node& node) {
  return make_kernel([align = node.attr("align_corners", int64_t{0}) != 0](Tensors inputs) -> Plan {
    if (!known(inputs[1])) return deferred();
    const std::vector<int64_t> size = integers(inputs[1]);
    const auto dimensions = static_cast<int64_t>(size.size()) - 2;
    if ((dimensions != 2 && dimensions != 3) || !(inputs[0].shape == Shape{size[0], dimensions, dimensions + 1}))
      return fail("theta of shape " + to_string(inputs[0].shape) + " does not fit a size of " +
                  std::to_string(size.size()) + " extents; with 4, it must be [size[0],2,3], with 5 [size[0],3,4]");
    Shape to{size[0]};
    for (size_t d = 2; d < size.size(); ++d) to.push_back(size[d]);
    to.push_back(dimensions);
    return make_plan({to}, [=](Tensors in, Tensors out) {
      const int64_t results = to.elements(1, to.rank() - 1), n = dimensions;
      dispatch<Floats>(in[0].dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        parallel(to[0] * results, kCheapGrain / 8, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            double position[3];  // innermost dimension first
            int64_t rest = i % results;
            for (int64_t k = 0; k < n; ++k) {
              const int64_t extent = to[static_cast<int>(n - k)], index = rest % extent;
              rest /= extent;
              const auto e = static_cast<double>(extent), x = static_cast<double>(index);
              position[k] = align ? (extent > 1 ? 2 * x / (e - 1) - 1 : 0) : (2 * x + 1) / e - 1;
            }
            const T* theta = in[0].as<T>() + i / results * n * (n + 1);
            for (int64_t r = 0; r < n; ++r) {
              double sum = static_cast<double>(theta[r * (n + 1) + n]);
              for (int64_t k = 0; k < n; ++k) sum += static_cast<double>(theta[r * (n + 1) + k]) * position[k];
              out[0].as<T>()[i * n + r] = static_cast<T>(static_cast<compute_t<T>>(sum));
            }
          }
        });
      });
    });
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> grid_rows() {
  static constexpr Row kRows[] = {
      Row{"", "GridSample", 16, supports_sample, create_sample}.in_fp32(),
      {"", "AffineGrid", 20, supports_affine, create_affine},
  };
  return kRows;
}

}  // namespace backplane::cpu
