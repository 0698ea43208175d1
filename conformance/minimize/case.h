// SPDX-License-Identifier: Apache-2.0
// Reduces a failing case to a small graph with the same failure: `backplane-conform repro CASE --minimize DIR`.
#pragma once

#include <filesystem>
#include <string>

#include "journal/result.h"
#include "minimize/minimize.h"

namespace backplane::conform {

// The plugin, and the options with which a case runs.
struct TrialSettings {
  std::filesystem::path plugin;
  uint32_t device = 0;
  uint64_t seed = 1;
  std::chrono::milliseconds deadline{20000};  // for each attempt
};

struct MinimizedCase {
  Minimized minimized;
  Network start;
  Result result;  // the result of the smallest graph
};

// Minimizes a case of the group `ops`, or one of `graph` for which networks_of() returns graphs. Throws Usage for other
// cases. Throws std::runtime_error if the device cannot be opened, if the oracle has no bounds for the case's
// operators, or if none of the case's graphs fails when run alone.
MinimizedCase minimize_case(const std::string& case_name, const TrialSettings& settings, const Limits& limits = {});

// Writes model.onnx and test_data_set_0/ with the inputs and the oracle's outputs. This is the layout of ONNX's own
// tests, which `backplane-conform onnx` and the tests of other runtimes read.
void write_network(const Network& network, const std::filesystem::path& folder);

// Minimizes the case, writes the graph and prints the outcome. Returns exit status 1, because the case fails.
int minimize_and_report(const std::string& case_name, const TrialSettings& settings,
                        const std::filesystem::path& folder);

}  // namespace backplane::conform
