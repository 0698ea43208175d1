// SPDX-License-Identifier: Apache-2.0
// AMX: eight tile registers of up to 16 rows of 64 bytes, and instructions that multiply two of them. They may be used
// only where processor().amx is set, while the thread holds a TileRegisters.
#pragma once

#include <cstddef>
#include <cstdint>

// Analyzers and sanitizers do not see what these instructions read and write.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang_analyzer__)
#define AMX_TILES
#endif

namespace backplane::cpu::amx {

inline constexpr int64_t kTileRows = 16, kRowBytes = 64;

// Configures the calling thread's registers: 0 to 5 have `rows` rows (sums and A), 6 and 7 have 16 (B). The destructor
// releases the registers, because until then every context switch of the thread, which may be the framework's, saves
// all 8 KB of them. Does nothing where AMX_TILES is not defined.
class TileRegisters {
 public:
  explicit TileRegisters([[maybe_unused]] int64_t rows) {
#ifdef AMX_TILES
    Extents extents;
    for (int tile = 0; tile < 8; ++tile) {
      extents.row_bytes[tile] = kRowBytes;
      extents.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : kTileRows);
    }
    asm volatile("ldtilecfg %0" : : "m"(extents));
#endif
  }
  ~TileRegisters() {
#ifdef AMX_TILES
    asm volatile("tilerelease");
#endif
  }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

 private:
  struct alignas(64) Extents {  // as LDTILECFG reads them
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
};

#ifdef AMX_TILES

// Loads a register from rows that are `step` bytes apart. A step of 0 repeats one row.
template <int kTile>
[[gnu::always_inline]] inline void load(const void* from, int64_t step) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(step), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void store(void* to, int64_t step) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(step), "i"(kTile) : "memory");
}

// Adds to each 32-bit sum the products of the values in a row of A (64 bytes) with those in a column of B. Row i of
// register B has bytes 4i to 4i + 3 of every column.
#define TILE_PRODUCT(Name, instruction)                                                            \
  struct Name {                                                                                    \
    template <int kSums, int kA, int kB>                                                           \
    [[gnu::always_inline]] static inline void add() {                                              \
      asm volatile(#instruction " %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB)); \
    }                                                                                              \
  };
TILE_PRODUCT(UnsignedBySigned, tdpbusd)  // the bytes of A are unsigned, those of B signed
TILE_PRODUCT(SignedBySigned, tdpbssd)
TILE_PRODUCT(SignedByUnsigned, tdpbsud)
TILE_PRODUCT(Bf16s, tdpbf16ps)  // subnormal numbers count as 0
#undef TILE_PRODUCT

// The functions below work on the sums of one or two tiles of rows by one or two blocks of 16 columns, in registers 0
// to 3. In memory, the tiles begin at `first` and `second`; rows of sums are `row` bytes apart, blocks 64 bytes.
template <int kTiles, int kBlocks>
[[gnu::always_inline]] inline void load_sums(const std::byte* first, const std::byte* second, int64_t row) {
  load<0>(first, row);
  if constexpr (kBlocks == 2) load<1>(first + kRowBytes, row);
  if constexpr (kTiles == 2) load<2>(second, row);
  if constexpr (kTiles == 2 && kBlocks == 2) load<3>(second + kRowBytes, row);
}
template <int kTiles, int kBlocks>
[[gnu::always_inline]] inline void store_sums(std::byte* first, std::byte* second, int64_t row) {
  store<0>(first, row);
  if constexpr (kBlocks == 2) store<1>(first + kRowBytes, row);
  if constexpr (kTiles == 2) store<2>(second, row);
  if constexpr (kTiles == 2 && kBlocks == 2) store<3>(second + kRowBytes, row);
}

// Each step multiplies 64 bytes of each row of A.
struct Operands {
  const std::byte* a[2];  // the tiles' first rows
  int64_t a_row;          // bytes from one row to the next
  const std::byte* b[2];  // the blocks
  int64_t b_step;         // bytes from a block's 1 KB for one step to its 1 KB for the next
  int64_t steps;
};
template <class Product, int kTiles, int kBlocks>
[[gnu::always_inline]] inline void add_products(const Operands& operands) {
  const std::byte *a0 = operands.a[0], *a1 = operands.a[1], *b0 = operands.b[0], *b1 = operands.b[1];
  const int64_t a_row = operands.a_row, b_step = operands.b_step;
  for (int64_t step = operands.steps; step > 0; --step) {
    load<6>(b0, kRowBytes);
    load<4>(a0, a_row);
    Product::template add<0, 4, 6>();
    if constexpr (kBlocks == 2) {
      load<7>(b1, kRowBytes);
      Product::template add<1, 4, 7>();
    }
    if constexpr (kTiles == 2) {
      load<5>(a1, a_row);
      Product::template add<2, 5, 6>();
      if constexpr (kBlocks == 2) Product::template add<3, 5, 7>();
    }
    a0 += kRowBytes;
    a1 += kRowBytes;
    b0 += b_step;
    b1 += b_step;
  }
}

#endif

}  // namespace backplane::cpu::amx
