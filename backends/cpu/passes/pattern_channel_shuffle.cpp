// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/channel_shuffle.h"
#include "passes/patterns.h"

namespace backplane::cpu {

void find_channel_shuffle(FusionGraph& g, uint32_t split) {
  const uint32_t x = g.call(split).inputs[0], parts = g.result(split);
  const uint32_t swap = g.sole_reader(parts, {"Transpose"});
  if (swap == BP_NONE || g.value(x).dtype != BP_DTYPE_FLOAT) return;
  const uint32_t join = g.sole_reader(g.result(swap), {"Reshape"});
  if (join == BP_NONE || g.call(join).inputs[0] != g.result(swap)) return;
  const std::vector<int64_t> order = g.node(swap).ints("perm");
  const bp_type_t &from = g.type(x), &between = g.type(parts);
  if (!g.same_extents(x, g.result(join)) || from.rank < 3 || between.rank != from.rank + 1) return;
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != (d == 1 ? 2 : d == 2 ? 1 : static_cast<int64_t>(d))) return;
  }
  for (int32_t d = 0; d < from.rank; ++d) {
    if (d != 1 && !g.same_extent(from, d, between, d == 0 ? 0 : d + 1)) return;
  }
  const int64_t groups = g.extent(parts, 1), each = g.extent(parts, 2);
  if (order.size() != static_cast<size_t>(between.rank) || groups < 1 || each < 1 || groups * each != g.extent(x, 1))
    return;
  const uint32_t joined[] = {split, swap, join};
  g.replace(joined, make_channel_shuffle(groups), {x});
  g.add_shuffle(g.result(join), {join, x, groups});
}

}  // namespace backplane::cpu
