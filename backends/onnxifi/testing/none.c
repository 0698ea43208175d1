/* SPDX-License-Identifier: Apache-2.0
 * A test library without backends, like that of a vendor whose hardware is absent. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define NEVER_CALLED(name)    \
  EXPORT int32_t name(void) { \
    abort();                  \
  }

EXPORT int32_t onnxGetBackendIDs(void** ids, size_t* count) {
  (void)ids;
  *count = 0;
  return 0;
}

NEVER_CALLED(onnxReleaseBackendID)
NEVER_CALLED(onnxGetBackendInfo)
NEVER_CALLED(onnxGetBackendCompatibility)
NEVER_CALLED(onnxInitBackend)
NEVER_CALLED(onnxReleaseBackend)
NEVER_CALLED(onnxInitEvent)
NEVER_CALLED(onnxSignalEvent)
NEVER_CALLED(onnxGetEventState)
NEVER_CALLED(onnxWaitEvent)
NEVER_CALLED(onnxReleaseEvent)
NEVER_CALLED(onnxInitGraph)
NEVER_CALLED(onnxSetGraphIO)
NEVER_CALLED(onnxRunGraph)
NEVER_CALLED(onnxReleaseGraph)
