// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/broadcast.h"

namespace backplane::cpu {

std::optional<Shape> broadcast_shape(std::span<const Shape> shapes) {
  int rank = 0;
  for (const Shape& shape : shapes) rank = std::max(rank, shape.rank());
  Shape result;
  for (int i = 0; i < rank; ++i) {
    int64_t extent = 1;
    for (const Shape& shape : shapes) {
      const int own = i - (rank - shape.rank());
      if (own < 0 || shape[own] == 1) continue;
      if (extent != 1 && extent != shape[own]) return std::nullopt;
      extent = shape[own];
    }
    result.push_back(extent);
  }
  if (!countable(result)) throw_uncountable(result);
  return result;
}

}  // namespace backplane::cpu
