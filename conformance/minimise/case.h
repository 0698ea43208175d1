// SPDX-License-Identifier: Apache-2.0
// Reduces a failing case to a small graph with the same failure: `backplane-conform repro CASE --minimise DIR`.
#pragma once

#include <filesystem>
#include <string>

#include "journal/result.h"
#include "minimise/minimise.h"

namespace backplane::conform {

// The plugin and options with which a case runs.
struct TrialSettings {
  std::filesystem::path plugin;
  uint32_t device = 0;
  uint64_t seed = 1;
  std::chrono::milliseconds deadline{20000};  // for each attempt
};

struct MinimisedCase {
  Minimised minimised;
  Network start;
  Result result;  // of the smallest
};

// Cases of the groups `ops` and `graph` that compare values. Throws Usage for others, and std::runtime_error if the
// failure does not show when the case's graph runs alone.
MinimisedCase minimise_case(const std::string& case_name, const TrialSettings& settings, const Limits& limits = {});

// model.onnx and test_data_set_0/ with the inputs and the outputs that the oracle expects: ONNX's own form, which
// `backplane-conform onnx` and every runtime's tests read.
void write_network(const Network& network, const std::filesystem::path& folder);

// Does both and prints the outcome. Returns exit status 1, because the case fails.
int minimise_and_report(const std::string& case_name, const TrialSettings& settings,
                        const std::filesystem::path& folder);

}  // namespace backplane::conform
