// SPDX-License-Identifier: Apache-2.0
// Parses ONNX's protobuf bytes into a model. Checks only the format; passes/check.cpp checks ONNX's rules. Sparse
// initializers become dense weights, and graph inputs with an initializer become constants. Names become value ids; a
// name that nothing declares becomes a value without a producer, which passes/check.cpp reports.
#pragma once

#include <memory>

#include "import/import.h"

namespace backplane::model {

Result<std::shared_ptr<Model>> parse(const Source& source);

}  // namespace backplane::model
