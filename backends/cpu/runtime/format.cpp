// SPDX-License-Identifier: Apache-2.0
#include "runtime/format.h"

#include "runtime/processor.h"

namespace backplane::cpu {

int64_t channel_block() {
  static const int64_t kBlock = processor().has(Instructions::kAvx512)  ? 16
                                : processor().has(Instructions::kSse41) ? 8
                                                                        : 0;
  return kBlock;
}

int64_t stored_elements(Format format, const Shape& shape) {
  if (format != Format::kBlocked) return shape.elements();
  int64_t block = channel_block();
  return shape[0] * ((shape[1] + block - 1) / block * block) * shape.elements(2, shape.rank());
}

Shape blocked_view(const Shape& shape) {
  int64_t block = channel_block();
  return {shape[0], (shape[1] + block - 1) / block, shape.elements(2, shape.rank()), block};
}

bool same_bytes(const Shape& shape) {
  return shape[1] % channel_block() == 0 && shape.elements(2, shape.rank()) == 1;
}

}  // namespace backplane::cpu
