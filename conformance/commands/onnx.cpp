// SPDX-License-Identifier: Apache-2.0
// `backplane-conform onnx`: ONNX's own test data.
#include "commands/data_command.h"
#include "commands/verb.h"

namespace backplane::conform {

extern const Verb onnx_verb = {"onnx", "runs ONNX's own test data on one device",
                               [](cli::Command command) { return declare_data_command(command, "onnx"); }};

}  // namespace backplane::conform
