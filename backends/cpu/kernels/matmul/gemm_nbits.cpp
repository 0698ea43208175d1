// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/gemm_nbits.h"

#include <algorithm>

#include "kernels/simd/clones.h"
#include "kernels/simd/vector_math.h"

namespace backplane::cpu {

namespace {

typedef uint32_t Words __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t DoubleWords __attribute__((vector_size(32)));
typedef uint32_t WordLanes __attribute__((vector_size(64)));
typedef int32_t IntLanes __attribute__((vector_size(64)));
typedef float Lanes __attribute__((vector_size(64), aligned(4), may_alias));

constexpr int64_t kLoadBytes = 16;      // bytes loaded at once, as four 32-bit words
constexpr int64_t kStripLength = 1024;  // values of a row multiplied at a time; they stay in the first-level cache

// Unpacks 16 values of four words: lane 4 * g + w gets value 4 * part + g of word w. For this, the words are repeated
// four times and shifted by 0 to 3 values.
template <int kBits>
[[gnu::always_inline]] inline void unpack(const uint8_t* from, int part, Lanes& to) {
  constexpr WordLanes kShifts = WordLanes{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3} * kBits;
  const Words w = *reinterpret_cast<const Words*>(from);
  const DoubleWords twice = __builtin_shufflevector(w, w, 0, 1, 2, 3, 4, 5, 6, 7);
  const WordLanes words = __builtin_shufflevector(twice, twice, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const WordLanes values = words >> (kShifts + static_cast<uint32_t>(part * 4 * kBits)) & ((1u << kBits) - 1);
  to = __builtin_convertvector(reinterpret_cast<IntLanes>(values), Lanes);
}

// Sets lane i of `to` to the sum of vectors[i]'s lanes, for 16 vectors, which are overwritten.
[[gnu::always_inline]] inline void sum_each(Lanes* vectors, Lanes& to) {
  for (int count = 8; count > 0; count /= 2) {
    for (int64_t i = 0; i < count; ++i) {
      const Lanes a = vectors[2 * i], b = vectors[2 * i + 1];
      vectors[i] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
                   __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    }
  }
  to = vectors[0];
}

// Sums the lanes of each result. Stores the total in y if `is_first`, otherwise adds it to y.
template <int kRows, int kColumns>
[[gnu::always_inline]] inline void finish_tile(const Lanes (&sums)[kRows][kColumns], float* y, int64_t n,
                                               bool is_first) {
  static_assert(int64_t{kRows} * kColumns <= kFloatLanes);
  Lanes all[kFloatLanes] = {}, totals;
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) all[r * kColumns + c] = sums[r][c];
  }
  sum_each(all, totals);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      float& result = y[r * n + c];
      result = (is_first ? 0 : result) + totals[r * kColumns + c];
    }
  }
}

// Multiplies kRows rows by blocks [first, last) of kColumns columns.
template <int kBits, int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_tile(const NbitsColumns& b, const float* x, int64_t column, int64_t first,
                                                 int64_t last, float* y, int64_t n) {
  constexpr int kParts = 8 / kBits;
  const int64_t length = b.length(), bytes = b.column_bytes(), steps = b.block * kBits / 8 / kLoadBytes;
  Lanes sums[kRows][kColumns] = {};
  for (int64_t block = first; block < last; ++block) {
    const float* row = x + block * b.block;
    for (int64_t step = 0; step < steps; ++step, row += kParts * kFloatLanes) {
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) {
        Lanes weights[kColumns];
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) {
          const int64_t at = (column + c) * b.blocks + block;
          const float zero = b.zeros == nullptr ? 1 << (kBits - 1) : b.zeros[at];
          unpack<kBits>(b.packed + (column + c) * bytes + (block * steps + step) * kLoadBytes, p, weights[c]);
          weights[c] = (weights[c] - zero) * b.scales[at];
        }
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const Lanes v = *reinterpret_cast<const Lanes*>(row + r * length + p * kFloatLanes);
#pragma GCC unroll 4
          for (int c = 0; c < kColumns; ++c) sums[r][c] += weights[c] * v;
        }
      }
    }
  }
  finish_tile<kRows, kColumns>(sums, y + column, n, first == 0);
}

template <int kBits, int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_rows(const NbitsColumns& b, const float* x, int64_t first_column,
                                                 int64_t last_column, int64_t first, int64_t last, float* y,
                                                 int64_t n) {
  int64_t column = first_column;
  for (; column + kColumns <= last_column; column += kColumns)
    multiply_tile<kBits, kRows, kColumns>(b, x, column, first, last, y, n);
  for (; column < last_column; ++column) multiply_tile<kBits, kRows, 1>(b, x, column, first, last, y, n);
}

// For few rows: unpacks the weights once for every four rows, then once for each remaining row.
template <int kBits>
[[gnu::always_inline]] inline void multiply_few(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns,
                                                float* y, int64_t n) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4)
    multiply_rows<kBits, 4, 2>(b, x + row * b.length(), 0, columns, 0, b.blocks, y + row * n, n);
  for (; row < rows; ++row)
    multiply_rows<kBits, 1, 4>(b, x + row * b.length(), 0, columns, 0, b.blocks, y + row * n, n);
}

