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

// Names of the states in the journal, indexed by State.
inline constexpr std::array<std::string_view, 10> kStateNames = {
    "pass",   "fail",       "crash",       "timeout",       "not_supported",
    "waived", "mistrusted", "infra_error", "expected_fail", "unexpected_pass"};
inline std::string_view name_of(State state) {
  return kStateNames[static_cast<size_t>(state)];
}

struct Result {
  std::string name;  // name of the case
  State state = State::kInfraError;
  std::string reason;  // one line; may be empty for a pass
  double seconds = 0;
  uint32_t nodes = 0;           // number of nodes that ran on the device under test
  bool is_statistical = false;  // passed because the distribution of random values is right
  double worst = 0;             // the largest error as a fraction of its bound; 0 if no error was measured
  bool close = false;           // failed, but is within ONNX's bounds for whole models
  uint32_t opset = 0;           // the since version of the operator under test; 0 if there is none
  Histogram errors = {};        // of all output elements; all 0 if nothing was compared with a bound

  // The parent process sets the following members.
  std::string profile;
  uint64_t seed = 0;
  std::string repro;         // the command that runs only this case; empty for a pass
  std::optional<State> was;  // the state before a waiver or an expectation changed it
  std::string exception;     // the pattern of that waiver or expectation
};

// The parts of a case's name: "ops/Conv/float/depthwise/0" has the group ops, the operator Conv and the type float.
struct Label {
  std::string_view group, op, dtype;  // `op` and `dtype` may be empty
};
Label label_of(std::string_view case_name);

// True if the result belongs to a case. A name in parentheses reports the end of a child process instead.
inline bool is_of_list(const Result& result) {
  return !result.name.starts_with('(');
}

// Returns one line of JSON without the line feed. Invalid UTF-8 is replaced.
std::string to_json_line(const Result& result);
// Returns false if the line is not a result.
bool from_json_line(std::string_view line, Result& out_result);

}  // namespace backplane::conform
