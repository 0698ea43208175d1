/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAFT. Host memory that another process can map: bp_host_t.get_extension("shared_memory", 1).
 *
 * A plugin whose work is done in another process passes that process a descriptor and an offset instead of copies of
 * tensors.
 */
#ifndef BACKPLANE_EXT_DRAFT_SHARED_MEMORY_H
#define BACKPLANE_EXT_DRAFT_SHARED_MEMORY_H

#include "backplane/host.h"

BP_EXTERN_C_BEGIN

#define BP_DRAFT_SHARED_MEMORY "shared_memory"
#define BP_DRAFT_SHARED_MEMORY_VERSION 1u

/* A piece of shared memory, mapped in this process. Written by the host. */
typedef struct bp_draft_shared_t {
  uint32_t size;
  int32_t descriptor; /* of a file that can be mapped, closed on exec; owned by the host, valid until `release` */
  void* address;      /* of the first byte, at least page-aligned */
  uint64_t offset;    /* of the first byte in the file */
  uint64_t bytes;     /* at least the requested number */
} bp_draft_shared_t;

typedef struct bp_draft_shared_memory_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Allocates zeroed memory. The file cannot shrink, so a reader is never killed by a truncation. [thread-safe].
   * Errors: BP_RESOURCE_EXHAUSTED, BP_UNSUPPORTED (the system has no such memory). */
  bp_status_t(BP_CALL* allocate)(const bp_host_t* host, uint64_t bytes, bp_draft_shared_t* out_shared);
  /* Unmaps the memory in this process and closes the descriptor. [thread-safe] */
  void(BP_CALL* release)(const bp_host_t* host, const bp_draft_shared_t* shared);
} bp_draft_shared_memory_api_t;

BP_EXTERN_C_END

#endif
