/* SPDX-License-Identifier: Apache-2.0
 *
 * Order between pieces of work: streams and timeline semaphores.
 */
#ifndef BACKPLANE_SYNC_H
#define BACKPLANE_SYNC_H

#include "backplane/types.h"

BP_EXTERN_C_BEGIN

typedef struct bp_stream_t bp_stream_t;                     /* a plugin's queue of work, in order; opaque */
typedef struct bp_semaphore_t bp_semaphore_t;               /* a semaphore of the host; opaque to plugins */
typedef struct bp_native_semaphore_t bp_native_semaphore_t; /* a semaphore of a plugin's device; opaque to the host */

/* A semaphore and a value. A timeline semaphore holds a 64-bit number that only grows; waiting for v means waiting
 * until it is at least v. Exactly one of the two handles is set. A native one belongs to the device that is asked.
 * Never grows. */
typedef struct bp_point_t {
  bp_semaphore_t* semaphore;
  bp_native_semaphore_t* native;
  uint64_t value;
} bp_point_t;

/* A semaphore that failed: the run that was to signal it failed. Waiters get BP_DEPENDENCY_FAILED, not a hang. */

/* Native things that can be imported and exported. */
#define BP_NATIVE_CUDA_STREAM 0u /* handle: cudaStream_t */
#define BP_NATIVE_CL_QUEUE 1u    /* handle: cl_command_queue; import retains it */
#define BP_NATIVE_CUDA_EVENT 2u  /* handle: cudaEvent_t, a semaphore of one value */
#define BP_NATIVE_CL_EVENT 3u    /* handle: cl_event, a semaphore of one value */
#define BP_NATIVE_SYNC_FD 4u     /* handle: a sync_file descriptor; import takes ownership on success */

typedef struct bp_native_t {
  uint32_t size;
  uint32_t kind; /* BP_NATIVE_* */
  uint64_t handle;
} bp_native_t;

BP_EXTERN_C_END

#endif
