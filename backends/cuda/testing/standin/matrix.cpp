// SPDX-License-Identifier: Apache-2.0
#include "testing/standin/matrix.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace standin {
namespace {

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

// Rounds to the nearest, ties to even.
uint16_t float_to_half(float value) {
  const auto sign = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16 & 0x8000);
  const float size = std::abs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);  // the exponent of the last bit
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -unit)));
  // Below 1024 units the number is subnormal; 2048 units carry into the next exponent.
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(unit + 24) * 1024 + units));
}

double load(lt::DataType type, const void* data, uint64_t at) {
  const auto read = [&](auto value) {
    std::memcpy(&value, static_cast<const char*>(data) + at * sizeof value, sizeof value);
    return value;
  };
  switch (type) {
    case lt::kF64:
      return read(double{});
    case lt::kF16:
      return half_to_float(read(uint16_t{}));
    case lt::kBf16:
      return std::bit_cast<float>(static_cast<uint32_t>(read(uint16_t{})) << 16);
    default:
      return read(float{});
  }
}

void store(lt::DataType type, void* data, uint64_t at, double value) {
  const auto write = [&](auto bits) { std::memcpy(static_cast<char*>(data) + at * sizeof bits, &bits, sizeof bits); };
  const auto narrow = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(narrow);
  switch (type) {
    case lt::kF64:
      return write(value);
    case lt::kF16:
      return write(float_to_half(narrow));
    case lt::kBf16:
      if (std::isnan(narrow)) return write(static_cast<uint16_t>(0x7fc0));
      return write(static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
    default:
      return write(narrow);
  }
}

// With TF32, factors have 10 bits of mantissa.
double factor(lt::ComputeType compute, double value) {
  if (compute != lt::kCompute32FFastTf32 || !std::isfinite(value)) return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(static_cast<float>(value)) + 0x1000) & 0xffffe000);
}

double activated(uint32_t epilogue, double v) {
  if ((epilogue & lt::kRelu) != 0) return v < 0 ? 0 : v;
  if ((epilogue & lt::kGelu) != 0) return 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
  return v;
}

// The index of an element in its matrix.
uint64_t index_of(const Matrix& matrix, bool transposed, uint64_t row, uint64_t column) {
  if (transposed) std::swap(row, column);
  return row + column * static_cast<uint64_t>(matrix.leading);
}

}  // namespace

uint64_t Matrix::element_bytes() const {
  return type == lt::kF64 ? 8 : type == lt::kF32 ? 4 : 2;
}

uint64_t Matrix::bytes() const {
  const uint64_t last = static_cast<uint64_t>(batch - 1) * static_cast<uint64_t>(stride) +
                        (columns - 1) * static_cast<uint64_t>(leading) + rows;
  return last * element_bytes();
}

bool MatrixProduct::is_consistent() const {
  for (const Matrix* each : {&a, &b, &c, &d}) {
    if (each->rows == 0 || each->columns == 0 || each->leading < static_cast<int64_t>(each->rows)) return false;
    if (each->type != a.type || each->batch != d.batch || each->batch < 1 || each->stride < 0) return false;
    const bool overlaps = each->stride < each->leading * static_cast<int64_t>(each->columns);
    if (each->batch > 1 && overlaps && (each == &c || each == &d || each->stride != 0)) return false;
  }
  if ((compute == lt::kCompute64F) != (a.type == lt::kF64)) return false;
  if (compute == lt::kCompute32FFastTf32 && a.type != lt::kF32) return false;
  return (a_transposed ? a.columns : a.rows) == d.rows && (b_transposed ? b.rows : b.columns) == d.columns &&
         (b_transposed ? b.columns : b.rows) == inner() && c.rows == d.rows && c.columns == d.columns;
}

void MatrixProduct::compute_all() const {
  for (uint64_t i = 0; i < static_cast<uint64_t>(d.batch); ++i) {
    const auto first = [i](const Matrix& matrix) { return i * static_cast<uint64_t>(matrix.stride); };
    for (uint64_t column = 0; column < d.columns; ++column) {
      for (uint64_t row = 0; row < d.rows; ++row) {
        double sum = 0;
        for (uint64_t k = 0; k < inner(); ++k) {
          const double product = factor(compute, load(a.type, a_data, first(a) + index_of(a, a_transposed, row, k))) *
                                 factor(compute, load(b.type, b_data, first(b) + index_of(b, b_transposed, k, column)));
          sum = a.type == lt::kF64 ? sum + product : static_cast<float>(sum + product);
        }
        sum *= alpha;
        if (beta != 0) sum += beta * load(c.type, c_data, first(c) + index_of(c, false, row, column));
        if ((epilogue & lt::kBias) != 0) sum += load(d.type, bias, row);
        store(d.type, d_data, first(d) + index_of(d, false, row, column), activated(epilogue, sum));
      }
    }
  }
}

}  // namespace standin
