// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_pool.h"

#include <algorithm>
#include <vector>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/common/window.h"
#include "kernels/simd/clones.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

// The positions of a window that are inside the image: how many along each dimension, and the distance from one to the
// next, in elements of a channels-last tensor.
struct Taps {
  int64_t counts[kSpatial], steps[kSpatial];
};

// Raises each of `n` channels of y to the largest value at the taps, one vector of channels at a time.
template <class T, int kLanes>
CLONED void max_in_place(const Taps& taps, const uint8_t* from_x, uint8_t* to_y, int64_t n) {
  const T* x = reinterpret_cast<const T*>(from_x);
  T* y = reinterpret_cast<T*>(to_y);
  typedef T Lanes __attribute__((vector_size(kLanes), aligned(1), may_alias));
  int64_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    Lanes most = *reinterpret_cast<const Lanes*>(y + c);
    for (int64_t z = 0; z < taps.counts[0]; ++z) {
      for (int64_t r = 0; r < taps.counts[1]; ++r) {
        const T* from = x + z * taps.steps[0] + r * taps.steps[1] + c;
        for (int64_t k = 0; k < taps.counts[2]; ++k, from += taps.steps[2]) {
          const Lanes value = *reinterpret_cast<const Lanes*>(from);
          most = value > most ? value : most;
        }
      }
    }
    *reinterpret_cast<Lanes*>(y + c) = most;
  }
  for (int64_t t = 0; c < n && t < taps.counts[0] * taps.counts[1] * taps.counts[2]; ++t) {
    const T* from = x + t / (taps.counts[1] * taps.counts[2]) * taps.steps[0] +
                    t / taps.counts[2] % taps.counts[1] * taps.steps[1] + t % taps.counts[2] * taps.steps[2];
    for (int64_t i = c; i < n; ++i) y[i] = from[i] > y[i] ? from[i] : y[i];
  }
}
constexpr auto& kMaxInPlaceUnsigned =
    clone_of<max_in_place<uint8_t, 64>, max_in_place<uint8_t, 32>, max_in_place<uint8_t, 16>>;
constexpr auto& kMaxInPlaceSigned =
    clone_of<max_in_place<int8_t, 64>, max_in_place<int8_t, 32>, max_in_place<int8_t, 16>>;
CLONED void add_unsigned(int32_t* sums, const uint8_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}
CLONED void add_signed(int32_t* sums, const uint8_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<int8_t>(x[i]);
}
// Number of quantized values that are added up in int32: their sum, and its distance from as many zero points, fit.
constexpr int64_t kSummed = int64_t{1} << 23;

// Adds to each total the distance of its sum from `zeros`, the zero point times the number of values summed. Clears the
// sums.
CLONED void add_sums(int32_t* sums, float* totals, int64_t n, int32_t zeros) {
  for (int64_t i = 0; i < n; ++i) {
    totals[i] += static_cast<float>(sums[i] - zeros);
    sums[i] = 0;
  }
}
CLONED void encode_totals(const float* totals, uint8_t* y, int64_t n, float factor, float zero, float low, float high) {
  for (int64_t i = 0; i < n; ++i) {
    float value = totals[i] * factor;
    value = value > low ? value : low;
    value = value < high ? value : high;
    y[i] = static_cast<uint8_t>(static_cast<int32_t>(nearest(value) + zero));
  }
}

