// SPDX-License-Identifier: Apache-2.0
// Products of rows with the weights of recurrent gates. A unit is one element of the hidden state. The weights
// [gate][unit][input] are packed into panels, one for each block of units: [input][gate][unit in the block]. A row is
// then read once for all gates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernel.h"

namespace backplane::cpu {

// The number of units in a block. Data by unit are padded to whole blocks. The padding may have any value, since
// results do not depend on it.
inline constexpr int64_t kUnitBlock = 16;
inline int64_t unit_blocks(int64_t units) {
  return (units + kUnitBlock - 1) / kUnitBlock;
}
// The maximum number of gate values that are computed ahead of the time steps, so that they stay in the cache.
inline constexpr int64_t kGateFloats = int64_t{1} << 16;

// Computes y = from + weights · x for one row. `from` and `y`, which may be the same, are [gate][padded unit].
struct GateRow {
  const float* x;
  const float* from;
  float* y;
};

class GatePanels {
 public:
  GatePanels(int64_t gates, int64_t units, int64_t inputs) : gates_(gates), units_(units), inputs_(inputs) {}

  int64_t gates() const { return gates_; }
  int64_t weights() const { return gates_ * units_ * inputs_; }
  // The number of floats in the panels.
  int64_t count() const { return unit_blocks(units_) * kUnitBlock * gates_ * inputs_; }

  // Packs weights from floats at `from`, which may be unaligned.
  void pack(const std::byte* from, float* panels) const;
  // Advances each row's `from` and `y` by `offset` floats, then computes the unit blocks [first, last) of all rows, on
  // the calling thread.
  void multiply(const float* panels, std::span<const GateRow> rows, int64_t offset, int64_t first, int64_t last) const;

 private:
  int64_t gates_, units_, inputs_;
};

}  // namespace backplane::cpu
