// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_amx_tile.h"

#include "kernels/q8/q8_sum_lanes.h"
#include "kernels/simd/amx.h"
#include "runtime/processor.h"

namespace backplane::cpu {

#if defined(Q8_LANES) && defined(AMX_TILES)

namespace {

using namespace q8_lanes;

using Bytes = Vectors<64>::Bytes;
using Int32s = Vectors<64>::Int32s;

constexpr int64_t kPartBytes = 64 * amx::kTileRows;  // bytes of the weights of 16 channels for one step
constexpr int64_t kConstants = 3 * kAmxChannels * int64_t{sizeof(float)};
constexpr int64_t kRowOfSums = kAmxChannels * int64_t{sizeof(int32_t)};

// Computes the sums of kParts · 16 channels (16 or 32) in one or two tiles.
template <class Product, int kTiles, int kParts>
[[gnu::always_inline]] inline void multiply(const AmxBlock& b, const std::byte* starts, const std::byte* weights,
                                            std::byte* sums) {
  amx::load_sums<kTiles, kParts>(starts, starts, 0);
  amx::add_products<Product, kTiles, kParts>(
      {{reinterpret_cast<const std::byte*>(b.x[0]), reinterpret_cast<const std::byte*>(b.x[1])},
       b.x_position,
       {weights, weights + kPartBytes},
       2 * kPartBytes,
       b.steps});
  amx::store_sums<kTiles, kParts>(sums, sums + b.second * kRowOfSums, kRowOfSums);
}

template <class Product>
[[gnu::always_inline]] inline void multiply_all(const AmxBlock& b, std::byte* sums) {
  for (int64_t channel = 0; channel < b.channels; channel += 32) {
    const std::byte* starts = b.pack + channel * int64_t{sizeof(int32_t)};
    const std::byte* weights = b.pack + kConstants + channel / 32 * b.steps * 2 * kPartBytes;
    std::byte* to = sums + channel * int64_t{sizeof(int32_t)};
    const bool both = b.channels - channel > 16;
    if (b.tiles == 2)
      both ? multiply<Product, 2, 2>(b, starts, weights, to) : multiply<Product, 2, 1>(b, starts, weights, to);
    else
      both ? multiply<Product, 1, 2>(b, starts, weights, to) : multiply<Product, 1, 1>(b, starts, weights, to);
  }
}

[[gnu::always_inline]] inline Bytes load_some(const void* from, uint64_t mask) {
  Bytes result;
  asm("vmovdqu8 %1, %0%{%2%}%{z%}" : "=v"(result) : "m"(*static_cast<const Unaligned<Bytes>::type*>(from)), "Yk"(mask));
  return result;
}
[[gnu::always_inline]] inline void store_some(void* to, const Bytes& value, uint64_t mask) {
  asm("vmovdqu8 %1, %0%{%2%}" : "+m"(*static_cast<Unaligned<Bytes>::type*>(to)) : "v"(value), "Yk"(mask));
}

// Unpacking and packing work within 16-byte lanes: the first four bytes of every lane become the first vector, and so
// on. This exchanges groups of four bytes so that the first vector holds the first 16 channels.
[[gnu::always_inline]] inline Bytes exchange_groups(const Bytes& bytes) {
  const Int32s order{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  Bytes result;
  asm("vpermd %2, %1, %0" : "=v"(result) : "v"(order), "v"(bytes));
  return result;
}

template <bool kAdds>
[[gnu::always_inline]] inline Floats finished(const std::byte* sums, const std::byte* pack, int part,
                                              const Floats& other, const PointwiseSum* sum) {
  const auto value = plus_product(load<Floats>(pack + 512 + 64 * part),
                                  __builtin_convertvector(load<Int32s>(sums + 64 * part), Floats),
                                  load<Floats>(pack + 256 + 64 * part));
  return kAdds ? added(value, other, *sum) : value;
}

// Quantizes the sums [position][64 channels] and stores the results in b.y.
template <bool kAdds>
[[gnu::always_inline]] inline void quantize(const AmxBlock& b, const std::byte* sums) {
  const auto requantization = Requantization<64>::of(b.zero, b.low, b.high, b.result_signed);
  const uint64_t mask = b.channels == kAmxChannels ? ~uint64_t{0} : (uint64_t{1} << b.channels) - 1;
  const std::byte* const pack = b.pack;
  const PointwiseSum* const sum = b.sum;
  uint8_t* y = b.y;
  const uint8_t* other = b.other;
  sums += b.first * kRowOfSums;
  for (int64_t position = b.first; position < b.last; ++position, sums += kRowOfSums, y += b.y_position) {
    Four<Floats> others{};
    if constexpr (kAdds) {
      others = floats_of<64>(exchange_groups(load_some(other, mask)) ^ requantization.moved);
      other += b.y_position;
    }
    const Floats v0 = finished<kAdds>(sums, pack, 0, others.a, sum), v1 = finished<kAdds>(sums, pack, 1, others.b, sum);
    const Floats v2 = finished<kAdds>(sums, pack, 2, others.c, sum), v3 = finished<kAdds>(sums, pack, 3, others.d, sum);
    const Bytes bytes = requantization.to_bytes(requantization.to_int16s(whole<Int32s>(v0), whole<Int32s>(v1)),
                                                requantization.to_int16s(whole<Int32s>(v2), whole<Int32s>(v3)));
    store_some(y, exchange_groups(bytes), mask);
  }
}

template <bool kAdds, class Product>
FOR_AVX512 void compute(const AmxBlock& b) {
  alignas(64) std::byte sums[2 * amx::kTileRows * kRowOfSums];
  multiply_all<Product>(b, sums);
  quantize<kAdds>(b, sums);
}

}  // namespace

AmxKernel amx_kernel(bool adds, bool is_signed) {
  if (!processor().amx) return nullptr;
  if (is_signed) return adds ? compute<true, amx::SignedBySigned> : compute<false, amx::SignedBySigned>;
  return adds ? compute<true, amx::UnsignedBySigned> : compute<false, amx::UnsignedBySigned>;
}

#else

AmxKernel amx_kernel(bool, bool) {
  return nullptr;
}

#endif

}  // namespace backplane::cpu