// ---- many rows: a strip (some blocks of all columns) is unpacked once and multiplied by all rows

// Unpacks blocks [first, last) of all columns, column by column.
template <int kBits>
[[gnu::always_inline]] inline void unpack_strip(const NbitsColumns& b, int64_t columns, int64_t first, int64_t last,
                                                float* strip) {
  constexpr int kParts = 8 / kBits;
  const int64_t steps = b.block * kBits / 8 / kLoadBytes;
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t at = c * b.blocks + block;
      const float scale = b.scales[at], zero = b.zeros == nullptr ? 1 << (kBits - 1) : b.zeros[at];
      const uint8_t* from = b.packed + at * steps * kLoadBytes;
      for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p, strip += kFloatLanes) {
          Lanes weights;
          unpack<kBits>(from + step * kLoadBytes, p, weights);
          *reinterpret_cast<Lanes*>(strip) = (weights - zero) * scale;
        }
      }
    }
  }
}

// x has the vectors of the rows interleaved: rows that are thousands of bytes apart would evict each other from the
// cache.
template <int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_strip_tile(const float* x, const float* strip, int64_t length, float* y,
                                                       int64_t n, bool is_first) {
  Lanes sums[kRows][kColumns] = {};
  for (int64_t i = 0; i < length; i += kFloatLanes) {
    Lanes weights[kColumns];
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) weights[c] = *reinterpret_cast<const Lanes*>(strip + c * length + i);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Lanes v = *reinterpret_cast<const Lanes*>(x + i * kRows + r * kFloatLanes);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) sums[r][c] += weights[c] * v;
    }
  }
  finish_tile<kRows, kColumns>(sums, y, n, is_first);
}

template <int kRows>
[[gnu::always_inline]] inline void multiply_strip(const float* x, const float* strip, int64_t length, int64_t columns,
                                                  float* y, int64_t n, bool is_first) {
  int64_t c = 0;
  for (; c + 2 <= columns; c += 2) multiply_strip_tile<kRows, 2>(x, strip + c * length, length, y + c, n, is_first);
  if (c < columns) multiply_strip_tile<kRows, 1>(x, strip + c * length, length, y + c, n, is_first);
}

template <int kRows>
[[gnu::always_inline]] inline void lay_side_by_side(const float* x, int64_t stride, int64_t length, float* to) {
  for (int64_t i = 0; i < length; i += kFloatLanes) {
    for (int r = 0; r < kRows; ++r, to += kFloatLanes)
      *reinterpret_cast<Lanes*>(to) = *reinterpret_cast<const Lanes*>(x + r * stride + i);
  }
}

template <int kBits>
[[gnu::always_inline]] inline void multiply(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns,
                                            float* y, int64_t n, std::vector<float>& scratch) {
  constexpr int kRows = 8;
  if (rows < kRows) return multiply_few<kBits>(b, x, rows, columns, y, n);
  const int64_t blocks = std::max<int64_t>(1, kStripLength / b.block);
  scratch.resize(static_cast<size_t>((columns + kRows) * blocks * b.block));
  float *strip = scratch.data(), *group = strip + columns * blocks * b.block;
  for (int64_t first = 0; first < b.blocks; first += blocks) {
    const int64_t last = std::min(b.blocks, first + blocks), length = (last - first) * b.block;
    unpack_strip<kBits>(b, columns, first, last, strip);
    const float* from = x + first * b.block;
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows) {
      lay_side_by_side<kRows>(from + row * b.length(), b.length(), length, group);
      multiply_strip<kRows>(group, strip, length, columns, y + row * n, n, first == 0);
    }
    for (; row < rows; ++row)
      multiply_strip<1>(from + row * b.length(), strip, length, columns, y + row * n, n, first == 0);
  }
}

CLONED void multiply_2(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                       std::vector<float>& scratch) {
  multiply<2>(b, x, rows, columns, y, n, scratch);
}
CLONED void multiply_4(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                       std::vector<float>& scratch) {
  multiply<4>(b, x, rows, columns, y, n, scratch);
}
CLONED void multiply_8(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                       std::vector<float>& scratch) {
  multiply<8>(b, x, rows, columns, y, n, scratch);
}

}  // namespace

void arrange_nbits_row(int64_t bits, const float* x, int64_t k, int64_t length, float* arranged) {
  const int64_t per_word = 32 / bits,
                chunk = 4 * per_word;  // values in a word, and in the four words that are loaded at once
  for (int64_t from = 0; from < length; from += chunk) {
    for (int64_t word = 0; word < 4; ++word) {
      for (int64_t value = 0; value < per_word; ++value) {
        const int64_t i = from + word * per_word + value;
        arranged[from + value * 4 + word] = i < k ? x[i] : 0;
      }
    }
  }
}

void multiply_nbits(const NbitsColumns& b, const float* x, int64_t rows, int64_t columns, float* y, int64_t n,
                    std::vector<float>& scratch) {
  (b.bits == 2   ? clone_of<multiply_2>
   : b.bits == 4 ? clone_of<multiply_4>
                 : clone_of<multiply_8>)(b, x, rows, columns, y, n, scratch);
}

}  // namespace backplane::cpu
