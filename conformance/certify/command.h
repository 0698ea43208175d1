// SPDX-License-Identifier: Apache-2.0
// `backplane-conform keygen`, `certify commit | run | countersign` and `verify-bundle`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

std::function<int()> declare_keygen(CLI::App& command);
std::function<int()> declare_certify(CLI::App& command);
std::function<int()> declare_verify_bundle(CLI::App& command);

}  // namespace backplane::conform
