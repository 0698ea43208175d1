// SPDX-License-Identifier: Apache-2.0
// libFuzzer: sequences of calls, in which each byte of the input makes one choice.
#include <cstdlib>

#include "onnxifi/testing/calls.h"
#include "testing/onnx_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace write = backplane::testing::onnx;
  static const std::string kModel =
      write::model_bytes({{"", 13}}, write::graph({write::node("Add", {"a", "b"}, {"c"})},
                                                  {write::tensor_value("a", 1, {3}), write::tensor_value("b", 1, {3})},
                                                  {write::tensor_value("c", 1, {3})}));
  static onnxBackendID const kId = [] {
    size_t count = 0;
    if (onnxGetBackendIDs(nullptr, &count) != ONNXIFI_STATUS_FALLBACK || count == 0) std::abort();
    std::vector<onnxBackendID> ids(count);
    if (onnxGetBackendIDs(ids.data(), &count) != ONNXIFI_STATUS_SUCCESS) std::abort();
    return ids[0];
  }();
  backplane::onnxifi::Calls calls(kId, kModel);
  const uint8_t* const end = data + size;
  while (data != end) {
    if (calls.call([&]() -> uint32_t { return data == end ? 0 : *data++; }) == ONNXIFI_STATUS_INTERNAL_ERROR)
      std::abort();
  }
  return 0;
}
