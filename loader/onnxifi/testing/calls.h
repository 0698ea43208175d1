// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls, for the test and the fuzzer. The handles are valid, stale, foreign, NULL or of the wrong
// kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onnxifi/onnxifi.h"

namespace backplane::onnxifi {

class Calls {
 public:
  // Begins with a backend of `id` and a graph of `model`, which must compute c = a + b for float[3].
  Calls(onnxBackendID id, std::string model);
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  // Releases every object that has not been released.
  ~Calls();

  // Makes a call that is chosen by numbers from `next`. Returns its status.
  onnxStatus call(const std::function<uint32_t()>& next);

 private:
  const std::string model_;
  float a_[3] = {1, 2, 3}, b_[3] = {10, 20, 30}, c_[3] = {};
  onnxTensorDescriptorV1 inputs_[2], output_;
  std::vector<void*> handles_;
};

}  // namespace backplane::onnxifi
