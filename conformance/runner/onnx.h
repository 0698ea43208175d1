// SPDX-License-Identifier: Apache-2.0
// `backplane-conform onnx`: ONNX's own test data on one device; `vendor`: a vendor's own cases of the same form.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

// Declare a command's options; what they give runs the command and answers the exit status.
std::function<int()> declare_onnx(CLI::App& command);
std::function<int()> declare_vendor(CLI::App& command);

}  // namespace backplane::conform
