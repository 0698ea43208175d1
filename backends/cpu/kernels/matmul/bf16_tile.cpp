// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/bf16_tile.h"

#include <algorithm>
#include <cstring>

#include "kernels/simd/amx.h"
#include "kernels/simd/lanes.h"
#include "runtime/processor.h"

namespace backplane::cpu {

#ifdef AMX_TILES

namespace {

typedef float Floats __attribute__((vector_size(64)));
typedef uint16_t Bf16s __attribute__((vector_size(64)));

const std::byte* bytes(const uint16_t* values) {
  return reinterpret_cast<const std::byte*>(values);
}

// The second tile begins at row `second` and may overlap the first. The sums of a row in both are then computed twice,
// with the same result.
template <int kTiles, int kBlocks>
void multiply(const Bf16Tile& t, int64_t second) {
  const int64_t y_row = t.y_row * int64_t{sizeof(float)};
  const auto* starts = reinterpret_cast<const std::byte*>(t.starts);
  auto* y = reinterpret_cast<std::byte*>(t.y);
  amx::load_sums<kTiles, kBlocks>(starts, starts, 0);
  amx::add_products<amx::Bf16s, kTiles, kBlocks>({{bytes(t.a), bytes(t.a + second * t.a_row)},
                                                  t.a_row * int64_t{sizeof(uint16_t)},
                                                  {bytes(t.b), bytes(t.b + t.b_block)},
                                                  kBf16Step * kBf16Columns * int64_t{sizeof(uint16_t)},
                                                  t.steps});
  amx::store_sums<kTiles, kBlocks>(y, y + second * y_row, y_row);
}

FOR_AVX512 void round_all(const float* x, int64_t count, uint16_t* y) {
  constexpr int64_t kTogether = 32;
  for (int64_t i = 0; i < count; i += kTogether) {
    float part[kTogether] = {};
    const bool whole = count - i >= kTogether;
    if (!whole) std::copy_n(x + i, count - i, part);
    const float* from = whole ? x + i : part;
    Floats low, high;
    std::memcpy(&low, from, sizeof(low));
    std::memcpy(&high, from + kTogether / 2, sizeof(high));
    Bf16s rounded;
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(rounded) : "v"(high), "v"(low));
    std::memcpy(y + i, &rounded, static_cast<size_t>(std::min(kTogether, count - i)) * sizeof(uint16_t));
  }
}

}  // namespace

bool has_bf16_tiles() {
  return processor().amx;
}

void multiply_bf16(const Bf16Tile& tile, int64_t blocks, int64_t rows, int64_t register_rows) {
  const bool both = rows > register_rows;
  void (*const kernel)(const Bf16Tile&, int64_t) =
      blocks == 2 ? (both ? multiply<2, 2> : multiply<1, 2>) : (both ? multiply<2, 1> : multiply<1, 1>);
  kernel(tile, rows - register_rows);
}

void round_to_bf16(const float* x, int64_t count, uint16_t* y) {
  round_all(x, count, y);
}

#else

bool has_bf16_tiles() {
  return false;
}

void multiply_bf16(const Bf16Tile&, int64_t, int64_t, int64_t) {}

void round_to_bf16(const float*, int64_t, uint16_t*) {}

#endif

}  // namespace backplane::cpu
