// SPDX-License-Identifier: Apache-2.0
// The output of the stand-in for NVRTC, which the stand-in for the driver loads: this header, then a shared library.
#pragma once

#include <cstdint>

namespace standin {

struct ImageHeader {
  char magic[8] = {'S', 'T', 'A', 'N', 'D', 'I', 'N', '1'};
  uint64_t bytes = 0;
};

// The record that a module exports for each kernel, as "standin_NAME" (host.h).
struct Kernel {
  void* (*pack)(void** values);  // copies the arguments; the caller frees the result with free()
  void (*run_item)(const void* pack);
  void (*run_group)(const void* pack);
  void (*place)(const unsigned* item, const unsigned* group, const unsigned* size);
  int has_barrier;
};

}  // namespace standin
