// SPDX-License-Identifier: Apache-2.0
// All operators. Coverage and compilation use the same table.
#pragma once

#include "ops/row.h"

namespace backplane::gpu {

// The newest opset of each domain that the backends declare. An operator's last row is valid up to this version.
inline constexpr bp_opset_t kNewestOpsets[] = {{{"", 0}, 28, 0}, {{"com.microsoft", 13}, 1, 0}};

// Each family has a file named after it, with its rows at the end.
std::span<const Row> elementwise_rows();
std::span<const Row> movement_rows();
std::span<const Row> gemm_rows();
std::span<const Row> conv_rows();
std::span<const Row> pool_rows();
std::span<const Row> normalization_rows();
std::span<const Row> reduce_rows();
std::span<const Row> gather_rows();
std::span<const Row> generate_rows();
std::span<const Row> pad_rows();
std::span<const Row> resize_rows();
std::span<const Row> conv_transpose_rows();
std::span<const Row> loss_rows();
std::span<const Row> quantize_rows();
std::span<const Row> attention_rows();
std::span<const Row> group_query_attention_rows();
std::span<const Row> rotary_rows();
std::span<const Row> grid_sample_rows();
std::span<const Row> nbits_rows();

const Table& table();

}  // namespace backplane::gpu
