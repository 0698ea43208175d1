// SPDX-License-Identifier: Apache-2.0
// LRN: y = x / (bias + alpha / size · sum of x² over the `size` nearest channels)^beta.
#include <algorithm>
#include <cmath>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu {

namespace {

struct Lrn {
  float alpha, beta, bias;
  int64_t size;

  // The number of channels before and after a channel in its window, limited to all channels because `size` may be
  // huge.
  int64_t before(int64_t channels) const { return std::min((size - 1) / 2, channels); }
  int64_t after(int64_t channels) const { return std::min(size / 2, channels); }
};

// Number of positions processed together, small enough for the sums to stay in the cache.
constexpr int64_t kStrip = 512;

// x[i] = x[i]^-beta, for any beta. Not inlined, because calls of std::pow would keep the caller's loops scalar.
template <class C>
[[gnu::noinline]] void raise_to_power(const Lrn& lrn, C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::pow(x[i], -static_cast<C>(lrn.beta));
}

// Replaces the sum of squares of each window by the factor (bias + alpha / size · sum)^-beta for its middle channel.
template <class C>
[[gnu::always_inline]] inline void to_factors(const Lrn& lrn, C* sums, int64_t n) {
  const C scale = static_cast<C>(lrn.alpha) / static_cast<C>(lrn.size), bias = static_cast<C>(lrn.bias);
  if (lrn.beta == 0.75f) {  // as in almost all networks: square roots are faster than a power
    for (int64_t i = 0; i < n; ++i) {
      const C root = std::sqrt(bias + scale * sums[i]);
      sums[i] = 1 / (root * std::sqrt(root));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i] = bias + scale * sums[i];
    raise_to_power(lrn, sums, n);
  }
}

template <class T>
CLONED void run_strip(const Lrn& lrn, const T* __restrict x, T* __restrict y, int64_t channels, int64_t inner,
                      int64_t count) {
  using C = compute_t<T>;
  C sums[kStrip];
  Pace pace;
  for (int64_t c = 0; c < channels; ++c) {
    int64_t first = std::max<int64_t>(0, c - lrn.before(channels));
    int64_t last = std::min(channels - 1, c + lrn.after(channels));
    std::fill_n(sums, count, C{0});
    pace.spend(count * (last - first + 8));
    for (int64_t k = first; k <= last; ++k) {
      for (int64_t i = 0; i < count; ++i)
        sums[i] += static_cast<C>(x[k * inner + i]) * static_cast<C>(x[k * inner + i]);
    }
    to_factors(lrn, sums, count);
    for (int64_t i = 0; i < count; ++i) y[c * inner + i] = static_cast<T>(static_cast<C>(x[c * inner + i]) * sums[i]);
  }
}

// The number of positions of a blocked tensor that are normalized together. A load of a window straddles two stored
// vectors of squares, so it cannot be forwarded from the stores and waits until they have left the store buffer. With
// this many positions in between, they have.
constexpr int64_t kPositions = 16;

// sums[c] = squares[c] + … + squares[c + others]. Called with a constant `others`, so that the inner loop is unrolled.
[[gnu::always_inline]] inline void sum_windows(const float* __restrict squares, float* __restrict sums,
                                               int64_t channels, int64_t others) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = squares[c];
    for (int64_t k = 1; k <= others; ++k) sum += squares[c + k];
    sums[c] = sum;
  }
}

// Like sum_windows, but for any number of `others`, with the sums in memory.
[[gnu::always_inline]] inline void add_windows(const float* __restrict squares, float* __restrict sums,
                                               int64_t channels, int64_t others) {
  for (int64_t c = 0; c < channels; ++c) sums[c] = squares[c];
  for (int64_t k = 1; k <= others; ++k) {
    for (int64_t c = 0; c < channels; ++c) sums[c] += squares[c + k];
  }
}

