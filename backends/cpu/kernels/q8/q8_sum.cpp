// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_sum.h"

#include <cstring>

#include "kernels/common/function_kernel.h"
#include "kernels/common/support.h"
#include "kernels/simd/clones.h"
#include "kernels/simd/q8_lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

bool Q8Sum::stays_small() const {
  constexpr float kLeast = 0x1p-30f, kMost = 0x1p30f;
  for (const float scale : {a.scale, b.scale, result.scale}) {
    if (!(scale > kLeast && scale < kMost)) return false;
  }
  const float x = 255 * a.scale, z = 255 * b.scale;
  return (multiplies ? x * z : x + z) / result.scale < kMost;
}

namespace {

#ifdef Q8_LANES
// Like combine(), but for 64 quantized values at a time.
template <bool multiplies>
struct Wide {
  static constexpr int kWidth = 64;
  using Bytes = q8_lanes::Vectors<kWidth>::Bytes;
  using Int32s = q8_lanes::Vectors<kWidth>::Int32s;
  using Floats = q8_lanes::Vectors<kWidth>::Floats;

  Bytes moved;
  Floats a_zero, b_zero, a_scale, b_scale, scale, inverse;
  q8_lanes::Requantization<kWidth> requantization;

  [[gnu::always_inline]] static inline Wide of(const Q8Sum& s) {
    const bool is_signed = s.result.is_signed();
    const int32_t moved = is_signed ? 128 : 0;
    const Floats none{};
    return {q8_lanes::all_bytes<Bytes>(moved),
            none + static_cast<float>(s.a.zero + moved),
            none + static_cast<float>(s.b.zero + moved),
            none + s.a.scale,
            none + s.b.scale,
            none + s.result.scale,
            none + 1.0f / s.result.scale,
            q8_lanes::Requantization<kWidth>::of(s.result.zero, s.rectifies ? s.result.zero : s.result.low(),
                                                 s.result.high(), is_signed)};
  }

  [[gnu::always_inline]] inline Int32s steps(const Floats& a, const Floats& b) const {
    const Floats x = (a - a_zero) * a_scale, z = (b - b_zero) * b_scale;
    return q8_lanes::whole<Int32s>(q8_lanes::quotient(multiplies ? x * z : x + z, scale, inverse));
  }

  [[gnu::always_inline]] inline Bytes combine(const uint8_t* a, const uint8_t* b) const {
    const auto x = q8_lanes::floats_of<kWidth>(q8_lanes::load<Bytes>(a) ^ moved);
    const auto z = q8_lanes::floats_of<kWidth>(q8_lanes::load<Bytes>(b) ^ moved);
    return requantization.to_bytes(requantization.to_int16s(steps(x.a, z.a), steps(x.b, z.b)),
                                   requantization.to_int16s(steps(x.c, z.c), steps(x.d, z.d)));
  }
};

template <bool multiplies>
FOR_AVX512 void combine_wide(const Q8Sum& s, const void* a_data, const void* b_data, void* y_data, int64_t n) {
  using W = Wide<multiplies>;
  const auto wide = W::of(s);
  const auto *a = static_cast<const uint8_t*>(a_data), *b = static_cast<const uint8_t*>(b_data);
  auto* y = static_cast<uint8_t*>(y_data);
  int64_t i = 0;
  for (; i + W::kWidth <= n; i += W::kWidth) q8_lanes::store(y + i, wide.combine(a + i, b + i));
  if (i == n) return;
  uint8_t rest[3][W::kWidth] = {};
  std::memcpy(rest[0], a + i, static_cast<size_t>(n - i));
  std::memcpy(rest[1], b + i, static_cast<size_t>(n - i));
  q8_lanes::store(rest[2], wide.combine(rest[0], rest[1]));
  std::memcpy(y + i, rest[2], static_cast<size_t>(n - i));
}
#endif

// a, b and y are quantized values of the same type, INT8 or UINT8.
CLONED void add_unsigned(const Q8Sum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<false>(s, static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), static_cast<uint8_t*>(y), n);
}
CLONED void add_signed(const Q8Sum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<false>(s, static_cast<const int8_t*>(a), static_cast<const int8_t*>(b), static_cast<int8_t*>(y), n);
}
CLONED void multiply_unsigned(const Q8Sum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<true>(s, static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), static_cast<uint8_t*>(y), n);
}
CLONED void multiply_signed(const Q8Sum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<true>(s, static_cast<const int8_t*>(a), static_cast<const int8_t*>(b), static_cast<int8_t*>(y), n);
}

using Row = void (*)(const Q8Sum& s, const void* a, const void* b, void* y, int64_t n);
Row row_of(const Q8Sum& s) {
#ifdef Q8_LANES
  if (processor().vnni && s.stays_small()) return s.multiplies ? combine_wide<true> : combine_wide<false>;
#endif
  if (s.multiplies) return s.result.is_signed() ? clone_of<multiply_signed> : clone_of<multiply_unsigned>;
  return s.result.is_signed() ? clone_of<add_signed> : clone_of<add_unsigned>;
}

}  // namespace

std::unique_ptr<Kernel> make_q8_sum(Q8Sum sum) {
  return make_kernel([sum, row = row_of(sum)](Tensors inputs) -> Plan {
    if (!(inputs[0].shape == inputs[1].shape))
      return fail("the inputs have shapes " + to_string(inputs[0].shape) + " and " + to_string(inputs[1].shape) +
                  "; they must be equal");
    Plan plan = make_plan({inputs[0].shape},
                          [sum, row, n = inputs[0].shape.elements()](Tensors in, Tensors out) {
                            parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
                              row(sum, in[0].as<uint8_t>() + begin, in[1].as<uint8_t>() + begin,
                                  out[0].as<uint8_t>() + begin, end - begin);
                            });
                          },
                          {.inplace = 0});
    plan.output_format = inputs[0].format != Format::kDense ? inputs[0].format : inputs[1].format;
    plan.input_formats = {plan.output_format, plan.output_format};
    return plan;
  });
}

}  // namespace backplane::cpu
