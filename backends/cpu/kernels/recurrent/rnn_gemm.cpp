// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/rnn_gemm.h"

#include <cstring>

#include "kernels/simd/lanes.h"
#include "runtime/parallel.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

struct Tile {
  const float* panel;
  int64_t inputs, stride;  // `stride`: floats from one gate to the next
  const GateRow* rows;
  int64_t at;  // offset of the block in a row's `from` and `y`
};

// The sums stay in registers. With few gates and rows, each result is computed as several partial sums, so that
// additions do not wait for each other.
template <int kLanes, int kGates, int kRows>
[[gnu::always_inline]] inline void multiply_tile(const Tile& t) {
  using Lanes = typename LanesOf<kLanes>::type;
  constexpr int kParts = kGates * kRows < 4 ? 4 / (kGates * kRows) : 1;
  Lanes sums[kParts][kRows][kGates] = {};
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g)
      sums[0][r][g] = *reinterpret_cast<const Lanes*>(t.rows[r].from + t.at + g * t.stride);
  }
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = t.rows[r].x;
  const float* w = t.panel;
  int64_t i = 0;
  for (; i + kParts <= t.inputs; i += kParts) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p, w += kGates * kUnitBlock) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int g = 0; g < kGates; ++g)
          sums[p][r][g] += x[r][i + p] * *reinterpret_cast<const Lanes*>(w + g * kUnitBlock);
      }
    }
  }
  for (; i < t.inputs; ++i, w += kGates * kUnitBlock) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int g = 0; g < kGates; ++g) sums[0][r][g] += x[r][i] * *reinterpret_cast<const Lanes*>(w + g * kUnitBlock);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int g = 0; g < kGates; ++g) {
#pragma GCC unroll 4
      for (int p = 1; p < kParts; ++p) sums[0][r][g] += sums[p][r][g];
      *reinterpret_cast<Lanes*>(t.rows[r].y + t.at + g * t.stride) = sums[0][r][g];
    }
  }
}

template <int kLanes, int kGates>
[[gnu::always_inline]] inline void multiply_rows(Tile t, int64_t rows) {
  // The maximum number of rows whose sums fit in the registers.
  constexpr int kMost = kLanes == 16 ? 4 : 8 / kGates < 4 ? 8 / kGates : 4;
  for (; rows >= kMost; rows -= kMost, t.rows += kMost) multiply_tile<kLanes, kGates, kMost>(t);
  if constexpr (kMost > 2)
    if (rows >= 2) {
      multiply_tile<kLanes, kGates, 2>(t);
      rows -= 2;
      t.rows += 2;
    }
  if (rows == 1) multiply_tile<kLanes, kGates, 1>(t);
}

// Multiplies all rows by one block of units.
template <int kLanes>
[[gnu::always_inline]] inline void multiply_block(Tile t, int64_t gates, int64_t rows) {
  for (int64_t lane = 0; lane < kUnitBlock; lane += kLanes, t.panel += kLanes, t.at += kLanes) {
    if (gates == 1)
      multiply_rows<kLanes, 1>(t, rows);
    else if (gates == 2)
      multiply_rows<kLanes, 2>(t, rows);
    else
      multiply_rows<kLanes, 4>(t, rows);
  }
}

FOR_AVX512 void multiply_avx512(const Tile& t, int64_t gates, int64_t rows) {
  multiply_block<16>(t, gates, rows);
}
FOR_AVX2 void multiply_avx2(const Tile& t, int64_t gates, int64_t rows) {
  multiply_block<8>(t, gates, rows);
}
void multiply_anywhere(const Tile& t, int64_t gates, int64_t rows) {
  multiply_block<4>(t, gates, rows);
}

}  // namespace

void GatePanels::pack(const std::byte* from, float* panels) const {
  parallel(unit_blocks(units_), 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      float* panel = panels + block * kUnitBlock * gates_ * inputs_;
      for (int64_t g = 0; g < gates_; ++g) {
        for (int64_t lane = 0; lane < kUnitBlock; ++lane) {
          const int64_t unit = block * kUnitBlock + lane;
          const std::byte* line = from + (g * units_ + unit) * inputs_ * static_cast<int64_t>(sizeof(float));
          float* to = panel + g * kUnitBlock + lane;
          for (int64_t i = 0; i < inputs_; ++i, to += gates_ * kUnitBlock) {
            *to = 0;
            if (unit < units_) std::memcpy(to, line + i * static_cast<int64_t>(sizeof(float)), sizeof(float));
          }
        }
      }
    }
  });
}

void GatePanels::multiply(const float* panels, std::span<const GateRow> rows, int64_t offset, int64_t first,
                          int64_t last) const {
  const int64_t each = kUnitBlock * gates_ * inputs_;
  const auto run = channel_block() == 16                  ? multiply_avx512
                   : processor().has(Instructions::kAvx2) ? multiply_avx2
                                                          : multiply_anywhere;
  for (int64_t block = first; block < last; ++block)
    run({panels + block * each, inputs_, unit_blocks(units_) * kUnitBlock, rows.data(), offset + block * kUnitBlock},
        gates_, static_cast<int64_t>(rows.size()));
}

}  // namespace backplane::cpu
