// SPDX-License-Identifier: Apache-2.0
// An exec whose inputs and outputs are in the memory of a device, as those of a framework for that device are.
#pragma once

#include <vector>

#include "inputs.h"

namespace backplane::tools {

// Copies the inputs to memory of the device and binds it there, and memory for outputs of the sizes that the last run
// had. Returns that memory, which must live as long as the exec. Throws Usage if an input or output is not a tensor of
// numbers, and Error if there is no memory.
std::vector<Buffer> move_to_memory(const Environment& env, const Device& device, const std::vector<Input>& inputs,
                                   Exec& exec, view::Graph graph);

}  // namespace backplane::tools
