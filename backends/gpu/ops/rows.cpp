// SPDX-License-Identifier: Apache-2.0
#include "ops/rows.h"

#include <algorithm>
#include <bit>

#include "ops/table.h"

namespace backplane::gpu {

Rows rows_of(const DeviceCaps& caps, const Shape& shape, size_t begin, size_t end) {
  Rows rows{elements(shape, 0, begin), elements(shape, begin, end), elements(shape, end, shape.size())};
  if (rows.inner != 1) return rows;
  // On a CPU as many lanes as a vector register has floats, on a GPU up to 64; fewer if n is less than 4 times as much.
  const int64_t wanted = caps.kind == BP_DEVICE_CPU ? std::max<int64_t>(caps.float_lanes, 1) : 64;
  const int64_t most = std::min(wanted, static_cast<int64_t>(caps.max_group));
  rows.lanes = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(rows.n / 4, 1, most))));
  return rows;
}

std::string extreme(bp_dtype_t dtype, bool least) {
  if (is_float(dtype)) return least ? "(-INFINITY)" : "INFINITY";
  if (dtype == BP_DTYPE_BOOL) return least ? "0" : "1";
  const bool is_signed = (kSignedIntegers >> dtype & 1) != 0;
  const std::string bits = std::to_string(bytes_of(dtype) * 8);
  if (!is_signed) return least ? "0" : "(C(TYPE))~(C(TYPE))0";
  const std::string highest = "(long)(((ulong)1 << (" + bits + " - 1)) - 1)";
  return "(C(TYPE))(" + (least ? "-" + highest + " - 1" : highest) + ")";
}

void Rows::range(LaunchBuilder& launch) const {
  if (lanes == 1) return launch.range(count());
  launch.groups({count(), 1, 1}, {static_cast<size_t>(lanes), 1, 1});
}

}  // namespace backplane::gpu
