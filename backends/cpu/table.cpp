// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include "kernels/float16/compute_in_fp32.h"
#include "kernels/onednn/reorder.h"
#include "kernels/q8/q8_conv.h"
#include "kernels/text/text_movement.h"
#include "operator_rows.h"
#include "passes/fuse_quantized.h"
#include "passes/fusion.h"

namespace backplane::cpu {

namespace {

Operators::Parts all_parts() {
  Operators::Parts parts{.rows = {},
                         .create_in_fp32 = create_in_fp32,
                         .make_reorder = make_reorder,
                         .early_passes = {fuse_quantized},
                         .late_passes = {fuse},
                         .implementations = {q8_implementations()}};
  for (auto rows : kOperatorRows) {
    const std::span<const Row> family = rows();
    parts.rows.insert(parts.rows.end(), family.begin(), family.end());
  }
  const std::vector<Row> texts = text_movement_rows(parts.rows);
  parts.rows.insert(parts.rows.end(), texts.begin(), texts.end());
  return parts;
}

}  // namespace

const Operators& operators() {
  static const Operators kOperators(all_parts());
  return kOperators;
}

}  // namespace backplane::cpu
