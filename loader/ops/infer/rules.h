// SPDX-License-Identifier: Apache-2.0
// The rules that infer shapes, for the newest form of each operator. Each family of operators has a table.
#pragma once

#include <span>

#include "ops/infer/context.h"

namespace backplane::ops {

using Rule = Status (*)(Context&);

struct RuleRow {
  std::string_view domain;
  std::string_view op;
  Rule rule;
};

std::span<const RuleRow> attention_rules();
std::span<const RuleRow> control_rules();
std::span<const RuleRow> convolution_rules();
std::span<const RuleRow> elementwise_rules();
std::span<const RuleRow> generator_rules();
std::span<const RuleRow> gather_rules();
std::span<const RuleRow> layout_rules();
std::span<const RuleRow> loss_rules();
std::span<const RuleRow> matmul_rules();
std::span<const RuleRow> microsoft_rules();
std::span<const RuleRow> ml_rules();
std::span<const RuleRow> normalization_rules();
std::span<const RuleRow> pooling_rules();
std::span<const RuleRow> quantization_rules();
std::span<const RuleRow> recurrent_rules();
std::span<const RuleRow> reduction_rules();
std::span<const RuleRow> sequence_rules();
std::span<const RuleRow> shape_rules();
std::span<const RuleRow> signal_rules();
std::span<const RuleRow> slice_rules();
std::span<const RuleRow> text_rules();
std::span<const RuleRow> vision_rules();

// The rule of a form. Null for older forms, and for operators whose schema alone determines what is inferred.
Rule rule_of(const Schema& schema);
// The rule of an operator that has no schema (those in microsoft.cpp), or null. Types that it cannot infer stay
// unknown.
Rule foreign_rule(std::string_view domain, std::string_view op);

// Rules that several families share.
Status same_shape(Context& c);  // output 0 has the shape of input 0
// Set the output shape of a Conv with inputs X, W and B. In nhwc_convolution the channels are the last axis of X, W and
// the output. Neither sets the data type.
Status fused_convolution(Context& c);
Status nhwc_convolution(Context& c);
// Sets the output's known elements to f(x) for each element x of the input.
template <class F>
void map_known_data(Context& c, F&& f) {
  const KnownData* x = c.elements(0);
  if (!x) return;
  KnownData result(*x);
  for (Scalar& scalar : result) scalar = f(scalar);
  c.set_known_data(0, std::move(result));
}

}  // namespace backplane::ops
