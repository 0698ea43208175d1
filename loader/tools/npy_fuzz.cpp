// SPDX-License-Identifier: Apache-2.0
// Any bytes are either rejected or read. What fits .npy is read back unchanged.
#include <cstdlib>

#include "npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane;
  onnx::Tensor tensor;
  try {
    tensor = tools::read_npy({reinterpret_cast<const char*>(data), size});
  } catch (const onnx::Malformed&) {
    return 0;
  }
  if (!tools::fits_npy(tensor)) return 0;
  const onnx::Tensor again = tools::read_npy(tools::write_npy(tensor));
  if (again.dtype != tensor.dtype || again.extents != tensor.extents || again.bytes != tensor.bytes) abort();
  return 0;
}
