// SPDX-License-Identifier: Apache-2.0
// The commands that run folders of test data in ONNX's form: `onnx` and `vendor`.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

// `name`: "onnx" or "vendor". Declares the options and returns what runs the command.
std::function<int()> declare_data_command(cli::Command command, const char* name);

}  // namespace backplane::conform
