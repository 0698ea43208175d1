// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

constexpr std::span<const RuleRow> (*kFamilies[])() = {
    attention_rules,    control_rules,   convolution_rules, elementwise_rules, generator_rules,     gather_rules,
    layout_rules,       loss_rules,      matmul_rules,      ml_rules,          normalization_rules, pooling_rules,
    quantization_rules, recurrent_rules, reduction_rules,   sequence_rules,    shape_rules,         signal_rules,
    slice_rules,        text_rules,      vision_rules,
};

// Builds the table of rules. Its indices are those of all_schemas().
std::vector<Rule> make_table() {
  std::vector<Rule> table(all_schemas().size());
  for (auto* family : kFamilies) {
    for (const RuleRow& row : family()) {
      const Schema* schema = newest_schema(row.domain, row.op);
      while (schema && schema->deprecated) schema = schema->older;  // the newest form that is not deprecated
      if (schema) table[schema - all_schemas().data()] = row.rule;
    }
  }
  return table;
}

}  // namespace

Rule rule_of(const Schema& schema) {
  static const std::vector<Rule> kTable = make_table();
  return kTable[&schema - all_schemas().data()];
}

Rule foreign_rule(std::string_view domain, std::string_view op) {
  for (const RuleRow& row : microsoft_rules()) {
    if (row.domain == domain && row.op == op) return row.rule;
  }
  return nullptr;
}

Status same_shape(Context& c) {
  c.copy_shape(0, 0);
  return {};
}

}  // namespace backplane::ops
