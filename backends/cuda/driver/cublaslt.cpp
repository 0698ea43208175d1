// SPDX-License-Identifier: Apache-2.0
#include "driver/cublaslt.h"

#include "driver/library.h"

namespace backplane::cuda::lt {
namespace {

Functions open_library() {
  void* const library =
      open_first({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so", "/usr/local/cuda/lib64/libcublasLt.so"},
                 "cuBLASLt not found", "; install that of CUDA 12 or newer");
  Functions all;
#define BACKPLANE_CUBLASLT_FIND(name, ...)                                           \
  all.name = reinterpret_cast<decltype(all.name)>(dlsym(library, "cublasLt" #name)); \
  if (all.name == nullptr)                                                           \
    throw sdk::Error(BP_UNSUPPORTED, "libcublasLt has no function cublasLt" #name    \
                                     "; install that of CUDA 12 or "                 \
                                     "newer");
  BACKPLANE_CUBLASLT_FUNCTIONS(BACKPLANE_CUBLASLT_FIND)
#undef BACKPLANE_CUBLASLT_FIND
  return all;
}

}  // namespace

const Functions& functions() {
  static const Functions kFunctions = open_library();
  return kFunctions;
}

void check(Status status, std::string_view what) {
  if (status == kSuccess) return;
  const std::string text = std::string(what) + ": " + functions().GetStatusName(status);
  if (status == kExecutionFailed) throw sdk::Error(sdk::Error::device_lost(text, status));
  const bp_status_t code = status == kAllocFailed    ? BP_RESOURCE_EXHAUSTED
                           : status == kNotSupported ? BP_UNSUPPORTED
                                                     : BP_INTERNAL;
  throw sdk::Error(code, text, BP_NO_NODE, status);
}

}  // namespace backplane::cuda::lt
