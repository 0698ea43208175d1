// SPDX-License-Identifier: Apache-2.0
// The operator cases of every profile.
#pragma once

#include <span>

#include "cases/problem.h"

namespace backplane::conform {

// A named list of cases that a backend may claim to pass. Any change to the list requires a new version.
struct Profile {
  std::string_view name;
  uint32_t version;
  std::string_view what;
};
std::span<const Profile> profiles();
// The profile of all operators and variants outside the other profiles.
inline constexpr std::string_view kExtended = "extended";
// The profile of operators of com.microsoft.
inline constexpr std::string_view kMicrosoft = "microsoft";

class OpCases {
 public:
  // Adds the case "Op/type/variant" to the profile `fp16` for 16-bit floats, and to `core` for all other types.
  void add(const std::string& op, bp_dtype_t dtype, const std::string& variant, std::function<Problem(Random&)> make);
  // Adds one case for each type in real_types().
  void add_real(const std::string& op, const std::string& variant,
                const std::function<Problem(Random&, bp_dtype_t)>& make);
  // Adds a case to the named profile.
  void add_to(std::string_view profile, const std::string& op, bp_dtype_t dtype, const std::string& variant,
              std::function<Problem(Random&)> make);
  // Marks the case added last as deterministic, so that one draw is enough.
  void mark_once() { cases_.back().once = true; }
  const std::vector<OpCase>& all() const { return cases_; }

 private:
  std::vector<OpCase> cases_;
};

// FLOAT, FLOAT16 and BFLOAT16.
std::span<const bp_dtype_t> real_types();

using AddFamilyCases = void (*)(OpCases& cases);
// Sets the functions that add the cases of op_cases(), in this order. Called once, before the functions below and
// before other threads start: a program calls use_families() of families/families.h. Does not copy the list.
void set_op_cases(std::span<const AddFamilyCases> families);
// The cases of all operators, built once.
const std::vector<OpCase>& op_cases();
// The operator's first case, which is a simple one. Throws std::invalid_argument if the operator has no case.
const OpCase& plain_case(std::string_view op);

}  // namespace backplane::conform
