/* SPDX-License-Identifier: Apache-2.0
 *
 * Order between pieces of work: streams, timeline semaphores, points.
 *
 * A timeline semaphore holds a 64-bit number that only grows; a point is a semaphore and a value, and waiting for a
 * point means waiting until the number is at least that value. There are two classes of points:
 *
 * Host points advance after `done`, from the host. They carry failure: if a run failed, waiting for its point returns
 * BP_DEPENDENCY_FAILED with the detail. So does waiting for a later point of its stream while the failure is unreported
 * (see bp_run_t). A failure belongs to the values that its signal added: values reached before stay reached, and the
 * semaphore can be signaled further. A semaphore keeps 16 failures. When there are more, two are merged: two without
 * a value between them or, if there are none, the two oldest, and the result also covers the values between them.
 *
 * Native points (events of a driver, semaphores of a device) advance in the device's order, perhaps before `done`, and
 * carry no failure: work that waits for them on a device runs even if the run before failed, and may then compute on
 * invalid data. The failure is reported by the `done` of the run that failed or, if that run has no `done`, by the next
 * `done` or `stream_wait` of its stream. Every run of the same backend that waited for the failed run through a
 * semaphore of that backend reports BP_DEPENDENCY_FAILED in the same way, so no result is read before its failure was
 * reported. An imported semaphore, such as an event, and native points between backends carry only order: query the
 * failure where the work was started.
 */
#ifndef BACKPLANE_SYNC_H
#define BACKPLANE_SYNC_H

#include "backplane/types.h"

BP_EXTERN_C_BEGIN

/* A device's queue of work, in order; opaque. A handle of loader.h is not the plugin's handle of the same stream or
 * native semaphore: bp_stream_plugin_stream and bp_native_semaphore_plugin_semaphore return the plugin's. */
typedef struct bp_stream_t bp_stream_t;
typedef struct bp_semaphore_t bp_semaphore_t;               /* a semaphore of the host; opaque to plugins */
typedef struct bp_native_semaphore_t bp_native_semaphore_t; /* a semaphore of a device; opaque */

/* A semaphore and a value. The struct never grows. */
typedef struct bp_point_t {
  uint64_t handle;
  uint32_t kind;   /* BP_POINT_* */
  uint32_t flags;  /* none defined */
  uint64_t device; /* the id of the device that owns a native point; otherwise 0 */
  uint64_t value;
} bp_point_t;

#define BP_POINT_HOST 1u   /* handle: bp_semaphore_t* */
#define BP_POINT_NATIVE 2u /* handle: bp_native_semaphore_t*; in plugin.h, of the device that the call is made to */

static inline bp_point_t bp_host_point(bp_semaphore_t* semaphore, uint64_t value) {
  bp_point_t point = {(uint64_t)(uintptr_t)semaphore, BP_POINT_HOST, 0, 0, value};
  return point;
}
static inline bp_point_t bp_native_point(bp_native_semaphore_t* semaphore, uint64_t device, uint64_t value) {
  bp_point_t point = {(uint64_t)(uintptr_t)semaphore, BP_POINT_NATIVE, 0, device, value};
  return point;
}
/* The semaphore of a point; NULL if the point is of the other kind. */
static inline bp_semaphore_t* bp_point_host(const bp_point_t* point) {
  return (bp_semaphore_t*)(uintptr_t)(point->kind == BP_POINT_HOST ? point->handle : 0);
}
static inline bp_native_semaphore_t* bp_point_native(const bp_point_t* point) {
  return (bp_native_semaphore_t*)(uintptr_t)(point->kind == BP_POINT_NATIVE ? point->handle : 0);
}

/* Native objects that can be imported and exported. Kinds from BP_VENDOR up are a vendor's own. */
#define BP_NATIVE_CUDA_STREAM 1u /* handle: cudaStream_t */
#define BP_NATIVE_CL_QUEUE 2u    /* handle: cl_command_queue; import retains it */
/* A single-value semaphore reaches 1 when its event has happened. The event must have been recorded before the import,
 * and must outlive the semaphore. Nothing else signals it: a signal from the host, or a run, copy or fill with it among
 * its signals, is refused with BP_UNSUPPORTED; waiting for a value above 1, with BP_INVALID_ARGUMENT. */
#define BP_NATIVE_CUDA_EVENT 3u   /* handle: cudaEvent_t, a single-value semaphore */
#define BP_NATIVE_CL_EVENT 4u     /* handle: cl_event, a single-value semaphore */
#define BP_NATIVE_CUDA_CONTEXT 7u /* handle: CUcontext; the plugin retains it if the driver can */
#define BP_NATIVE_CL_CONTEXT 8u   /* handle: cl_context; the plugin retains it */
/* 5 and 6 are reserved for the drafts in ext/draft/kinds.h. */

typedef struct bp_native_t {
  uint32_t size;
  uint32_t kind; /* BP_NATIVE_*, or a vendor's own */
  uint64_t handle;
  const bp_chain_t* chain;
} bp_native_t;

BP_EXTERN_C_END

#endif
