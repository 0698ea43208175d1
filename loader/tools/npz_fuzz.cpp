// SPDX-License-Identifier: Apache-2.0
// Any bytes are either rejected or read. What fits .npz is read back unchanged.
#include <cstdlib>

#include "npy.h"
#include "npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace backplane;
  std::vector<std::pair<std::string, onnx::Tensor>> arrays;
  try {
    arrays = tools::read_npz({reinterpret_cast<const char*>(data), size});
  } catch (const onnx::Malformed&) {
    return 0;
  }
  for (const auto& [name, tensor] : arrays) {
    if (!tools::fits_npy(tensor) || name.size() > 60000) return 0;
  }
  const auto again = tools::read_npz(tools::write_npz(arrays));
  if (again.size() != arrays.size()) abort();
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (again[i].second.extents != arrays[i].second.extents || again[i].second.bytes != arrays[i].second.bytes) abort();
  }
  return 0;
}
