// SPDX-License-Identifier: Apache-2.0
#include "runtime/operators.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace backplane::cpu {

namespace {

// Returns the kinds of operands that the node has in addition to tensors of numbers: bits kTexts and kContainers.
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

bool is_16_bit_float(const bp_type_t& type) {
  return type.dtype == BP_DTYPE_FLOAT16 || type.dtype == BP_DTYPE_BFLOAT16;
}

}  // namespace

Operators::Operators(Parts parts) : parts_(std::move(parts)) {
  std::set<ImplementationNames (*)()> seen;
  for (const Row& row : parts_.rows) {
    if (row.implementations != nullptr && seen.insert(row.implementations).second)
      parts_.implementations.push_back(row.implementations());
  }
  std::ranges::sort(parts_.implementations, {}, &ImplementationNames::family);
  for (auto row = parts_.rows.rbegin(); row != parts_.rows.rend(); ++row) by_op_type_[row->op_type].push_back(&*row);
  for (auto& [op_type, rows] : by_op_type_) std::ranges::stable_sort(rows, std::greater(), &Row::since_version);
}

const Row* Operators::find(const Node& node) const {
  const auto rows = by_op_type_.find(node.op_type());
  if (rows == by_op_type_.end()) return nullptr;
  const uint32_t needs = needs_of(node);
  const Row* other = nullptr;  // the newest row that also accepts kinds of operands that this node does not have
  for (const Row* row : rows->second) {
    if (row->since_version > node.since_version() || row->domain != node.domain()) continue;
    if ((row->operand_kinds & needs) != needs) continue;
    if (row->operand_kinds == 0 || needs != 0) return row;
    if (other == nullptr) other = row;
  }
  return other;
}

const Row* Operators::find_operator(const Node& node) const {
  const auto rows = by_op_type_.find(node.op_type());
  if (rows == by_op_type_.end()) return nullptr;
  const auto oldest = std::find_if(rows->second.rbegin(), rows->second.rend(),
                                   [&](const Row* row) { return row->domain == node.domain(); });
  return oldest != rows->second.rend() ? *oldest : nullptr;
}

std::unique_ptr<Kernel> Operators::create(const Row& row, const Node& node, bool reference) const {
  bool has_16_bit = false;
  for (uint32_t i = 0; i < node.input_count(); ++i) has_16_bit = has_16_bit || is_16_bit_float(node.input_type(i));
  return has_16_bit && !reference && row.half != HalfRule::kOwn ? parts_.create_in_fp32(row, node) : row.create(node);
}

}  // namespace backplane::cpu