// Returns the input positions that output position `o` reads; sets `first` to the offset of the first one.
Taps taps_of(const Window& w, int64_t o, int64_t channels, int64_t* first) {
  const Spatial position{o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
  Taps taps{};
  *first = 0;
  int64_t step = channels;
  for (size_t d = kSpatial; d-- > 0;) {
    const int64_t begin = position[d] * w.stride[d] - w.begin[d], dilation = w.dilation[d];
    const int64_t skipped = begin < 0 ? (-begin + dilation - 1) / dilation : 0;
    const int64_t end = begin >= w.in[d] ? 0 : std::min(w.kernel[d], (w.in[d] - 1 - begin) / dilation + 1);
    taps.counts[d] = std::max<int64_t>(0, end - skipped);
    taps.steps[d] = dilation * step;
    *first += (begin + skipped * dilation) * step;
    step *= w.in[d];
  }
  return taps;
}

// Calls f(position) for each input position that output position `o` reads. Returns how many positions of the window
// are in the image or its padding; ceil_mode may place others beyond that.
template <class F>
double each_tap(const Window& w, int64_t o, const F& f) {
  int64_t first;
  const Taps taps = taps_of(w, o, 1, &first);
  for (int64_t z = 0; z < taps.counts[0]; ++z)
    for (int64_t y = 0; y < taps.counts[1]; ++y)
      for (int64_t x = 0; x < taps.counts[2]; ++x) f(first + z * taps.steps[0] + y * taps.steps[1] + x * taps.steps[2]);
  const Spatial position{o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
  double padded = 1;
  for (size_t d = 0; d < kSpatial; ++d) {
    const int64_t room = w.in[d] + w.end[d] + w.begin[d] - position[d] * w.stride[d];
    padded *= static_cast<double>(std::clamp<int64_t>((room + w.dilation[d] - 1) / w.dilation[d], 0, w.kernel[d]));
  }
  return padded;
}

// A pool's window and the result's extents. The window of a global pool is the whole image.
struct Pooled {
  Window window;
  Shape shape;
};
std::optional<Pooled> pooled(const std::optional<WindowAttributes>& attributes, const Shape& x, std::string* error) {
  if (x.rank() < 3 || x.rank() > 5) {
    *error = "the input " + to_string(x) + " does not have one to three spatial dimensions";
    return std::nullopt;
  }
  if (attributes) {
    const std::optional<Window> w = make_window(*attributes, x, attributes->kernel, error);
    if (!w) return std::nullopt;
    return Pooled{*w, w->output_shape(x[0], x[1])};
  }
  Pooled p;
  p.window.dims = x.rank() - 2;
  for (int d = 2; d < x.rank(); ++d) {
    const auto to = static_cast<size_t>(kSpatial - x.rank() + d);
    p.window.in[to] = p.window.kernel[to] = x[d];
  }
  p.shape = p.window.output_shape(x[0], x[1]);
  return p;
}

std::optional<WindowAttributes> attributes_of(const Node& pool) {
  if (pool.op_type().starts_with("Global")) return std::nullopt;
  return WindowAttributes(pool);
}

// Plans a step that calls f(input image, output position, y) for each output position, where y points to the channels
// of the result there.
template <class F>
Plan plan_positions(const Pooled& p, const F& f) {
  const int64_t positions = p.window.out_size(), channels = p.shape[1], image = channels * p.window.in_size();
  const double work = 1 + static_cast<double>(channels) * p.window.reads();
  Plan plan = make_plan({p.shape}, [=, batch = p.shape[0]](Tensors in, Tensors out) {
    parallel(batch * positions, 1 + static_cast<int64_t>(kCheapGrain / work), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at)
        f(in[0].as<uint8_t>() + at / positions * image, at % positions, out[0].as<uint8_t>() + at * channels);
    });
  });
  plan.input_formats = {Format::kChannelsLast};
  plan.output_format = Format::kChannelsLast;
  return plan;
}

}  // namespace

std::unique_ptr<Kernel> make_q8_max_pool(const Node& pool, Quantization quantization) {
  return make_kernel([=, attributes = attributes_of(pool)](Tensors inputs) -> Plan {
    std::string error;
    const std::optional<Pooled> p = pooled(attributes, inputs[0].shape, &error);
    if (!p) return fail(error);
    return plan_positions(
        *p, [w = p->window, channels = p->shape[1], quantization](const uint8_t* x, int64_t position, uint8_t* y) {
          std::fill_n(y, channels, static_cast<uint8_t>(quantization.low()));
          int64_t first;
          const Taps taps = taps_of(w, position, channels, &first);
          (quantization.is_signed() ? kMaxInPlaceSigned : kMaxInPlaceUnsigned)(taps, x + first, y, channels);
        });
  });
}

std::unique_ptr<Kernel> make_q8_average_pool(const Node& pool, Quantization source, Quantization result) {
  const bool counts_padding = pool.attr("count_include_pad", int64_t{0}) != 0;
  return make_kernel([=, attributes = attributes_of(pool)](Tensors inputs) -> Plan {
    std::string error;
    const std::optional<Pooled> p = pooled(attributes, inputs[0].shape, &error);
    if (!p) return fail(error);
    return plan_positions(*p, [=, w = p->window, channels = p->shape[1]](const uint8_t* x, int64_t position,
                                                                         uint8_t* y) {
      std::vector<int32_t> sums(static_cast<size_t>(channels));
      std::vector<float> totals(static_cast<size_t>(channels));
      int64_t inside = 0, summed = 0;
      const auto add_to_totals = [&] {
        clone_of<add_sums>(sums.data(), totals.data(), channels, static_cast<int32_t>(summed * source.zero));
        summed = 0;
      };
      Pace pace;
      const double padded = each_tap(w, position, [&](int64_t at) {
        (source.is_signed() ? clone_of<add_signed> : clone_of<add_unsigned>)(sums.data(), x + at * channels, channels);
        ++inside;
        if (++summed == kSummed) add_to_totals();
        pace.spend(channels);
      });
      add_to_totals();
      const auto count = static_cast<float>(std::max(1.0, counts_padding ? padded : static_cast<double>(inside)));
      const auto zero = static_cast<float>(result.zero);
      clone_of<encode_totals>(totals.data(), y, channels, source.scale / count / result.scale, zero,
                              static_cast<float>(result.low()) - zero, static_cast<float>(result.high()) - zero);
    });
  });
}

}  // namespace backplane::cpu
