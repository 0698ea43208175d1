// SPDX-License-Identifier: Apache-2.0
// Products of rows with the weights of recurrent gates. The weights of some gates, [gate][unit][input], are packed as
// panels: for each block of units [input][gate][unit of the block], so that a row is read once for all gates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/kernel.h"

namespace backplane::cpu {

// Units of a block. Data for each unit are padded to whole blocks. The padding may have any value, as results do not
// depend on it.
inline constexpr int64_t kUnitBlock = 16;
inline int64_t unit_blocks(int64_t units) {
  return (units + kUnitBlock - 1) / kUnitBlock;
}

// y = from + weights · x for one row; `y` may be `from`. Both are [gate][padded unit].
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
  int64_t count() const { return unit_blocks(units_) * kUnitBlock * gates_ * inputs_; }  // floats in the panels

  // Packs floats at any address.
  void pack(const std::byte* from, float* panels) const;
  // Computes blocks [first, last) of all rows, on the calling thread. `offset` is added to the rows' `from` and `y`.
  void multiply(const float* panels, std::span<const GateRow> rows, int64_t offset, int64_t first, int64_t last) const;

 private:
  int64_t gates_, units_, inputs_;
};

}  // namespace backplane::cpu
