// SPDX-License-Identifier: Apache-2.0
// The tiling of matrix products for a device: what a work item and a work group of kernels/gemm.cl compute.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/status.h"
#include "backplane/types.h"
#include "engine/driver.h"

namespace backplane::gpu {

struct DeviceCaps;

// Ranges for x × y × z independent work items. Along x and y they are rounded up to whole groups of a size that suits
// the device, so kernels must check these bounds. Groups extend along x first, up to `widest` items.
Ranges ranges_of_items(const DeviceCaps& caps, int64_t x, int64_t y = 1, int64_t z = 1, size_t widest = SIZE_MAX);

// The compiler option that defines a kernel's macro: " -DNAME=value".
std::string macro(const char* name, int64_t value);

struct Tile {
  int64_t rows, vector, columns;  // a work item computes `rows` × (`columns` vectors of `vector` elements)
  // A work group loads `depth` columns of the left matrix and `depth` rows of the right one into local memory at a
  // time. With depth 0, work items share nothing.
  int64_t depth = 0, group_rows = 1, group_columns = 1;

  bool operator==(const Tile&) const = default;
  int64_t width() const { return vector * columns; }
  std::string macros() const;
  std::string text() const;  // "8x16x2"; with local memory, depth:group_rows x group_columns follow: "8x4x1/16:16x16"
  // For `batch` products of m rows and `lines` × n columns, where no tile crosses from one line of n columns into the
  // next. Tiles with local memory require `lines` to be 1.
  Ranges ranges(int64_t m, int64_t n, int64_t lines, int64_t batch) const;
};

// The tuner's candidates. Without measurements, the first one that fits is used.
std::span<const Tile> tiles(uint32_t device_kind);
// Whether the device can run the tile: the device's local memory, groups and, on a CPU, vectors are large enough.
bool fits(const DeviceCaps& caps, const Tile& tile);
// All tiles that the device can run, including those for other kinds of device: the values of the option `tile`.
std::vector<Tile> tiles_that_fit(const DeviceCaps& caps);
// The tile whose text() is `text`, or nullopt if there is none.
std::optional<Tile> tile_named(std::string_view text);

// The device's tile for a product of m × n elements. Types other than fp32 use no vectors. Without local memory, the
// tile is adapted to be no larger than the product.
Tile tile_for(const DeviceCaps& caps, int64_t m, int64_t n, bp_dtype_t dtype);

}  // namespace backplane::gpu
