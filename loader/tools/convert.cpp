// SPDX-License-Identifier: Apache-2.0
#include "convert.h"

#include <fmt/format.h>
#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "backplane/graph.hpp"
#include "onnx/number.h"

namespace backplane::tools {
namespace {

using onnx::Malformed;
using onnx::Tensor;

// The maximum number of elements of a literal. "1000000x1000000xf32=0" would otherwise use any amount of memory.
constexpr uint64_t kMaxElements = uint64_t{1} << 28;

template <class T>
bool store(Tensor& tensor, uint64_t i, T value) {
  std::memcpy(tensor.bytes.data() + i * sizeof value, &value, sizeof value);
  return true;
}

template <class T>
bool store_whole(Tensor& tensor, uint64_t i, double value) {
  // The largest 64-bit integer is not representable as a double, but the next power of two is.
  const double most = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) && value < most)) return false;
  return value == std::trunc(value) && store(tensor, i, static_cast<T>(value));
}

template <class T>
bool store_integer(Tensor& tensor, uint64_t i, int64_t value) {
  return std::in_range<T>(value) && store(tensor, i, static_cast<T>(value));
}

bool is_integer(bp_dtype_t dtype) {
  switch (dtype) {
    case BP_DTYPE_INT8:
    case BP_DTYPE_INT16:
    case BP_DTYPE_INT32:
    case BP_DTYPE_INT64:
    case BP_DTYPE_UINT8:
    case BP_DTYPE_UINT16:
    case BP_DTYPE_UINT32:
    case BP_DTYPE_UINT64:
      return true;
    default:
      return false;
  }
}

struct Type {
  std::string_view name;
  bp_dtype_t dtype;
};
constexpr Type kTypes[] = {
    {"f16", BP_DTYPE_FLOAT16}, {"bf16", BP_DTYPE_BFLOAT16}, {"f32", BP_DTYPE_FLOAT},  {"f64", BP_DTYPE_DOUBLE},
    {"i8", BP_DTYPE_INT8},     {"i16", BP_DTYPE_INT16},     {"i32", BP_DTYPE_INT32},  {"i64", BP_DTYPE_INT64},
    {"u8", BP_DTYPE_UINT8},    {"u16", BP_DTYPE_UINT16},    {"u32", BP_DTYPE_UINT32}, {"u64", BP_DTYPE_UINT64},
    {"bool", BP_DTYPE_BOOL},   {"str", BP_DTYPE_STRING},
};

bp_dtype_t type_named(std::string_view name) {
  for (const Type& type : kTypes) {
    if (name == type.name || name == view::dtype_name(type.dtype)) return type.dtype;
  }
  return BP_DTYPE_UNDEFINED;
}

// Parses a type such as "2x3xf32". Returns false for any other text.
bool parse_type(std::string_view text, std::vector<int64_t>& extents, bp_dtype_t& dtype) {
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    const auto length = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length == text.size() || text[length] != 'x') return false;
    extents.push_back(extent);
    text.remove_prefix(length + 1);
  }
  dtype = type_named(text);
  return dtype != BP_DTYPE_UNDEFINED;
}

// Whether the whole text is a number that T can represent; then sets `out`.
template <class T>
bool read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// Whether the whole text is a decimal number, infinity or NaN. It may be beyond the range of double.
bool is_real_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// Rounds the number in `text` to a double, in this direction (FE_*). Does not depend on the process's locale, which a
// plugin may have set.
double read_real(std::string_view text, int direction) {
  static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string copy(text);
  const int before = std::fegetround();
  std::fesetround(direction);
  const double value = strtod_l(copy.c_str(), nullptr, kPlain);
  std::fesetround(before);
  return value;
}

// Returns the number in `text`, truncated to a double. If the double is not exact, its last bit is set to 1. Rounding
// this double to a type with fewer bits has the same result as rounding the number itself. Rounding the nearest double
// may not: it may be halfway between two values of the type although the number is not.
double rounded_to_odd(std::string_view text) {
  const double value = read_real(text, FE_TOWARDZERO);
  if (read_real(text, FE_DOWNWARD) == read_real(text, FE_UPWARD) || std::isnan(value)) return value;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(value) | 1);
}

