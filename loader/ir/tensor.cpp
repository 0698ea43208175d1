// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/dtype.h"

namespace backplane::model {
namespace {

template <class Element, class Out>
std::vector<Out> read(const Weight& weight) {
  std::vector<Out> out(weight.bytes / sizeof(Element));
  for (size_t i = 0; i < out.size(); ++i) {
    Element element;  // data in files may be unaligned
    std::memcpy(&element, static_cast<const char*>(weight.data) + i * sizeof(Element), sizeof element);
    out[i] = static_cast<Out>(element);
  }
  return out;
}

// Returns element `index` of a string tensor's offsets.
int64_t offset_at(const Weight& weight, uint64_t index) {
  int64_t offset;
  std::memcpy(&offset, static_cast<const char*>(weight.data) + index * sizeof offset, sizeof offset);
  return offset;
}

double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int mantissa = bits & 0x3ff;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) value = mantissa ? NAN : INFINITY;
  return bits & 0x8000 ? -value : value;
}

}  // namespace

std::optional<uint64_t> element_count(std::span<const int64_t> dims) {
  constexpr uint64_t kMost = uint64_t{1} << 59;  // the bytes of so many elements fit into 64 bits, whatever the type
  uint64_t count = 1;
  bool empty = false;
  for (const int64_t extent : dims) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (static_cast<uint64_t>(extent) > kMost / count) return std::nullopt;
    count *= static_cast<uint64_t>(extent);
  }
  return empty ? 0 : count;
}

std::optional<uint64_t> tensor_bytes(bp_dtype_t dtype, std::span<const int64_t> dims) {
  const uint64_t bits = dtype_bits(dtype);
  const std::optional<uint64_t> count = element_count(dims);
  if (bits == 0 || !count) return std::nullopt;
  return bits >= 8 ? *count * (bits / 8) : (*count * bits + 7) / 8;
}

std::vector<char> pack_strings(std::span<const std::string_view> strings) {
  int64_t end = 0;
  std::vector<int64_t> offsets{0};
  for (const std::string_view text : strings) offsets.push_back(end += static_cast<int64_t>(text.size()));
  const size_t head = offsets.size() * sizeof(int64_t);
  std::vector<char> bytes(head + static_cast<size_t>(end));
  std::memcpy(bytes.data(), offsets.data(), head);
  for (size_t i = 0; i < strings.size(); ++i) {
    if (!strings[i].empty()) std::memcpy(bytes.data() + head + offsets[i], strings[i].data(), strings[i].size());
  }
  return bytes;
}

bool strings_fit(const Weight& weight) {
  const std::optional<uint64_t> count = element_count(weight.dims);
  if (!count || *count >= weight.bytes / sizeof(int64_t)) return false;
  const uint64_t head = (*count + 1) * sizeof(int64_t);
  if (offset_at(weight, 0) != 0) return false;
  for (uint64_t i = 0; i < *count; ++i) {
    if (offset_at(weight, i + 1) < offset_at(weight, i)) return false;
  }
  return static_cast<uint64_t>(offset_at(weight, *count)) == weight.bytes - head;
}

std::optional<std::vector<int64_t>> integers(const Weight& weight) {
  if (weight.dtype == BP_DTYPE_INT64) return read<int64_t, int64_t>(weight);
  if (weight.dtype == BP_DTYPE_INT32) return read<int32_t, int64_t>(weight);
  return std::nullopt;
}

std::optional<std::vector<double>> numbers(const Weight& weight) {
  switch (weight.dtype) {
    case BP_DTYPE_FLOAT:
      return read<float, double>(weight);
    case BP_DTYPE_DOUBLE:
      return read<double, double>(weight);
    case BP_DTYPE_INT32:
      return read<int32_t, double>(weight);
    case BP_DTYPE_INT64:
      return read<int64_t, double>(weight);
    case BP_DTYPE_UINT8:
      return read<uint8_t, double>(weight);
    case BP_DTYPE_UINT16:
      return read<uint16_t, double>(weight);
    case BP_DTYPE_UINT32:
      return read<uint32_t, double>(weight);
    case BP_DTYPE_UINT64:
      return read<uint64_t, double>(weight);
    case BP_DTYPE_FLOAT16: {
      std::vector<double> values = read<uint16_t, double>(weight);
      for (double& value : values) value = from_half(static_cast<uint16_t>(value));
      return values;
    }
    case BP_DTYPE_BFLOAT16: {
      std::vector<double> values = read<uint16_t, double>(weight);
      for (double& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
      return values;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace backplane::model
