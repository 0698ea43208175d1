// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>
#include <tuple>

#include "kernels/float16/in_float.h"
#include "kernels/text/text_movement.h"
#include "operator_rows.h"

namespace backplane::cpu {

namespace {

std::vector<Row> concatenate() {
  std::vector<Row> all;
  for (auto rows : kOperatorRows) {
    std::span<const Row> family = rows();
    all.insert(all.end(), family.begin(), family.end());
  }
  const std::vector<Row> texts = text_movement_rows(all);
  all.insert(all.end(), texts.begin(), texts.end());
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
