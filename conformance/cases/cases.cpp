// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <stdexcept>

#include "backplane/graph.hpp"

namespace backplane::conform {

void OpCases::add(const std::string& op, bp_dtype_t dtype, const std::string& variant,
                  std::function<Problem(Random&)> make) {
  cases_.push_back({op + "/" + std::string(view::dtype_name(dtype)) + "/" + variant, op, std::move(make)});
}

const std::vector<OpCase>& core_cases() {
  static const OpCases cases = [] {
    OpCases all;
    add_unary_cases(all);
    add_binary_cases(all);
    add_dot_cases(all);
    add_conv_cases(all);
    add_pool_cases(all);
    add_normalize_cases(all);
    add_reduce_cases(all);
    add_shape_cases(all);
    add_select_cases(all);
    add_resize_cases(all);
    return all;
  }();
  return cases.all();
}

const OpCase& plain_case(std::string_view op) {
  for (const OpCase& one : core_cases()) {
    if (one.op == op) return one;
  }
  throw std::invalid_argument("there is no case of operator '" + std::string(op) + "'");
}

}  // namespace backplane::conform
