// SPDX-License-Identifier: Apache-2.0
// What became of a case.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace backplane::conform {

enum class State { kPass, kFail, kCrash, kTimeout, kNotSupported, kWaived, kMistrusted, kInfraError };

// As the journal spells it; entry i is state i.
inline constexpr std::array<std::string_view, 8> kStateNames = {"pass",          "fail",   "crash",      "timeout",
                                                                "not_supported", "waived", "mistrusted", "infra_error"};
inline std::string_view name_of(State state) {
  return kStateNames[static_cast<size_t>(state)];
}

struct Result {
  std::string name;  // of the case
  State state = State::kInfraError;
  std::string reason;  // one line; empty for a pass
  double seconds = 0;
  uint32_t nodes = 0;           // that ran on the device under test
  bool is_statistical = false;  // a pass of random draws, by their law and not by their values
  double worst = 0;             // the largest error as a fraction of its bound, where there is one
  bool close = false;           // failed, and yet within the bounds for whole models
};

// One line of JSON, without its end. Text that is no UTF-8 is repaired.
std::string to_json_line(const Result& result);
// False if the line is no result.
bool from_json_line(std::string_view line, Result& out_result);

}  // namespace backplane::conform
