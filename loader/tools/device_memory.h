// SPDX-License-Identifier: Apache-2.0
// An exec whose inputs and outputs are in the memory of a device, like those of a framework that works on that device.
#pragma once

#include <vector>

#include "inputs.h"

namespace backplane::tools {

// Copies the inputs to the device's memory and binds them there. Also binds memory of the device to the outputs, of the
// sizes that they had in the last run. Returns all this memory, which must live as long as the exec. Throws Usage if an
// input or output is not a tensor of numbers, and Error if there is no memory.
std::vector<Buffer> move_to_memory(const Environment& env, const Device& device, const std::vector<Input>& inputs,
                                   Exec& exec, view::Graph graph);

}  // namespace backplane::tools
