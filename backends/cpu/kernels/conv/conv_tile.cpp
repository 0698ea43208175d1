// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_tile.h"

#include <algorithm>
#include <utility>

#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

// Clang accepts AVX2 assembly only in functions that declare the instruction set, so it compiles the plain loops
// instead.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AVX2_ASSEMBLY
#endif

namespace backplane::cpu {

namespace {

constexpr int64_t kLineFloats = 16;  // floats in a cache line

// The shape of a tile. Neighboring positions of the tile read input positions that are kStride apart, or x_position
// floats apart if kStride is 0. kAvx2 selects the AVX2 assembly, for 16 registers of 8 lanes.
template <int kLanes_, int kBlocks_, int kPositions_, int kStride_, bool kAvx2_ = false>
struct Kind {
  static constexpr int kLanes = kLanes_, kBlocks = kBlocks_, kPositions = kPositions_, kStride = kStride_;
  static constexpr bool kAvx2 = kAvx2_;
  using Lanes = typename LanesOf<kLanes>::type;
  using Sums = Lanes[kBlocks * kPositions];
};

// How a tile reads its input channels: whole blocks, parts of blocks, or by a list of offsets.
enum class Channels { kWhole, kSome, kListed };
// The taps of a tile: any number, or exactly one that is inside the input at every position.
enum class Taps { kAny, kOne };

#ifdef AVX2_ASSEMBLY
// The two or three instructions for one position, in an order that needs only one input register. GCC 12 would move the
// loads up until registers run out, and then spend a quarter of all instructions on copying sums.
template <class K>
[[gnu::always_inline]] inline void add_position(const float* x, const typename K::Lanes* weights,
                                                typename K::Lanes& sum, typename K::Lanes& second) {
  typename K::Lanes input;
  if constexpr (K::kBlocks == 1) {
    asm volatile("vbroadcastss %2, %1\n\tvfmadd231ps %1, %3, %0" : "+x"(sum), "=&x"(input) : "m"(*x), "x"(weights[0]));
  } else {
    asm volatile("vbroadcastss %3, %2\n\tvfmadd231ps %2, %4, %0\n\tvfmadd231ps %2, %5, %1"
                 : "+x"(sum), "+x"(second), "=&x"(input)
                 : "m"(*x), "x"(weights[0]), "x"(weights[1]));
  }
}
#endif

// Where a tile with kStride 0 reads an input channel. Each address is one that a load computes itself from two
// registers, so that the loop has few other instructions.
template <class K>
struct Rows {
  static constexpr int64_t kEach = 3;  // positions per register
  static constexpr int64_t kRegisters = (K::kPositions + kEach - 1) / kEach;
  const float* first[kRegisters];
  int64_t step;  // floats from one position to the next

  Rows(const float* x, int64_t x_position) : step(x_position) {
    for (int64_t i = 0; i < kRegisters; ++i) first[i] = x + i * kEach * step;
  }
  [[gnu::always_inline]] void advance(int64_t channels) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRegisters; ++i) {
      const float* moved = first[i] + channels;
      asm volatile("" : "+r"(moved));  // otherwise GCC computes each address from the first one
      first[i] = moved;
    }
  }
  const float* operator[](int position) const {
    return first[position / kEach] + position % kEach * step;
  }
};

// The same for a tile with another stride: positions are constant distances apart.
template <class K>
struct Strided {
  const float* x;
  const float* operator[](int position) const { return x + position * K::kStride * K::kLanes; }
};

// Adds one input channel of one tap at the positions [kFirst, kLast): x[p] + `channel` is the input at position p.
// Loads each vector of weights once for all positions, and each input once for all blocks.
template <class K, int kFirst, int kLast>
[[gnu::always_inline]] inline void add_channel(typename K::Sums& sums, const auto& x, int64_t channel, const float* w) {
  using Lanes = typename K::Lanes;
  Lanes weights[K::kBlocks];
#pragma GCC unroll 2
  for (int b = 0; b < K::kBlocks; ++b) weights[b] = *reinterpret_cast<const Lanes*>(w + b * K::kLanes);
#pragma GCC unroll 16
  for (int p = kFirst; p < kLast; ++p) {
    const float* input = x[p] + channel;
#ifdef AVX2_ASSEMBLY
    if constexpr (K::kAvx2) {
      add_position<K>(input, weights, sums[p], sums[(K::kBlocks - 1) * K::kPositions + p]);
      continue;
    }
#endif
#pragma GCC unroll 2
    for (int b = 0; b < K::kBlocks; ++b) sums[b * K::kPositions + p] += weights[b] * *input;
  }
}

