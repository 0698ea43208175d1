// SPDX-License-Identifier: Apache-2.0
// `backplane-conform onnx`: ONNX's own test data on one device.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace backplane::conform {

// Declares the command's options; what it gives runs the command and answers the exit status.
std::function<int()> declare_onnx(CLI::App& command);

}  // namespace backplane::conform
