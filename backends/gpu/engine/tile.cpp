// SPDX-License-Identifier: Apache-2.0
#include "engine/tile.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "engine/device_caps.h"

namespace backplane::gpu {
namespace {

// Tiles whose sums fit into vector registers together with a line (row) of matrix B: for 32 registers of 512 bits, or
// 16 of 256 or 128 bits.
constexpr Tile kForCpus[] = {{8, 16, 2}, {16, 16, 1}, {12, 16, 2}, {4, 16, 4}, {6, 8, 2}, {4, 8, 2}, {6, 4, 2}};
// Tiles for groups of 64 to 256 work items that share lines in local memory. The last two use no local memory.
constexpr Tile kForOthers[] = {{4, 4, 2, 16, 8, 8},
                               {8, 4, 2, 8, 8, 16},
                               {8, 4, 2, 16, 16, 16},
                               {4, 4, 1, 16, 16, 16},
                               {2, 4, 1, 16, 8, 16},
                               {4, 4, 2},
                               {8, 4, 1}};

int64_t below(int64_t limit, int64_t n) {
  return n >= limit ? limit : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
}

// The smallest extent of a group along z with which z work items form at most `most` groups. It divides z, as kernels
// do not check their bounds along z, and is at most `limit` and at most 64, CUDA's limit. Returns 1 if there is none.
size_t depth_of_groups(int64_t z, size_t most, size_t limit) {
  const auto all = static_cast<size_t>(std::max<int64_t>(z, 1));
  for (size_t depth = (all - 1) / most + 1; depth <= std::min<size_t>(limit, 64); ++depth)
    if (all % depth == 0) return depth;
  return 1;
}

}  // namespace

std::string macro(const char* name, int64_t value) {
  return " -D" + std::string(name) + "=" + std::to_string(value);
}

std::string Tile::macros() const {
  std::string all = macro("ROWS", rows) + macro("VECTOR", vector) + macro("COLUMNS", columns);
  if (depth != 0)
    all += macro("DEPTH", depth) + macro("GROUP_ROWS", group_rows) + macro("GROUP_COLUMNS", group_columns);
  return all;
}

std::string Tile::text() const {
  std::string all = std::to_string(rows) + "x" + std::to_string(vector) + "x" + std::to_string(columns);
  if (depth != 0)
    all += "/" + std::to_string(depth) + ":" + std::to_string(group_rows) + "x" + std::to_string(group_columns);
  return all;
}

Ranges ranges_of_items(const DeviceCaps& caps, int64_t x, int64_t y, int64_t z, size_t widest) {
  // Along x and y, group sizes are powers of two, as some drivers recompile a kernel for each size. On a CPU, starting
  // a group costs as much as many work items, but each core should get several groups.
  const auto up = [](int64_t n) { return std::bit_ceil(static_cast<size_t>(std::max<int64_t>(n, 1))); };
  const size_t share = up(x) * up(y) * static_cast<size_t>(std::max<int64_t>(z, 1)) / (size_t{caps.units} * 8);
  const size_t most = caps.kind == BP_DEVICE_CPU ? std::bit_floor(std::clamp<size_t>(share, 16, 1024)) : 256;
  const size_t items = std::min<size_t>(std::bit_floor(caps.max_group), most);
  // Groups extend as far along y and z as the device's limits on the number of groups along y and z require.
  const size_t least_y = std::min(items, up((y - 1) / static_cast<int64_t>(caps.max_groups_across) + 1));
  const size_t lz = depth_of_groups(z, caps.max_groups_across, items / least_y);
  const size_t rest = std::bit_floor(items / lz);
  const size_t lx = std::min({rest / least_y, widest, up(x)});
  const size_t ly = std::min(rest / lx, up(y));
  const auto whole = [](int64_t n, size_t l) { return (static_cast<size_t>(n) + l - 1) / l * l; };
  return {{whole(x, lx), whole(y, ly), static_cast<size_t>(z)}, {lx, ly, lz}};
}

Ranges Tile::ranges(int64_t m, int64_t n, int64_t lines, int64_t batch) const {
  const auto count = [](int64_t items, int64_t size) { return static_cast<size_t>((items + size - 1) / size); };
  const auto z = static_cast<size_t>(batch), all_lines = static_cast<size_t>(lines);
  if (depth == 0) return {{count(m, rows), all_lines * count(n, width()), z}, {1, 1, 1}};
  const auto x = static_cast<size_t>(group_columns), y = static_cast<size_t>(group_rows);
  return {{count(n, group_columns * width()) * x, count(m, group_rows * rows) * y, z}, {x, y, 1}};
}

std::span<const Tile> tiles(uint32_t device_kind) {
  return device_kind == BP_DEVICE_CPU ? std::span<const Tile>(kForCpus) : std::span<const Tile>(kForOthers);
}

bool fits(const DeviceCaps& caps, const Tile& tile) {
  if (caps.kind == BP_DEVICE_CPU && tile.vector > std::max<int64_t>(4, caps.float_lanes)) return false;
  const int64_t lines = tile.group_rows * tile.rows + tile.group_columns * tile.width();
  return tile.group_rows * tile.group_columns <= static_cast<int64_t>(caps.max_group) &&
         tile.depth * lines * 8 <= static_cast<int64_t>(caps.local_bytes);  // 8 bytes for a double
}

std::vector<Tile> tiles_that_fit(const DeviceCaps& caps) {
  std::vector<Tile> fitting;
  for (const std::span<const Tile> all : {std::span<const Tile>(kForCpus), std::span<const Tile>(kForOthers)}) {
    std::ranges::copy_if(all, std::back_inserter(fitting), [&](const Tile& tile) { return fits(caps, tile); });
  }
  return fitting;
}

std::optional<Tile> tile_named(std::string_view text) {
  for (const std::span<const Tile> all : {std::span<const Tile>(kForCpus), std::span<const Tile>(kForOthers)}) {
    for (const Tile& tile : all) {
      if (tile.text() == text) return tile;
    }
  }
  return std::nullopt;
}

Tile tile_for(const DeviceCaps& caps, int64_t m, int64_t n, bp_dtype_t dtype) {
  Tile tile = caps.tile;
  if (dtype != BP_DTYPE_FLOAT) tile.vector = 1;
  if (tile.depth != 0) return tile;  // the kernel checks bounds at the edges
  tile.rows = below(tile.rows, m);
  tile.vector = below(tile.vector, n);
  // Few rows leave registers for more columns.
  tile.columns = below(std::min<int64_t>(8, caps.tile.rows * caps.tile.columns / tile.rows), n / tile.vector);
  return tile;
}

}  // namespace backplane::gpu
