// SPDX-License-Identifier: Apache-2.0
#include "ops/quantized_sum.h"

#include "ops/clones.h"
#include "ops/function_kernel.h"
#include "ops/support.h"

namespace backplane::cpu {

namespace {

template <bool multiplies, class A, class B, class Y>
[[gnu::always_inline]] inline void combine(const QuantizedSum& s, const A* a, const B* b, Y* y, int64_t n) {
  const auto a_zero = static_cast<float>(s.a.zero), b_zero = static_cast<float>(s.b.zero);
  const auto zero = static_cast<float>(s.result.zero);
  const auto low = s.rectifies ? 0.0f : static_cast<float>(s.result.low()) - zero;
  const auto high = static_cast<float>(s.result.high()) - zero;
  const float a_scale = s.a.scale, b_scale = s.b.scale, scale = s.result.scale;
  for (int64_t i = 0; i < n; ++i) {
    const float x = (static_cast<float>(a[i]) - a_zero) * a_scale, z = (static_cast<float>(b[i]) - b_zero) * b_scale;
    float value = (multiplies ? x * z : x + z) / scale;
    value = value > low ? value : low;
    value = value < high ? value : high;
    y[i] = static_cast<Y>(static_cast<int32_t>(nearest(value) + zero));
  }
}

// All three tensors have codes of one type.
CLONES void add_unsigned(const QuantizedSum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<false>(s, static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), static_cast<uint8_t*>(y), n);
}
CLONES void add_signed(const QuantizedSum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<false>(s, static_cast<const int8_t*>(a), static_cast<const int8_t*>(b), static_cast<int8_t*>(y), n);
}
CLONES void multiply_unsigned(const QuantizedSum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<true>(s, static_cast<const uint8_t*>(a), static_cast<const uint8_t*>(b), static_cast<uint8_t*>(y), n);
}
CLONES void multiply_signed(const QuantizedSum& s, const void* a, const void* b, void* y, int64_t n) {
  combine<true>(s, static_cast<const int8_t*>(a), static_cast<const int8_t*>(b), static_cast<int8_t*>(y), n);
}

}  // namespace

std::unique_ptr<Kernel> make_quantized_sum(QuantizedSum sum) {
  return make_kernel([sum](Tensors inputs) -> Plan {
    if (!(inputs[0].shape == inputs[1].shape))
      return fail("extents " + to_string(inputs[0].shape) + " and " + to_string(inputs[1].shape) + " are not the same");
    const bool is_signed = sum.result.is_signed();
    auto row = sum.multiplies ? (is_signed ? multiply_signed : multiply_unsigned)
               : is_signed    ? add_signed
                              : add_unsigned;
    Plan plan = make_plan({inputs[0].shape},
                          [sum, row, n = inputs[0].shape.elements()](Tensors in, Tensors out) {
                            parallel(n, kCheapGrain, [&](int64_t begin, int64_t end) {
                              row(sum, in[0].as<uint8_t>() + begin, in[1].as<uint8_t>() + begin,
                                  out[0].as<uint8_t>() + begin, end - begin);
                            });
                          },
                          {.inplace = 0});
    plan.gives = inputs[0].format != Format::kDense ? inputs[0].format : inputs[1].format;
    plan.takes = {plan.gives, plan.gives};
    return plan;
  });
}

}  // namespace backplane::cpu
