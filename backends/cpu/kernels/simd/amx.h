// SPDX-License-Identifier: Apache-2.0
// AMX: eight tile registers of up to 16 rows of 64 bytes, and instructions that multiply two of them. They may be used
// only where processor().amx is set, while the thread has a TileRegisters.
#pragma once

#include <cstdint>

// Analyzers and sanitizers do not see what these instructions read and write.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang_analyzer__)
#define AMX_TILES
#endif

namespace backplane::cpu::amx {

inline constexpr int64_t kTileRows = 16, kRowBytes = 64;

// Configures the calling thread's registers: 0 to 5 have `rows` rows (sums and A), 6 and 7 have 16 (B). They are
// released at the end, so that a thread of the framework returns without any: until then, each switch between threads
// would save all 8 KB of them. Does nothing where the compiler lacks them.
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

// Adds products to 32-bit sums: those of four bytes of a row of A, and of the four bytes at each column of B. Row i of
// B has bytes 4i to 4i+3 of all columns.
#define TILE_PRODUCT(name)                                                                    \
  template <int kSums, int kA, int kB>                                                        \
  [[gnu::always_inline]] inline void name() {                                                 \
    asm volatile("t" #name " %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kA), "i"(kB)); \
  }
TILE_PRODUCT(dpbusd)  // A unsigned, B signed
TILE_PRODUCT(dpbssd)  // both signed
TILE_PRODUCT(dpbsud)  // A signed, B unsigned
#undef TILE_PRODUCT

#endif

}  // namespace backplane::cpu::amx
