// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike and BitCast. Conversions between integers wrap. From floats to integers of 32 and 64 bits they
// saturate, to 8 and 16 bits they saturate at INT32 and then wrap; NaN becomes 0 (docs/decisions/0019). The 8-bit
// floats and the types of 2 and 4 bits are converted through float, which represents all their values. Only bools and
// integers of 8 bits or more become integers of 2 and 4 bits directly, because float would lose their lowest bits.
#include "kernels/common/float16_array.h"
#include "kernels/common/function_kernel.h"
#include "kernels/common/integer_of.h"
#include "kernels/common/small_types.h"
#include "kernels/common/support.h"

namespace backplane::cpu {
namespace {

template <class To, class From>
To convert_one(From value) {
  const auto x = static_cast<compute_t<From>>(value);
  if constexpr (std::is_same_v<To, Bool>) {
    return Bool(x != 0);
  } else if constexpr (kIsFloating<To>) {
    return static_cast<To>(static_cast<compute_t<To>>(x));
  } else if constexpr (kIsFloating<From>) {
    return integer_of<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

using Convert = void (*)(const void* from, void* to, int64_t n);

template <bp_dtype_t kHalf>
void widen_all(const void* from, void* to, int64_t n) {
  widen(kHalf, from, static_cast<float*>(to), n);
}
template <bp_dtype_t kHalf>
void narrow_all(const void* from, void* to, int64_t n) {
  narrow(kHalf, static_cast<const float*>(from), to, n);
}

Convert plain_conversion(bp_dtype_t from, bp_dtype_t to) {
  constexpr bp_dtype_t kBrain = BP_DTYPE_BFLOAT16;
  if (is_16_bit_float(from) && to == BP_DTYPE_FLOAT)
    return from == kBrain ? widen_all<kBrain> : widen_all<BP_DTYPE_FLOAT16>;
  if (from == BP_DTYPE_FLOAT && is_16_bit_float(to))
    return to == kBrain ? narrow_all<kBrain> : narrow_all<BP_DTYPE_FLOAT16>;
  return dispatch<NumbersAndBool>(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    return dispatch<NumbersAndBool>(to, [](auto to_tag) -> Convert {
      using To = typename decltype(to_tag)::type;
      return [](const void* from_data, void* to_data, int64_t n) {
        const auto* x = static_cast<const From*>(from_data);
        auto* y = static_cast<To*>(to_data);
        for (int64_t i = 0; i < n; ++i) y[i] = convert_one<To>(x[i]);
      };
    });
  });
}

bool is_plain(bp_dtype_t dtype) {
  return set_of(NumbersAndBool{}) >> dtype & 1;
}

constexpr bp_dtype_set_t kWholeTypes = set_of(Integers{}) | just(BP_DTYPE_BOOL);
constexpr bp_dtype_set_t kPackedIntegers =
    just(BP_DTYPE_UINT4) | just(BP_DTYPE_INT4) | just(BP_DTYPE_UINT2) | just(BP_DTYPE_INT2);

Plan plan_cast(const Shape& shape, bp_dtype_t from, bp_dtype_t to, EncodeRules rules) {
  const int64_t n = shape.elements();
  const auto nothing = [](Tensors, Tensors) {};
  if (from == to) return make_plan({shape}, nothing, {.alias = 0});
  const bool keeps_bits = (kWholeTypes >> from & kPackedIntegers >> to & 1) != 0;
  const bp_dtype_t through = keeps_bits ? BP_DTYPE_UINT8 : BP_DTYPE_FLOAT;
  const Convert convert = plain_conversion(is_plain(from) ? from : BP_DTYPE_FLOAT, is_plain(to) ? to : through);
  return make_plan({shape}, [=](Tensors in, Tensors out) {
    constexpr int64_t kBlock = 1024;
    parallel((n + kBlock - 1) / kBlock, 8, [&](int64_t first, int64_t last) {
      float values[kBlock];
      for (int64_t begin = first * kBlock; begin < std::min(last * kBlock, n); begin += kBlock) {
        const int64_t count = std::min(kBlock, n - begin);
        const void* source = is_plain(from) ? in[0].as<char>() + begin * bytes_of(from, 1) : nullptr;
        void* target = is_plain(to) ? out[0].as<char>() + begin * bytes_of(to, 1) : nullptr;
        if (source == nullptr) {
          load_floats(from, in[0].data, begin, values, count);
          source = values;
        }
        if (target != nullptr) {
          convert(source, target, count);
        } else if (keeps_bits) {
          uint8_t elements[kBlock];
          convert(source, elements, count);
          pack(to, elements, out[0].as<char>() + begin * bits_of(to) / 8, count);
        } else {
          if (source != values) convert(source, values, count);
          store_floats(to, out[0].data, begin, values, count, rules);
        }
      }
    });
  });
}

constexpr bp_dtype_set_t kCastTypes = set_of(NumbersAndBool{}) | kPackedTypes | just(BP_DTYPE_FLOAT8E4M3FN) |
                                      just(BP_DTYPE_FLOAT8E4M3FNUZ) | just(BP_DTYPE_FLOAT8E5M2) |
                                      just(BP_DTYPE_FLOAT8E5M2FNUZ) | just(BP_DTYPE_FLOAT8E8M0);

EncodeRules rules_of(const Node& node) {
  const std::string rounding = node.attr("round_mode", "up");
  return {node.attr("saturate", int64_t{1}) != 0, rounding == "down"      ? ScaleRounding::kDown
                                                  : rounding == "nearest" ? ScaleRounding::kNearest
                                                                          : ScaleRounding::kUp};
}

Verdict supports_cast(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {kCastTypes}); !verdict) return verdict;
  if (Verdict verdict = attribute_in(node, "round_mode", "up", {"up", "down", "nearest"}); !verdict) return verdict;
  return returns_type(node, "to", node.attr("to", int64_t{0}), kCastTypes);
}

std::unique_ptr<Kernel> create_cast(const Node& node) {
  return make_kernel([to = static_cast<bp_dtype_t>(node.attr("to", int64_t{0})), rules = rules_of(node)](
                         Tensors inputs) { return plan_cast(inputs[0].shape, inputs[0].dtype, to, rules); });
}

Verdict supports_cast_like(const Node& node) {
  if (Verdict verdict = attribute_in(node, "round_mode", "up", {"up", "down", "nearest"}); !verdict) return verdict;
  if (Verdict verdict = accepts(node, 2, {kCastTypes, kCastTypes}); !verdict) return verdict;
  return returns_type(node, "the type of target_type", node.input_type(1).dtype, kCastTypes);
}

std::unique_ptr<Kernel> create_cast_like(const Node& node) {
  return make_kernel([rules = rules_of(node)](Tensors inputs) {
    return plan_cast(inputs[0].shape, inputs[0].dtype, inputs[1].dtype, rules);
  });
}

Verdict supports_bit_cast(const Node& node) {
  constexpr bp_dtype_set_t kTypes = kByteTypes | kPackedTypes;
  if (Verdict verdict = accepts(node, 1, {kTypes}); !verdict) return verdict;
  const int64_t to = node.attr("to", int64_t{0});
  if (Verdict verdict = returns_type(node, "to", to, kTypes); !verdict) return verdict;
  if (bits_of(static_cast<bp_dtype_t>(to)) == bits_of(node.input_type(0).dtype)) return yes();
  return no(BP_REASON_DTYPE, std::string("to is ") + dtype_name(static_cast<bp_dtype_t>(to)) +
                                 ", whose elements have another size than the input's, " +
                                 dtype_name(node.input_type(0).dtype));
}

std::unique_ptr<Kernel> create_bit_cast(const Node&) {
  return make_kernel(
      [](Tensors inputs) { return make_plan({inputs[0].shape}, [](Tensors, Tensors) {}, {.alias = 0}); });
}

}  // namespace

[[gnu::cold]] std::span<const Row> cast_rows() {
  static constexpr Row kRows[] = {
      {"", "Cast", 6, supports_cast, create_cast},
      {"", "CastLike", 15, supports_cast_like, create_cast_like},
      {"", "BitCast", 26, supports_bit_cast, create_bit_cast},
  };
  return kRows;
}

}  // namespace backplane::cpu
