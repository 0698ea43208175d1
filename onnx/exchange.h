// SPDX-License-Identifier: Apache-2.0
// Binds a run's inputs and reads its outputs.
#pragma once

#include <memory>

#include "backplane/client.hpp"
#include "onnx/value.h"

namespace backplane::onnx {

// Owns the memory that `bind_input` bound. It must outlive the runs that use it.
using Bound = std::shared_ptr<void>;

// Binds a value of any kind to an input. Throws Error.
Bound bind_input(Exec& exec, uint32_t input, std::shared_ptr<Value> value);

// Returns output `index` of the last run, copied to host memory. Throws Error, and Malformed if the value is invalid.
Value read_output(const Environment& env, const Exec& exec, view::Graph graph, uint32_t index);

}  // namespace backplane::onnx
