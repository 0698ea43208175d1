// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_tile.h"

#include <algorithm>
#include <utility>

#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

// What a tile is for: inputs of places at 0, kStride, 2 · kStride …
template <int kLanes_, int kBlocks_, int kPlaces_, int kStride_>
struct Kind {
  static constexpr int kLanes = kLanes_, kBlocks = kBlocks_, kPlaces = kPlaces_, kStride = kStride_;
  using Lanes = typename LanesOf<kLanes>::type;
  using Sums = Lanes[kBlocks * kPlaces];
};

// One input channel of one tap at the places [kFirst, kLast): each vector of weights is loaded once for all of them,
// each input once for all blocks.
template <class K, int kFirst, int kLast>
[[gnu::always_inline]] inline void add_channel(const ConvTile& t, typename K::Sums& sums, const float* x,
                                               const float* w, const float* ahead) {
  using Lanes = typename K::Lanes;
  __builtin_prefetch(ahead);
  Lanes weights[K::kBlocks];
#pragma GCC unroll 2
  for (int b = 0; b < K::kBlocks; ++b) weights[b] = *reinterpret_cast<const Lanes*>(w + b * K::kLanes);
#pragma GCC unroll 16
  for (int p = kFirst; p < kLast; ++p) {
    const float input = x[K::kStride == 0 ? p * t.x_place : p * K::kStride * K::kLanes];
#pragma GCC unroll 2
    for (int b = 0; b < K::kBlocks; ++b) sums[b * K::kPlaces + p] += weights[b] * input;
  }
}

// One tap.
template <class K, int kFirst, int kLast>
[[gnu::always_inline]] inline void add_tap(const ConvTile& t, typename K::Sums& sums, const float* x, const float* w,
                                           const float*& ahead) {
  constexpr int64_t kWeights = K::kBlocks * K::kLanes;
  if (K::kStride == 1 && t.channel_at != nullptr) {
    for (int64_t c = t.first; c < t.last; ++c, w += kWeights, ahead += t.ahead_step)
      add_channel<K, kFirst, kLast>(t, sums, x + t.channel_at[c], w, ahead);
    return;
  }
  for (int64_t c = t.first; c < t.last;) {
    const float* from = x + c / K::kLanes * t.x_block;
    const int64_t end = std::min(t.last, (c / K::kLanes + 1) * K::kLanes);
    for (int64_t l = c % K::kLanes; c < end; ++c, ++l, w += kWeights, ahead += t.ahead_step)
      add_channel<K, kFirst, kLast>(t, sums, from + l, w, ahead);
  }
}

template <class K>
[[gnu::always_inline]] inline void convolve(const ConvTile& t) {
  using Lanes = typename K::Lanes;
  constexpr int kPlaces = K::kPlaces;
  typename K::Sums sums;
#pragma GCC unroll 32
  for (int i = 0; i < K::kBlocks * kPlaces; ++i) {
    const int64_t at = i / kPlaces * t.y_block + i % kPlaces * t.y_place;
    const float* from = t.begins ? t.add : t.y;
    sums[i] = from == nullptr ? Lanes{} : *reinterpret_cast<const Lanes*>(from + at);
    if (t.begins) sums[i] += *reinterpret_cast<const Lanes*>(t.rest + i / kPlaces * K::kLanes);
  }
  const float* ahead = t.ahead;
  const int64_t tap_weights = (t.last - t.first) * K::kBlocks * K::kLanes;
  for (int64_t row = t.row_first; row < t.row_last; ++row) {
    for (int64_t column = 0; column < t.columns; ++column) {
      const float* x = t.x + row * t.x_row + column * t.x_column;
      const float* w = t.weights + (row * t.columns + column) * tap_weights;
      const bool misses_first = column < t.front, misses_last = column >= t.columns - t.back;
      if (K::kStride == 0 || (!misses_first && !misses_last))
        add_tap<K, 0, kPlaces>(t, sums, x, w, ahead);
      else if (!misses_last)
        add_tap<K, 1, kPlaces>(t, sums, x, w, ahead);
      else if (!misses_first)
        add_tap<K, 0, kPlaces - 1>(t, sums, x, w, ahead);
      else
        add_tap<K, 1, kPlaces - 1>(t, sums, x, w, ahead);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < K::kBlocks * kPlaces; ++i) {
    Lanes sum = sums[i];
    if (t.bias != nullptr) sum += *reinterpret_cast<const Lanes*>(t.bias + i / kPlaces * K::kLanes);
    if (t.rectify) sum = sum < 0 ? Lanes{} : sum;
    *reinterpret_cast<Lanes*>(t.y + i / kPlaces * t.y_block + i % kPlaces * t.y_place) = sum;
  }
}

// So many sums as registers hold next to the weights and an input: 32 of 16 lanes, 16 of 8.
template <int kLanes>
inline constexpr int kMostPlaces = kLanes == 16 ? 14 : 6;

// The same tile for three instruction sets.
template <int kBlocks, int kPlaces, int kStride>
FOR_AVX512 void convolve_16(const ConvTile& t) {
  convolve<Kind<16, kBlocks, kPlaces, kStride>>(t);
}
template <int kBlocks, int kPlaces, int kStride>
FOR_AVX2 void convolve_8(const ConvTile& t) {
  convolve<Kind<8, kBlocks, kPlaces, kStride>>(t);
}
template <int kBlocks, int kPlaces, int kStride>
void convolve_baseline(const ConvTile& t) {
  convolve<Kind<8, kBlocks, kPlaces, kStride>>(t);
}

template <int kBlocks, int kStride, int... kLess>
ConvTileKernel kernel_of(int64_t lanes, bool avx2, int64_t places, std::integer_sequence<int, kLess...>) {
  constexpr int kMost8 = kMostPlaces<8>;
  static constexpr ConvTileKernel k16[] = {convolve_16<kBlocks, kLess + 1, kStride>...};
  static constexpr ConvTileKernel k8[] = {convolve_8<kBlocks, std::min(kLess + 1, kMost8), kStride>...};
  static constexpr ConvTileKernel kBaseline[] = {convolve_baseline<kBlocks, std::min(kLess + 1, kMost8), kStride>...};
  return (lanes == 16 ? k16 : avx2 ? k8 : kBaseline)[places - 1];
}

}  // namespace

int64_t most_tile_places(int64_t lanes) {
  return lanes == 16 ? kMostPlaces<16> : kMostPlaces<8>;
}

ConvTileKernel conv_tile_kernel(int64_t lanes, int64_t blocks, int64_t places, int64_t stride) {
  constexpr std::make_integer_sequence<int, kMostPlaces<16>> kLess{};
  const bool avx2 = processor().has(Instructions::kAvx2);
  auto of = [&]<int kBlocks>(std::integral_constant<int, kBlocks>) {
    return stride == 0   ? kernel_of<kBlocks, 0>(lanes, avx2, places, kLess)
           : stride == 1 ? kernel_of<kBlocks, 1>(lanes, avx2, places, kLess)
                         : kernel_of<kBlocks, 2>(lanes, avx2, places, kLess);
  };
  return blocks == 1 ? of(std::integral_constant<int, 1>{}) : of(std::integral_constant<int, 2>{});
}

}  // namespace backplane::cpu
