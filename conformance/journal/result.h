// SPDX-License-Identifier: Apache-2.0
// The result of a case.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "judge/histogram.h"

namespace backplane::conform {

enum class State {
  kPass,
  kFail,
  kCrash,
  kTimeout,
  kNotSupported,
  kWaived,
  kMistrusted,
  kInfraError,
  kExpectedFail,
  kUnexpectedPass,
};

// Names in the journal; entry i is state i.
inline constexpr std::array<std::string_view, 10> kStateNames = {
    "pass",   "fail",       "crash",       "timeout",       "not_supported",
    "waived", "mistrusted", "infra_error", "expected_fail", "unexpected_pass"};
inline std::string_view name_of(State state) {
  return kStateNames[static_cast<size_t>(state)];
}

struct Result {
  std::string name;  // of the case
  State state = State::kInfraError;
  std::string reason;  // one line; empty for a pass
  double seconds = 0;
  uint32_t nodes = 0;           // nodes that ran on the device under test
  bool is_statistical = false;  // passed because the distribution of the random draws is right
  double worst = 0;             // the largest error as a fraction of its bound; 0 if nothing was measured
  bool close = false;           // failed, but within ONNX's bounds for whole models
  uint32_t opset = 0;           // the since version of the operator under test; 0 if there is none
  Histogram errors = {};        // of the outputs' elements; all 0 if nothing was measured against a bound

  // Added by the parent process.
  std::string profile;
  uint64_t seed = 0;
  std::string repro;         // the command that runs the case alone; empty for a pass
  std::optional<State> was;  // the state before a waiver or an expectation changed it
  std::string exception;     // the pattern of that waiver or expectation
};

// The parts of a case's name: "ops/Conv/float/depthwise/0" is of group ops, operator Conv and type float.
struct Label {
  std::string_view group, op, dtype;  // the last two may be empty
};
Label label_of(std::string_view case_name);

// Whether the result is of a case; the report of a child process's end is not.
inline bool is_of_list(const Result& result) {
  return !result.name.starts_with('(');
}

// One line of JSON, without the line feed. Invalid UTF-8 is replaced.
std::string to_json_line(const Result& result);
// False if the line is not a result.
bool from_json_line(std::string_view line, Result& out_result);

}  // namespace backplane::conform