void set_text(Tensor& tensor, uint64_t i, std::string_view text) {
  bool fits = false, is_number = true;
  const bool is_real = !is_integer(tensor.dtype) && tensor.dtype != BP_DTYPE_BOOL;
  int64_t whole = 0;
  uint64_t large = 0;  // used instead of `whole` above INT64_MAX
  if (tensor.dtype == BP_DTYPE_BOOL && (text == "true" || text == "false")) {
    fits = set_integer(tensor, i, text == "true");
  } else if (is_real && is_real_number(text)) {
    fits =
        set_number(tensor, i, tensor.dtype == BP_DTYPE_DOUBLE ? read_real(text, FE_TONEAREST) : rounded_to_odd(text));
  } else if (!is_real && read_number(text, whole)) {
    fits = set_integer(tensor, i, whole);
  } else if (tensor.dtype == BP_DTYPE_UINT64 && read_number(text, large)) {
    fits = store(tensor, i, large);
  } else {
    is_number = false;
  }
  if (!fits)
    throw Malformed(fmt::format("'{}' is not a valid {}{}", text, view::dtype_name(tensor.dtype),
                                is_number ? ": it is out of range" : ""));
}

// Rounds once, to a 16-bit format with `fraction_bits` whose smallest normal number is 2^least_exponent.
uint16_t nearest_bits(double value, int fraction_bits, int least_exponent) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint32_t infinity = 0x7fffu >> fraction_bits << fraction_bits;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1u << (fraction_bits - 1));
  const double magnitude = std::abs(value);
  if (std::isinf(magnitude)) return static_cast<uint16_t>(sign | infinity);
  const int exponent = magnitude == 0 ? least_exponent : std::max(std::ilogb(magnitude), least_exponent);
  // If the significand is rounded up to the next power of two, adding it to the shifted exponent below increments the
  // exponent, at most to that of infinity.
  const auto significand = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  const uint32_t bits = (static_cast<uint32_t>(exponent - least_exponent) << fraction_bits) + significand;
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

}  // namespace

uint16_t float16_bits(double value) {
  return nearest_bits(value, 10, -14);
}

uint16_t bfloat16_bits(double value) {
  return nearest_bits(value, 7, -126);
}

bool set_number(Tensor& tensor, uint64_t i, double value) {
  switch (tensor.dtype) {
    case BP_DTYPE_FLOAT:
      return store(tensor, i, static_cast<float>(value));
    case BP_DTYPE_DOUBLE:
      return store(tensor, i, value);
    case BP_DTYPE_FLOAT16:
      return store(tensor, i, float16_bits(value));
    case BP_DTYPE_BFLOAT16:
      return store(tensor, i, bfloat16_bits(value));
    case BP_DTYPE_BOOL:
      return store(tensor, i, static_cast<uint8_t>(value != 0));
    case BP_DTYPE_INT8:
      return store_whole<int8_t>(tensor, i, value);
    case BP_DTYPE_INT16:
      return store_whole<int16_t>(tensor, i, value);
    case BP_DTYPE_INT32:
      return store_whole<int32_t>(tensor, i, value);
    case BP_DTYPE_INT64:
      return store_whole<int64_t>(tensor, i, value);
    case BP_DTYPE_UINT8:
      return store_whole<uint8_t>(tensor, i, value);
    case BP_DTYPE_UINT16:
      return store_whole<uint16_t>(tensor, i, value);
    case BP_DTYPE_UINT32:
      return store_whole<uint32_t>(tensor, i, value);
    case BP_DTYPE_UINT64:
      return store_whole<uint64_t>(tensor, i, value);
    default:
      return false;
  }
}