// Adds one tap of `count` input channels of a block. For a whole block, the loop is unrolled and one loop prefetches
// for all channels, because with short vectors the number of instructions limits the speed.
template <class K, Channels kChannels, int kFirst, int kLast>
[[gnu::always_inline]] inline void add_tap(const ConvTile& t, typename K::Sums& sums, const float* x,
                                           const int32_t* channel_at, int64_t count, const float* w,
                                           const float*& ahead) {
  constexpr int64_t kWeights = K::kBlocks * K::kLanes;
  if constexpr (kChannels == Channels::kWhole && kFirst == 0 && kLast == K::kPositions) {
    for (int64_t i = 0; i < K::kLanes * t.ahead_step; i += kLineFloats) __builtin_prefetch(ahead + i);
    ahead += K::kLanes * t.ahead_step;
#pragma GCC unroll 8
    for (int64_t l = 0; l < K::kLanes; ++l) add_channel<K, kFirst, kLast>(sums, Strided<K>{x}, l, w + l * kWeights);
  } else {
    for (int64_t l = 0; l < count; ++l, w += kWeights, ahead += t.ahead_step) {
      __builtin_prefetch(ahead);
      const int64_t at = kChannels == Channels::kListed ? channel_at[l] : l;
      add_channel<K, kFirst, kLast>(sums, Strided<K>{x}, at, w);
    }
  }
}

// Adds all taps of `count` input channels of one block; x and w point to their first input and weight.
template <class K, Channels kChannels>
[[gnu::always_inline]] inline void add_taps(const ConvTile& t, typename K::Sums& sums, const float* x,
                                            const int32_t* channel_at, int64_t count, const float* w,
                                            const float*& ahead) {
  constexpr int kPositions = K::kPositions;
  const int64_t step = count * K::kBlocks * K::kLanes;
  // In the columns of taps from `low` to `high`, the first and last positions are both inside the input, or both
  // outside.
  const int64_t low = std::min(t.front, t.columns - t.back), high = std::max(t.front, t.columns - t.back);
  for (int64_t row = t.row_first; row < t.row_last; ++row) {
    const float *from = x + row * t.x_row, *weights = w + row * t.columns * step;
    int64_t column = 0;
    for (; column < low; ++column)
      add_tap<K, kChannels, 1, kPositions>(t, sums, from + column * t.x_column, channel_at, count,
                                           weights + column * step, ahead);
    if (high == t.front) {
      for (; column < high; ++column)
        add_tap<K, kChannels, 1, kPositions - 1>(t, sums, from + column * t.x_column, channel_at, count,
                                                 weights + column * step, ahead);
    }
    for (; column < high; ++column)
      add_tap<K, kChannels, 0, kPositions>(t, sums, from + column * t.x_column, channel_at, count,
                                           weights + column * step, ahead);
    for (; column < t.columns; ++column)
      add_tap<K, kChannels, 0, kPositions - 1>(t, sums, from + column * t.x_column, channel_at, count,
                                               weights + column * step, ahead);
  }
}

// Adds the only tap of a tile with kStride 0, whose input channels follow each other.
template <class K>
[[gnu::always_inline]] inline void add_rows(const ConvTile& t, typename K::Sums& sums) {
  constexpr int64_t kUnrolled = 4, kWeights = K::kBlocks * K::kLanes;
  Rows<K> x(t.x + t.first, t.x_position);
  x.advance(0);
  const float *ahead = t.ahead, *w = t.weights;
  int64_t c = t.first;
  for (; c + kUnrolled <= t.last; c += kUnrolled, w += kUnrolled * kWeights, x.advance(kUnrolled)) {
    for (int64_t i = 0; i < kUnrolled * t.ahead_step; i += kLineFloats) __builtin_prefetch(ahead + i);
    ahead += kUnrolled * t.ahead_step;
#pragma GCC unroll 4
    for (int64_t l = 0; l < kUnrolled; ++l) {
      asm volatile("" : "+r"(x.step));  // otherwise GCC keeps the offsets of all channels in registers
      add_channel<K, 0, K::kPositions>(sums, x, l, w + l * kWeights);
    }
  }
  for (; c < t.last; ++c, w += kWeights, x.advance(1)) add_channel<K, 0, K::kPositions>(sums, x, 0, w);
}

