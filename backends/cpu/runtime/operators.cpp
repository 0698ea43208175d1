// SPDX-License-Identifier: Apache-2.0
#include "runtime/operators.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace backplane::cpu {

namespace {

auto key(const Row* row) {
  return std::tuple(row->op_type, row->domain, row->since_version);
}

// Returns what the node's row must accept in addition to tensors of numbers: bits kTexts and kContainers.
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

bool is_half(const bp_type_t& type) {
  return type.dtype == BP_DTYPE_FLOAT16 || type.dtype == BP_DTYPE_BFLOAT16;
}

}  // namespace

Operators::Operators(Parts parts) : parts_(std::move(parts)) {
  for (const Row& row : parts_.rows) sorted_.push_back(&row);
  std::ranges::stable_sort(sorted_, {}, key);
}

const Row* Operators::find(const Node& node) const {
  const auto wanted = std::tuple(node.op_type(), node.domain(), node.since_version());
  const uint32_t needs = needs_of(node);
  const Row* other = nullptr;  // the newest row that also accepts kinds of operands that this node does not have
  for (auto after = std::ranges::upper_bound(sorted_, wanted, {}, key); after != sorted_.begin(); --after) {
    const Row* row = *std::prev(after);
    if (!same_operator(*row, node)) break;
    if ((row->operand_kinds & needs) != needs) continue;
    if (row->operand_kinds == 0 || needs != 0) return row;
    if (other == nullptr) other = row;
  }
  return other;
}

const Row* Operators::find_operator(const Node& node) const {
  auto first = std::ranges::lower_bound(sorted_, std::tuple(node.op_type(), node.domain(), 0u), {}, key);
  return first != sorted_.end() && same_operator(**first, node) ? *first : nullptr;
}

std::unique_ptr<Kernel> Operators::create(const Row& row, const Node& node, bool reference) const {
  bool has_half = false;
  for (uint32_t i = 0; i < node.input_count(); ++i) has_half = has_half || is_half(node.input_type(i));
  return has_half && !reference && row.half != HalfRule::kOwn ? parts_.create_in_fp32(row, node) : row.create(node);
}

}  // namespace backplane::cpu
