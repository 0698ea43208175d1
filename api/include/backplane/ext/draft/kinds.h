/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAFT. Kinds of external memory and of native semaphores that no backend of this tree imports or exports yet. Their
 * numbers are reserved in memory.h and sync.h. A kind moves there, with its number, together with the first backend
 * that uses it and a test; its meaning may change until then. So only a framework and a plugin that were built with
 * the same release may use it, and a plugin lists none of these kinds in the `imports` or `exports` of bp_space_t.
 */
#ifndef BACKPLANE_EXT_DRAFT_KINDS_H
#define BACKPLANE_EXT_DRAFT_KINDS_H

#include "backplane/memory.h"
#include "backplane/sync.h"

/* Kinds of bp_external_t. */
/* handle: a file descriptor of the driver (opaque); import takes ownership on success */
#define BP_DRAFT_EXTERNAL_FD 2u
/* handle: a dma-buf file descriptor; import takes ownership on success. `modifier`: DRM_FORMAT_MOD_*, 0: linear */
#define BP_DRAFT_EXTERNAL_DMA_BUF 3u
/* handle: pointer to the 64 bytes of a cudaIpcMemHandle_t. Import only: an export would write those bytes to memory of
 * the caller, for which bp_export_t has no field yet. */
#define BP_DRAFT_EXTERNAL_CUDA_IPC 4u
#define BP_DRAFT_EXTERNAL_DLPACK 7u /* handle: a DLManagedTensorVersioned*; import takes ownership on success */
#define BP_DRAFT_EXTERNAL_MEMFD 8u  /* handle: a file descriptor that can be mapped; the caller keeps ownership */

/* Kinds of bp_native_t. */
#define BP_DRAFT_NATIVE_SYNC_FD 5u /* handle: a sync_file descriptor; import takes ownership on success */
#define BP_DRAFT_NATIVE_TIMELINE_FD \
  6u /* handle: a descriptor of a driver's timeline; import takes ownership on success */

#endif