// The outer loop is over blocks of input channels, the inner one over taps, so that neighboring taps soon read the same
// input again. In the opposite order, the blocks of a large image would evict each other from the first-level cache,
// because they can be a multiple of a page apart. With one tap there is no loop over taps: its setup would cost a tenth
// of the multiply-adds of a block.
template <class K, Channels kChannels, Taps kTaps>
[[gnu::always_inline]] inline void add_blocks(const ConvTile& t, typename K::Sums& sums) {
  if constexpr (K::kStride == 0) return add_rows<K>(t, sums);
  const float *ahead = t.ahead, *w = t.weights;
  if constexpr (kTaps == Taps::kOne && kChannels == Channels::kListed) {
    add_tap<K, kChannels, 0, K::kPositions>(t, sums, t.x, t.channel_at + t.first, t.last - t.first, w, ahead);
    return;
  }
  for (int64_t c = t.first, count = 0; c < t.last; c += count) {
    count = kChannels == Channels::kWhole ? K::kLanes : std::min(t.last - c, K::kLanes - c % K::kLanes);
    const bool listed = kChannels == Channels::kListed;
    const float* x = listed ? t.x : t.x + c / K::kLanes * t.x_block + c % K::kLanes;
    if constexpr (kTaps == Taps::kOne)
      add_tap<K, kChannels, 0, K::kPositions>(t, sums, x, nullptr, count, w, ahead);
    else
      add_taps<K, kChannels>(t, sums, x, listed ? t.channel_at + c : nullptr, count, w, ahead);
    w += (kTaps == Taps::kOne ? 1 : t.taps) * count * K::kBlocks * K::kLanes;
  }
}

template <class K, Channels kChannels, Taps kTaps>
[[gnu::always_inline]] inline void convolve(const ConvTile& t) {
  using Lanes = typename K::Lanes;
  constexpr int kPositions = K::kPositions;
  typename K::Sums sums;
#pragma GCC unroll 32
  for (int i = 0; i < K::kBlocks * kPositions; ++i) {
    const int64_t at = i / kPositions * t.y_block + i % kPositions * t.y_position;
    const float* from = t.begins ? t.add : t.y;
    sums[i] = from == nullptr ? Lanes{} : *reinterpret_cast<const Lanes*>(from + at);
    if (t.begins) sums[i] += *reinterpret_cast<const Lanes*>(t.compensation + i / kPositions * K::kLanes);
  }
  add_blocks<K, kChannels, kTaps>(t, sums);
#pragma GCC unroll 32
  for (int i = 0; i < K::kBlocks * kPositions; ++i) {
    Lanes sum = sums[i];
    if (t.bias != nullptr) sum += *reinterpret_cast<const Lanes*>(t.bias + i / kPositions * K::kLanes);
    if (t.rectify) sum = sum < 0 ? Lanes{} : sum;
    *reinterpret_cast<Lanes*>(t.y + i / kPositions * t.y_block + i % kPositions * t.y_position) = sum;
  }
}

// The most positions whose sums, for 2 blocks, fit in registers together with the weights and an input. There are 32
// registers of 16 lanes, or 16 of 8 lanes.
template <int kLanes>
inline constexpr int kMaxPositions = kLanes == 16 ? 14 : 6;

// Compute a tile with AVX-512, AVX2 or baseline instructions.
template <int kBlocks, int kPositions, int kStride, Channels kChannels, Taps kTaps>
FOR_AVX512 void convolve_16(const ConvTile& t) {
  convolve<Kind<16, kBlocks, kPositions, kStride>, kChannels, kTaps>(t);
}
template <int kBlocks, int kPositions, int kStride, Channels kChannels, Taps kTaps>
FOR_AVX2 void convolve_8(const ConvTile& t) {
  convolve<Kind<8, kBlocks, kPositions, kStride, true>, kChannels, kTaps>(t);
}
template <int kBlocks, int kPositions, int kStride, Channels kChannels, Taps kTaps>
void convolve_baseline(const ConvTile& t) {
  convolve<Kind<8, kBlocks, kPositions, kStride>, kChannels, kTaps>(t);
}

