// SPDX-License-Identifier: Apache-2.0
// The operator cases of profile `core`: what fp32 CNNs and transformer encoders use.
#pragma once

#include "cases/problem.h"

namespace backplane::conform {

class OpCases {
 public:
  // Adds "Op/type/variant".
  void add(const std::string& op, bp_dtype_t dtype, const std::string& variant, std::function<Problem(Random&)> make);
  const std::vector<OpCase>& all() const { return cases_; }

 private:
  std::vector<OpCase> cases_;
};

// One file for each family, as in oracle/.
void add_unary_cases(OpCases& cases);
void add_binary_cases(OpCases& cases);
void add_dot_cases(OpCases& cases);
void add_conv_cases(OpCases& cases);
void add_pool_cases(OpCases& cases);
void add_normalize_cases(OpCases& cases);
void add_reduce_cases(OpCases& cases);
void add_shape_cases(OpCases& cases);
void add_select_cases(OpCases& cases);
void add_resize_cases(OpCases& cases);

// All of them, made once.
const std::vector<OpCase>& core_cases();
// The first case of an operator: a plain one.
const OpCase& plain_case(std::string_view op);

}  // namespace backplane::conform
