// SPDX-License-Identifier: Apache-2.0
// From ONNX's protobuf bytes to a model, as it stands in the file: nothing is checked beyond what the format demands.
// Names become ids; a name that nothing declares becomes a value without a producer, which the checker reports.
#pragma once

#include <memory>

#include "import/import.h"

namespace backplane::model {

Result<std::shared_ptr<Model>> parse(const Source& source);

}  // namespace backplane::model
