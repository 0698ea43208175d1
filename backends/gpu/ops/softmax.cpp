// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax.h"

#include <algorithm>
#include <bit>

#include "ops/rows.h"

namespace backplane::gpu {

void emit_softmax(Emit& e, const Tensor& x, const Tensor& y, size_t axis, std::string_view kind) {
  const Rows rows = rows_of(e.caps(), x.shape, axis, axis + 1);
  const int64_t vector = std::min<int64_t>(std::bit_floor(e.caps().float_lanes), 16);
  if (e.caps().kind == BP_DEVICE_CPU && x.dtype == BP_DTYPE_FLOAT && vector > 1 && rows.inner == 1 &&
      rows.n >= vector && (kind == "0" || kind == "1")) {
    e.launch("softmax_vector", "softmax_vector", "-DVECTOR=" + std::to_string(vector) + " -DKIND=" + std::string(kind))
        .in(x)
        .out(y)
        .arg(rows.count())
        .arg(rows.n)
        .range(rows.count());
    return;
  }
  LaunchBuilder launch =
      e.launch("softmax", "softmax", "-DTYPE=" + Emit::type(x) + rows.macros() + " -DKIND=" + std::string(kind));
  launch.in(x).out(y).arg(rows.count()).arg(rows.n).arg(rows.inner);
  rows.range(launch);
}

}  // namespace backplane::gpu
