// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <tuple>

#include "ops/in_float.h"
#include "ops/rows.h"

namespace backplane::cpu {

namespace {

using Rows = std::span<const Row> (*)();

// All operator families.
constexpr Rows kFamilies[] = {
    unary_rows,
    binary_rows,
    clip_rows,
    cast_rows,
    reshape_rows,
    copy_rows,
    concat_rows,
    pad_rows,
    gather_rows,
    scatter_rows,
    constant_rows,
    reduce_rows,
    arg_reduce_rows,
    cumulative_rows,
    select_rows,
    top_k_rows,
    resize_rows,
    layer_norm_rows,
    recurrent_rows,
    random_rows,
    signal_rows,
    loss_rows,
    region_rows,
    grid_rows,
    unpool_rows,
    einsum_rows,
    det_rows,
    conv_rows,
    conv_transpose_rows,
    matmul_rows,
    gemm_rows,
    pool_rows,
    batch_normalization_rows,
    lrn_rows,
    softmax_rows,
    quantize_rows,
    quantized_rows,
    control_rows,
    sequence_rows,
    text_rows,
    text_cast_rows,
    text_movement_rows,
    tf_idf_rows,
    attention_rows,
    flex_attention_rows,
    rotary_rows,
    linear_attention_rows,
    deform_conv_rows,
    image_decoder_rows,
    optimizer_rows,
    fused_rows,
    fused_matmul_rows,
    gelu_rows,
    group_query_attention_rows,
    matmul_nbits_rows,
    qlinear_rows,
    skip_layer_norm_rows,
    ml_feature_rows,
    ml_label_rows,
    ml_linear_rows,
    ml_map_rows,
    ml_scale_rows,
    ml_svm_rows,
    ml_tree_rows,
};

std::vector<Row> concatenate() {
  std::vector<Row> all;
  for (Rows rows : kFamilies) {
    std::span<const Row> family = rows();
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

auto key(const Row* row) {
  return std::tuple(row->op_type, row->domain, row->since_version);
}

// The rows in the order of their keys.
const std::vector<const Row*>& index() {
  static const std::vector<const Row*> kSorted = [] {
    std::vector<const Row*> rows;
    for (const Row& row : table()) rows.push_back(&row);
    std::ranges::stable_sort(rows, {}, key);
    return rows;
  }();
  return kSorted;
}

// What the node's operands are beside tensors of numbers.
uint32_t needs_of(const Node& node) {
  uint32_t needs = 0;
  auto add = [&](const bp_type_t& type) {
    if (type.kind > BP_KIND_TENSOR) needs |= kContainers;
    if (type.kind == BP_KIND_TENSOR && type.dtype == BP_DTYPE_STRING) needs |= kTexts;
  };
  for (uint32_t i = 0; i < node.input_count(); ++i) add(node.input_type(i));
  for (uint32_t i = 0; i < node.output_count(); ++i) add(node.output_type(i));
  return needs;
}

bool same_operator(const Row& row, const Node& node) {
  return row.op_type == node.op_type() && row.domain == node.domain();
}

}  // namespace

std::span<const Row> table() {
  static const std::vector<Row> kRows = concatenate();
  return kRows;
}

const Row* find_row(const Node& node) {
  auto wanted = std::tuple(node.op_type(), node.domain(), node.since_version());
  uint32_t needs = needs_of(node);
  const Row* other = nullptr;  // takes more than there is
  for (auto after = std::ranges::upper_bound(index(), wanted, {}, key); after != index().begin(); --after) {
    const Row* row = *std::prev(after);
    if (!same_operator(*row, node)) break;
    if ((row->takes & needs) != needs) continue;
    if (row->takes == 0 || needs != 0) return row;
    if (other == nullptr) other = row;
  }
  return other;
}

const Row* find_operator(const Node& node) {
  auto first = std::ranges::lower_bound(index(), std::tuple(node.op_type(), node.domain(), 0u), {}, key);
  return first != index().end() && same_operator(**first, node) ? *first : nullptr;
}

std::unique_ptr<Kernel> create_kernel(const Row& row, const Node& node) {
  if (auto kernel = create_in_float(row, node)) return kernel;
  return row.create(node);
}

}  // namespace backplane::cpu
