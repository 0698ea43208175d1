// SPDX-License-Identifier: Apache-2.0
// The harness's implementation of sequences, optionals and maps.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backplane/memory.h"
#include "onnx/value.h"

// A container that a plugin reads and writes through bp_container_api_t. [one at a time]
struct bp_container_t {
  struct Element {
    std::string key;  // only in maps: text, or the 8 bytes of an int64
    backplane::onnx::Tensor tensor;
    std::unique_ptr<bp_container_t> child;  // NULL if the element is a tensor
  };

  std::vector<Element> elements;
};

namespace backplane::conform {

const bp_container_api_t* container_api();

}  // namespace backplane::conform