// Whether the tile has exactly one tap, inside the input at every position. This is always so with kStride 0.
template <int kStride>
bool has_one_tap(const ConvTile& t) {
  return kStride == 0 || (t.taps == 1 && t.row_last - t.row_first == 1 && t.front == 0 && t.back == 0);
}

// There is a function for each way of reading channels and taps: in a shared one, GCC would copy sums between registers
// from loop to loop.
template <int kBlocks, int kPositions, int kStride, Taps kTaps>
void run_16(const ConvTile& t) {
  constexpr Channels kListed = kStride == 1 ? Channels::kListed : Channels::kSome;
  if (t.channel_at != nullptr) return convolve_16<kBlocks, kPositions, kStride, kListed, kTaps>(t);
  convolve_16<kBlocks, kPositions, kStride, Channels::kSome, kTaps>(t);
}
template <int kBlocks, int kPositions, int kStride, Taps kTaps>
void run_8(const ConvTile& t) {
  constexpr Channels kListed = kStride == 1 ? Channels::kListed : Channels::kSome;
  if (t.channel_at != nullptr) return convolve_8<kBlocks, kPositions, kStride, kListed, kTaps>(t);
  if (t.first % 8 == 0 && t.last % 8 == 0) return convolve_8<kBlocks, kPositions, kStride, Channels::kWhole, kTaps>(t);
  convolve_8<kBlocks, kPositions, kStride, Channels::kSome, kTaps>(t);
}
template <int kBlocks, int kPositions, int kStride>
void run_baseline(const ConvTile& t) {
  constexpr Channels kListed = kStride == 1 ? Channels::kListed : Channels::kSome;
  constexpr Taps kTaps = kStride == 0 ? Taps::kOne : Taps::kAny;
  if (t.channel_at != nullptr) return convolve_baseline<kBlocks, kPositions, kStride, kListed, kTaps>(t);
  convolve_baseline<kBlocks, kPositions, kStride, Channels::kSome, kTaps>(t);
}
template <int kBlocks, int kPositions, int kStride>
void run_16(const ConvTile& t) {
  if (has_one_tap<kStride>(t)) return run_16<kBlocks, kPositions, kStride, Taps::kOne>(t);
  if constexpr (kStride != 0) run_16<kBlocks, kPositions, kStride, Taps::kAny>(t);
}
template <int kBlocks, int kPositions, int kStride>
void run_8(const ConvTile& t) {
  if (has_one_tap<kStride>(t)) return run_8<kBlocks, kPositions, kStride, Taps::kOne>(t);
  if constexpr (kStride != 0) run_8<kBlocks, kPositions, kStride, Taps::kAny>(t);
}

template <int kBlocks, int kStride, int... kLess>
ConvTileKernel kernel_of(int64_t lanes, bool avx2, int64_t positions, std::integer_sequence<int, kLess...>) {
  constexpr int kMost8 = kMaxPositions<8>;
  static constexpr ConvTileKernel k16[] = {run_16<kBlocks, kLess + 1, kStride>...};
  static constexpr ConvTileKernel k8[] = {run_8<kBlocks, std::min(kLess + 1, kMost8), kStride>...};
  static constexpr ConvTileKernel kBaseline[] = {run_baseline<kBlocks, std::min(kLess + 1, kMost8), kStride>...};
  return (lanes == 16 ? k16 : avx2 ? k8 : kBaseline)[positions - 1];
}

}  // namespace

int64_t max_tile_positions(int64_t lanes) {
  return lanes == 16 ? kMaxPositions<16> : kMaxPositions<8>;
}

ConvTileKernel conv_tile_kernel(int64_t lanes, int64_t blocks, int64_t positions, int64_t stride) {
  constexpr std::make_integer_sequence<int, kMaxPositions<16>> kLess{};
  const bool avx2 = processor().has(Instructions::kAvx2);
  auto of = [&]<int kBlocks>(std::integral_constant<int, kBlocks>) {
    return stride == 0   ? kernel_of<kBlocks, 0>(lanes, avx2, positions, kLess)
           : stride == 1 ? kernel_of<kBlocks, 1>(lanes, avx2, positions, kLess)
                         : kernel_of<kBlocks, 2>(lanes, avx2, positions, kLess);
  };
  return blocks == 1 ? of(std::integral_constant<int, 1>{}) : of(std::integral_constant<int, 2>{});
}

}  // namespace backplane::cpu
