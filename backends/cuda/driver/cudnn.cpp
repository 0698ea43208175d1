// SPDX-License-Identifier: Apache-2.0
#include "driver/cudnn.h"

#include "driver/library.h"

namespace backplane::cuda::dnn {
namespace {

Functions open_library() {
  void* const library =
      open_first({"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"}, "cuDNN 9 not found", "; install it");
  Functions all;
#define BACKPLANE_CUDNN_FIND(name, ...)                                           \
  all.name = reinterpret_cast<decltype(all.name)>(dlsym(library, "cudnn" #name)); \
  if (all.name == nullptr)                                                        \
    throw sdk::Error(BP_UNSUPPORTED, "libcudnn.so.9 has no function cudnn" #name "; install a newer cuDNN 9");
  BACKPLANE_CUDNN_FUNCTIONS(BACKPLANE_CUDNN_FIND)
#undef BACKPLANE_CUDNN_FIND
  return all;
}

// cuDNN's explanation of the last error on this thread, in one line.
std::string last_reason() {
  char text[1024] = {};
  functions().GetLastErrorString(text, sizeof text);
  std::string reason(text);
  for (char& c : reason)
    if (c == '\n') c = ' ';
  return reason;
}

}  // namespace

const Functions& functions() {
  static const Functions kFunctions = open_library();
  return kFunctions;
}

void check(Status status, std::string_view what) {
  if (status == kSuccess) return;
  const std::string reason = last_reason();
  const std::string text =
      std::string(what) + ": " + functions().GetErrorString(status) + (reason.empty() ? "" : " (" + reason + ")");
  constexpr Status kCategory = 1000;
  const Status category = status / kCategory * kCategory;
  if (category == kExecutionFailed) throw sdk::Error(sdk::Error::device_lost(text, status));
  const bp_status_t code = status == kHostAllocationFailed || status == kDeviceAllocationFailed ? BP_RESOURCE_EXHAUSTED
                           : category == kNotSupported                                          ? BP_UNSUPPORTED
                                                                                                : BP_INTERNAL;
  throw sdk::Error(code, text, BP_NO_NODE, status);
}

}  // namespace backplane::cuda::dnn
