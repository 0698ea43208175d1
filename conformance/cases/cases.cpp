// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <stdexcept>

#include "backplane/graph.hpp"

namespace backplane::conform {

namespace {

std::span<const AddFamilyCases> case_families;

constexpr Profile kProfiles[] = {
    {"core", 1, "operators of CNNs and transformer encoders in 32-bit floating point"},
    {"fp16", 1, "the same operators on FLOAT16 and BFLOAT16"},
    {"quant", 1, "8-bit and 16-bit quantization, and products of 8-bit numbers"},
    {"dynamic", 1, "extents that are known only at run time"},
    {"control-flow", 1, "If, Loop and Scan"},
    {kExtended, 1, "operators beyond core: recurrent, attention, scatter, signal, sampling and others, in all types"},
    {kMicrosoft, 1, "operators of com.microsoft that exported models use"},
};
constexpr bp_dtype_t kReal[] = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16};

}  // namespace

std::span<const Profile> profiles() {
  return kProfiles;
}

std::span<const bp_dtype_t> real_types() {
  return kReal;
}

void OpCases::add_to(std::string_view profile, const std::string& op, bp_dtype_t dtype, const std::string& variant,
                     std::function<Problem(Random&)> make) {
  cases_.push_back(
      {op + "/" + std::string(view::dtype_name(dtype)) + "/" + variant, op, profile, false, std::move(make)});
}

void OpCases::add(const std::string& op, bp_dtype_t dtype, const std::string& variant,
                  std::function<Problem(Random&)> make) {
  const bool is_half = dtype == BP_DTYPE_FLOAT16 || dtype == BP_DTYPE_BFLOAT16;
  add_to(is_half ? "fp16" : "core", op, dtype, variant, std::move(make));
}

void OpCases::add_real(const std::string& op, const std::string& variant,
                       const std::function<Problem(Random&, bp_dtype_t)>& make) {
  for (const bp_dtype_t dtype : kReal) {
    add(op, dtype, variant, [=](Random& random) { return make(random, dtype); });
  }
}

void set_op_cases(std::span<const AddFamilyCases> families) {
  case_families = families;
}

const std::vector<OpCase>& op_cases() {
  static const OpCases kCases = [] {
    if (case_families.empty()) throw std::logic_error("set_op_cases() has not been called");
    OpCases all;
    for (const AddFamilyCases add : case_families) add(all);
    return all;
  }();
  return kCases.all();
}

const OpCase& plain_case(std::string_view op) {
  for (const OpCase& one : op_cases()) {
    if (one.op == op) return one;
  }
  throw std::invalid_argument("there is no case of operator '" + std::string(op) + "'");
}

}  // namespace backplane::conform
