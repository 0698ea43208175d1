// SPDX-License-Identifier: Apache-2.0
// `backplane-conform onnx`: ONNX's own test data on one device; `vendor`: a vendor's own cases of the same form.
#pragma once

#include <functional>

#include "cli/command.h"

namespace backplane::conform {

// Declare a command's options; what they give runs the command and answers the exit status.
std::function<int()> declare_onnx(cli::Command command);
std::function<int()> declare_vendor(cli::Command command);

}  // namespace backplane::conform
