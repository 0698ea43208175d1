// SPDX-License-Identifier: Apache-2.0
// From ONNX's protobuf bytes to a model: only the format is checked, nothing is changed.
// Names become ids; a name that nothing declares becomes a value without a producer, which the checker reports.
#pragma once

#include <memory>

#include "import/import.h"

namespace backplane::model {

Result<std::shared_ptr<Model>> parse(const Source& source);

}  // namespace backplane::model
