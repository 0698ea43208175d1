// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_pointwise_tile.h"

#include <utility>

#include "kernels/q8/q8_sum_lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

#ifdef Q8_LANES

namespace {

using namespace q8_lanes;

using Bytes = Vectors<64>::Bytes;
using Int32s = Vectors<64>::Int32s;

constexpr int32_t kSigns = static_cast<int32_t>(kSign * 0x01010101u);  // the sign bits of four quantized values

[[gnu::always_inline]] inline Int32s broadcast_quad(const uint8_t* four) {
  Int32s result;
  asm("vpbroadcastd %1, %0" : "=v"(result) : "m"(*reinterpret_cast<const Unaligned<uint32_t>::type*>(four)));
  return result;
}

[[gnu::always_inline]] inline Floats result(const Int32s& sum, const std::byte* pack) {
  return plus_product(load<Floats>(pack + 512), __builtin_convertvector(sum, Floats), load<Floats>(pack + 256));
}

template <int kPositions, bool kAdds, bool kSigned>
FOR_AVX512 void multiply_positions(const PointwiseTile& t) {
  constexpr int kParts = 4, kBytes = 64;
  Int32s sums[kParts * kPositions];
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
#pragma GCC unroll 8
    for (int p = 0; p < kPositions; ++p) sums[i * kPositions + p] = load<Int32s>(t.pack + i * kBytes);
  }
  const std::byte *weights = t.pack + 3 * kParts * kBytes, *ahead = t.ahead;
  const uint8_t* x = t.x;
  const int64_t x_position = t.x_position, ahead_step = t.ahead_step;
  for (int64_t g = t.groups; g > 0; --g, x += 4, weights += kParts * kBytes, ahead += ahead_step) {
    __builtin_prefetch(ahead);
    Int32s w[kParts];
#pragma GCC unroll 4
    for (int i = 0; i < kParts; ++i) w[i] = load<Int32s>(weights + i * kBytes);
#pragma GCC unroll 8
    for (int p = 0; p < kPositions; ++p) {
      Int32s quads = broadcast_quad(x + p * x_position);
      if (kSigned) quads ^= kSigns;
#pragma GCC unroll 4
      for (int i = 0; i < kParts; ++i) add_products(sums[i * kPositions + p], quads, w[i]);
    }
  }
  const auto requantization = Requantization<kBytes>::of(t.zero, t.low, t.high, t.result_signed);
#pragma GCC unroll 8
  for (int p = 0; p < kPositions; ++p) {
    Floats a = result(sums[p], t.pack), b = result(sums[kPositions + p], t.pack + kBytes);
    Floats c = result(sums[2 * kPositions + p], t.pack + 2 * kBytes);
    Floats d = result(sums[3 * kPositions + p], t.pack + 3 * kBytes);
    if (kAdds) {
      const auto other = floats_of<kBytes>(load<Bytes>(t.other + p * t.y_position) ^ requantization.moved);
      a = added(a, other.a, *t.sum);
      b = added(b, other.b, *t.sum);
      c = added(c, other.c, *t.sum);
      d = added(d, other.d, *t.sum);
    }
    store(t.y + p * t.y_position,
          requantization.to_bytes(requantization.to_int16s(whole<Int32s>(a), whole<Int32s>(b)),
                                  requantization.to_int16s(whole<Int32s>(c), whole<Int32s>(d))));
  }
}

template <bool kAdds, bool kSigned, int... kLess>
PointwiseKernel kernel_of(int64_t positions, std::integer_sequence<int, kLess...>) {
  static constexpr PointwiseKernel kKernels[] = {multiply_positions<kLess + 1, kAdds, kSigned>...};
  return kKernels[positions - 1];
}

}  // namespace

PointwiseKernel pointwise_kernel(int64_t positions, bool adds, bool is_signed) {
  if (!processor().vnni) return nullptr;
  constexpr std::make_integer_sequence<int, kMaxPointwisePositions> kLess{};
  if (is_signed) return adds ? kernel_of<true, true>(positions, kLess) : kernel_of<false, true>(positions, kLess);
  return adds ? kernel_of<true, false>(positions, kLess) : kernel_of<false, false>(positions, kLess);
}

#else

PointwiseKernel pointwise_kernel(int64_t, bool, bool) {
  return nullptr;
}

#endif

}  // namespace backplane::cpu
