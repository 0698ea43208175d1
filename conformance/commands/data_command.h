// SPDX-License-Identifier: Apache-2.0
// The commands that run folders of ONNX test data: `onnx` and `vendor`.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

// Declares the options of the command `name`, "onnx" or "vendor". Returns the function that runs it.
std::function<int()> declare_data_command(cli::Command command, const char* name);

}  // namespace backplane::conform