bool set_integer(Tensor& tensor, uint64_t i, int64_t value) {
  switch (tensor.dtype) {
    case BP_DTYPE_INT8:
      return store_integer<int8_t>(tensor, i, value);
    case BP_DTYPE_INT16:
      return store_integer<int16_t>(tensor, i, value);
    case BP_DTYPE_INT32:
      return store_integer<int32_t>(tensor, i, value);
    case BP_DTYPE_INT64:
      return store(tensor, i, value);
    case BP_DTYPE_UINT8:
      return store_integer<uint8_t>(tensor, i, value);
    case BP_DTYPE_UINT16:
      return store_integer<uint16_t>(tensor, i, value);
    case BP_DTYPE_UINT32:
      return store_integer<uint32_t>(tensor, i, value);
    case BP_DTYPE_UINT64:
      return store_integer<uint64_t>(tensor, i, value);
    default:
      return set_number(tensor, i, static_cast<double>(value));
  }
}

Tensor convert(const Tensor& tensor, bp_dtype_t dtype) {
  if (tensor.dtype == dtype) return tensor;
  const auto refuse = [&](std::string_view why) {
    throw Malformed(fmt::format("{} cannot become {}: {}", onnx::describe(tensor), view::dtype_name(dtype), why));
  };
  const bool is_number =
      tensor.dtype != BP_DTYPE_STRING && tensor.dtype != BP_DTYPE_COMPLEX64 && tensor.dtype != BP_DTYPE_COMPLEX128;
  Tensor result{dtype, tensor.extents, {}};
  if (!is_number || dtype == BP_DTYPE_STRING) refuse("only numbers are converted");
  result.bytes.resize(onnx::dense_bytes(dtype, tensor.extents));
  if (result.count() != 0 && !set_integer(result, 0, 0)) refuse("there is no conversion to this type");
  for (uint64_t i = 0; i < result.count(); ++i) {
    // UINT64 values above INT64_MAX fit no other integer type.
    const bool is_whole =
        is_integer(tensor.dtype) && (tensor.dtype != BP_DTYPE_UINT64 || onnx::integer_at(tensor, i) >= 0);
    const bool fits = is_whole ? set_integer(result, i, onnx::integer_at(tensor, i))
                               : set_number(result, i, onnx::number_at(tensor, i).real());
    if (!fits) refuse(fmt::format("element {} is {}", i, onnx::text_at(tensor, i)));
  }
  return result;
}

bool is_literal(std::string_view text) {
  std::vector<int64_t> extents;
  bp_dtype_t dtype = BP_DTYPE_UNDEFINED;
  const size_t at = text.find('=');
  return at != std::string_view::npos && parse_type(text.substr(0, at), extents, dtype);
}

Tensor parse_literal(std::string_view text) {
  const size_t at = text.find('=');
  Tensor tensor;
  if (at == std::string_view::npos || !parse_type(text.substr(0, at), tensor.extents, tensor.dtype))
    throw Malformed(fmt::format("'{}' is not a value such as 2x3xf32=1,2,3,4,5,6", text));
  std::vector<std::string_view> values;
  for (std::string_view rest = text.substr(at + 1);;) {
    const size_t comma = rest.find(',');
    values.push_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  const uint64_t count = onnx::element_count(tensor.extents);
  if (count > kMaxElements)
    throw Malformed(
        fmt::format("its shape has {} elements; a value on the command line may have at most {}", count, kMaxElements));
  if (count == 0 && values.size() == 1 && values.front().empty()) values.clear();
  if (values.size() != count && values.size() != 1)
    throw Malformed(fmt::format("it has {} values, but {} elements", values.size(), count));
  if (tensor.dtype == BP_DTYPE_STRING) {
    std::vector<std::string> texts(count);
    for (uint64_t i = 0; i < count; ++i) texts[i] = values[values.size() == 1 ? 0 : i];
    return Tensor::of_texts(std::move(tensor.extents), texts);
  }
  tensor.bytes.resize(onnx::dense_bytes(tensor.dtype, tensor.extents));
  if (count == 0) return tensor;
  for (uint64_t i = 0; i < values.size(); ++i) set_text(tensor, i, values[i]);
  if (values.size() == 1) {
    const size_t bytes = tensor.bytes.size() / count;
    for (uint64_t i = 1; i < count; ++i) std::memcpy(tensor.bytes.data() + i * bytes, tensor.bytes.data(), bytes);
  }
  return tensor;
}

}  // namespace backplane::tools