// Normalizes `count` adjacent positions of a blocked tensor whose blocks are `step` elements apart. `squares` and
// `sums` have room for channels + before + after floats for each position. In `squares`, zeros surround the squares of
// a position's channels, so that windows need no bounds checks.
template <int64_t kLanes>
CLONED void run_positions(const Lrn& lrn, const float* __restrict x, float* __restrict y, int64_t blocks, int64_t step,
                          int64_t count, float* __restrict squares, float* __restrict sums) {
  const int64_t channels = blocks * kLanes;
  const int64_t before = lrn.before(channels), others = before + lrn.after(channels), row = channels + others;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t p = 0; p < count; ++p) {
      const float* from = x + b * step + p * kLanes;
      float* to = squares + p * row + before + b * kLanes;
      for (int64_t l = 0; l < kLanes; ++l) to[l] = from[l] * from[l];
    }
  }
  for (int64_t p = 0; p < count; ++p) {
    if (others == 4) {
      sum_windows(squares + p * row, sums + p * row, channels, 4);
    } else {
      add_windows(squares + p * row, sums + p * row, channels, others);
    }
    to_factors(lrn, sums + p * row, channels);
  }
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t p = 0; p < count; ++p) {
      const float *from = x + b * step + p * kLanes, *factors = sums + p * row + b * kLanes;
      float* to = y + b * step + p * kLanes;
      for (int64_t l = 0; l < kLanes; ++l) to[l] = from[l] * factors[l];
    }
  }
}

Plan plan_blocked(const Lrn& lrn, const Shape& x) {
  const int64_t lanes = channel_block(), blocks = (x[1] + lanes - 1) / lanes, positions = x.elements(2, x.rank());
  Plan plan = make_plan({x}, [=, batch = x[0]](Tensors in, Tensors out) {
    parallel(batch * positions, 1 + kMathGrain / (blocks * lanes), [&](int64_t begin, int64_t end) {
      const int64_t channels = blocks * lanes, others = lrn.before(channels) + lrn.after(channels);
      const int64_t most = std::min(kPositions, end - begin);
      require_memory(2 * most * (channels + others), sizeof(float));
      std::vector<float> squares(static_cast<size_t>(most * (channels + others))), sums(squares.size());
      Pace pace;
      for (int64_t i = begin, count; i < end; i += count) {
        count = std::min({kPositions, end - i, positions - i % positions});
        pace.spend(count * channels * (others + 1));
        const int64_t at = (i / positions * blocks * positions + i % positions) * lanes;
        clone_of<run_positions<16>, run_positions<8>>(lrn, in[0].as<float>() + at, out[0].as<float>() + at, blocks,
                                                      positions * lanes, count, squares.data(), sums.data());
      }
    });
    clear_padding(out[0]);  // with a bias of 0, the padding has become 0 / 0
  });
  plan.input_formats = {Format::kBlocked};
  plan.output_format = Format::kBlocked;
  return plan;
}

Plan plan(const Lrn& lrn, Tensors inputs) {
  const Shape& x = inputs[0].shape;
  if (x.rank() < 2) return fail("the input " + to_string(x) + " has no channel dimension");
  if (inputs[0].format == Format::kBlocked) return plan_blocked(lrn, x);
  int64_t batch = x[0], channels = x[1], inner = x.elements(2, x.rank());
  int64_t strips = (inner + kStrip - 1) / kStrip;
  return make_plan({x}, [=](Tensors in, Tensors out) {
    dispatch<Floats>(in[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      parallel(batch * strips, 1, [&](int64_t begin, int64_t end) {
        for (int64_t s = begin; s < end; ++s) {
          int64_t first = s % strips * kStrip;
          int64_t at = s / strips * channels * inner + first;
          clone_of<run_strip<T>>(lrn, in[0].as<T>() + at, out[0].as<T>() + at, channels, inner,
                                 std::min(kStrip, inner - first));
        }
      });
    });
  });
}

Verdict supports(const Node& node) {
  if (int64_t size = node.attr("size", int64_t{0}); size < 1)
    return no(BP_REASON_ATTRIBUTE, "size is " + std::to_string(size) + "; it must be positive");
  return accepts(node, 1, {kFloatTypes});
}

std::unique_ptr<Kernel> create(const Node& node) {
  Lrn lrn{node.attr("alpha", 0.0001f), node.attr("beta", 0.75f), node.attr("bias", 1.0f),
          node.attr("size", int64_t{1})};
  return make_kernel([lrn](Tensors inputs) { return plan(lrn, inputs); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> lrn_rows() {
  static constexpr Row kRows[] = {
      Row{"", "LRN", 1, supports, create}.in_fp32(),
  };
  return kRows;
}

}  // namespace backplane::cpu
