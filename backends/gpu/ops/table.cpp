// SPDX-License-Identifier: Apache-2.0
#include "ops/table.h"

namespace backplane::gpu {

const Table& table() {
  static const Table kTable(
      {elementwise_rows(), movement_rows(), generate_rows(), gather_rows(), reduce_rows(), normalization_rows(),
       gemm_rows(), attention_rows(), group_query_attention_rows(), rotary_rows(), nbits_rows(), conv_rows(),
       conv_transpose_rows(), pool_rows(), pad_rows(), resize_rows(), grid_sample_rows(), quantize_rows(), loss_rows()},
      kNewestOpsets);
  return kTable;
}

}  // namespace backplane::gpu
