// SPDX-License-Identifier: Apache-2.0
// A test library that runs graphs only through onnxSetIOAndRunGraph. It returns this function only under this exact
// name, without the suffix "Function", and only if no backend id is passed.
#include "vendor.h"

struct Extension : vendor::Traits {
  static constexpr const char* kName = "Extension";
};
VENDOR_COMMON(Extension)
VENDOR_INIT_GRAPH(Extension)

VENDOR_EXPORT onnxStatus onnxSetGraphIO(onnxGraph, uint32_t, const onnxTensorDescriptorV1*, uint32_t,
                                        const onnxTensorDescriptorV1*) {
  return ONNXIFI_STATUS_INTERNAL_ERROR;
}
VENDOR_EXPORT onnxStatus onnxRunGraph(onnxGraph, const onnxMemoryFenceV1*, onnxMemoryFenceV1*) {
  return ONNXIFI_STATUS_INTERNAL_ERROR;
}
VENDOR_EXPORT onnxStatus onnxGetExtensionFunctionAddress(onnxBackendID id, const char* name,
                                                         onnxExtensionFunctionPointer* function) {
  *function = nullptr;
  if (id != nullptr) return ONNXIFI_STATUS_INVALID_ID;
  if (std::string_view(name) != "onnxSetIOAndRunGraph") return ONNXIFI_STATUS_UNIDENTIFIED_NAME;
  *function = vendor::address(vendor::Library<Extension>::set_io_and_run);
  return ONNXIFI_STATUS_SUCCESS;
}
