// SPDX-License-Identifier: Apache-2.0
#include "onnx/number.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>

namespace backplane::onnx {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
T load(const Tensor& tensor, uint64_t i) {
  T element;
  std::memcpy(&element, tensor.bytes.data() + i * sizeof element, sizeof element);
  return element;
}

// Element `i` of a type that packs several elements into a byte. The first element is in the low bits.
uint32_t packed(const Tensor& tensor, uint64_t i, uint32_t bits) {
  const uint32_t per_byte = 8 / bits;
  return (std::to_integer<uint32_t>(tensor.bytes[i / per_byte]) >> (i % per_byte * bits)) & ((1u << bits) - 1);
}

int32_t sign_extend(uint32_t value, uint32_t bits) {
  return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits);
}

// Decodes a finite small float, including zero and subnormals.
double small_float(uint32_t code, uint32_t exponent_bits, uint32_t fraction_bits, int bias) {
  const uint32_t exponent = (code >> fraction_bits) & ((1u << exponent_bits) - 1);
  const uint32_t fraction = code & ((1u << fraction_bits) - 1);
  const bool negative = (code >> (exponent_bits + fraction_bits)) & 1;
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - bias - static_cast<int>(fraction_bits);
  const double significand = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
  return std::ldexp(negative ? -significand : significand, scale);
}

// Decodes a float by IEEE 754: the highest exponent means infinity or NaN.
double ieee(uint32_t code, uint32_t exponent_bits, uint32_t fraction_bits, int bias) {
  const uint32_t top = (1u << exponent_bits) - 1;
  if (((code >> fraction_bits) & top) != top) return small_float(code, exponent_bits, fraction_bits, bias);
  if (code & ((1u << fraction_bits) - 1)) return kNan;
  return (code >> (exponent_bits + fraction_bits)) & 1 ? -kInfinity : kInfinity;
}

double real_at(const Tensor& tensor, uint64_t i) {
  switch (tensor.dtype) {
    case BP_DTYPE_FLOAT:
      return load<float>(tensor, i);
    case BP_DTYPE_DOUBLE:
      return load<double>(tensor, i);
    case BP_DTYPE_FLOAT16:
      return ieee(load<uint16_t>(tensor, i), 5, 10, 15);
    case BP_DTYPE_BFLOAT16:
      return std::bit_cast<float>(uint32_t{load<uint16_t>(tensor, i)} << 16);
    case BP_DTYPE_FLOAT8E5M2:
      return ieee(load<uint8_t>(tensor, i), 5, 2, 15);
    case BP_DTYPE_FLOAT8E4M3FN: {
      const uint8_t code = load<uint8_t>(tensor, i);
      return (code & 0x7f) == 0x7f ? kNan : small_float(code, 4, 3, 7);
    }
    case BP_DTYPE_FLOAT8E4M3FNUZ: {
      const uint8_t code = load<uint8_t>(tensor, i);
      return code == 0x80 ? kNan : small_float(code, 4, 3, 8);
    }
    case BP_DTYPE_FLOAT8E5M2FNUZ: {
      const uint8_t code = load<uint8_t>(tensor, i);
      return code == 0x80 ? kNan : small_float(code, 5, 2, 16);
    }
    case BP_DTYPE_FLOAT8E8M0: {
      const uint8_t code = load<uint8_t>(tensor, i);
      return code == 0xff ? kNan : std::ldexp(1.0, int{code} - 127);
    }
    case BP_DTYPE_FLOAT4E2M1:
      return small_float(packed(tensor, i, 4), 2, 1, 1);
    case BP_DTYPE_UINT64:
      return static_cast<double>(load<uint64_t>(tensor, i));
    default:
      return static_cast<double>(integer_at(tensor, i));
  }
}

std::string real_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

bool is_inexact(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
    case BP_DTYPE_COMPLEX64:
    case BP_DTYPE_COMPLEX128:
    case BP_DTYPE_FLOAT8E4M3FN:
    case BP_DTYPE_FLOAT8E4M3FNUZ:
    case BP_DTYPE_FLOAT8E5M2:
    case BP_DTYPE_FLOAT8E5M2FNUZ:
    case BP_DTYPE_FLOAT8E8M0:
    case BP_DTYPE_FLOAT4E2M1:
      return true;
    default:
      return false;
  }
}

int64_t integer_at(const Tensor& tensor, uint64_t i) {
  switch (tensor.dtype) {
    case BP_DTYPE_BOOL:
    case BP_DTYPE_UINT8:
      return load<uint8_t>(tensor, i);
    case BP_DTYPE_INT8:
      return load<int8_t>(tensor, i);
    case BP_DTYPE_UINT16:
      return load<uint16_t>(tensor, i);
    case BP_DTYPE_INT16:
      return load<int16_t>(tensor, i);
    case BP_DTYPE_INT32:
      return load<int32_t>(tensor, i);
    case BP_DTYPE_UINT32:
      return load<uint32_t>(tensor, i);
    case BP_DTYPE_INT64:
      return load<int64_t>(tensor, i);
    case BP_DTYPE_UINT64:
      return static_cast<int64_t>(load<uint64_t>(tensor, i));
    case BP_DTYPE_UINT4:
      return packed(tensor, i, 4);
    case BP_DTYPE_INT4:
      return sign_extend(packed(tensor, i, 4), 4);
    case BP_DTYPE_UINT2:
      return packed(tensor, i, 2);
    case BP_DTYPE_INT2:
      return sign_extend(packed(tensor, i, 2), 2);
    default:
      throw Malformed(describe(tensor) + " does not hold integers");
  }
}

std::complex<double> number_at(const Tensor& tensor, uint64_t i) {
  if (tensor.dtype == BP_DTYPE_COMPLEX64) return load<std::complex<float>>(tensor, i);
  if (tensor.dtype == BP_DTYPE_COMPLEX128) return load<std::complex<double>>(tensor, i);
  return real_at(tensor, i);
}

std::string text_at(const Tensor& tensor, uint64_t i) {
  switch (tensor.dtype) {
    case BP_DTYPE_STRING:
      return "\"" + std::string(tensor.text(i)) + "\"";
    case BP_DTYPE_UINT64:
      return std::to_string(load<uint64_t>(tensor, i));
    case BP_DTYPE_BOOL: {
      const int64_t value = integer_at(tensor, i);
      return value == 0 ? "false" : value == 1 ? "true" : "bool " + std::to_string(value);
    }
    case BP_DTYPE_COMPLEX64:
    case BP_DTYPE_COMPLEX128: {
      const std::complex<double> value = number_at(tensor, i);
      return real_text(value.real()) + (value.imag() < 0 ? "" : "+") + real_text(value.imag()) + "i";
    }
    default:
      return is_inexact(tensor.dtype) ? real_text(real_at(tensor, i)) : std::to_string(integer_at(tensor, i));
  }
}

}  // namespace backplane::onnx
