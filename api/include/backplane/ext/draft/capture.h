/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAFT. Runs that are recorded once and launched as a whole: bp_env_get_extension("<backend id>/capture", 1), and
 * bp_plugin_t.get_extension("capture", 1) of the backend. Handles are the plugin's own: a framework gets them from
 * bp_stream_plugin_stream, bp_session_plugin_program and bp_native_semaphore_plugin_semaphore.
 *
 * There are two ways, which differ in who records:
 *
 *   1. The framework captures its own stream (cudaStreamBeginCapture and the like), makes a bp_stream_t of it and runs
 *      sessions of one or several models into it. It calls no function of this header: a run that is put into a stream
 *      that is being captured records itself. Such a run allocates nothing, waits for nothing on the host and launches
 *      no graph of its own. A run that cannot do that is refused before anything is recorded; `capturable` reports that
 *      in advance.
 *   2. The backend records the work put into one of its streams between `begin` and `end`. The caller launches the
 *      recording as often as it wants.
 *
 * A recording refers to the memory that was bound when it was made. That memory, the execs (in plugin.h: the instances)
 * and their sessions must outlive it. Their bindings and extents must not change while it lives.
 */
#ifndef BACKPLANE_EXT_DRAFT_CAPTURE_H
#define BACKPLANE_EXT_DRAFT_CAPTURE_H

#include "backplane/plugin.h"

BP_EXTERN_C_BEGIN

#define BP_DRAFT_CAPTURE "capture"
#define BP_DRAFT_CAPTURE_VERSION 1u

typedef struct bp_draft_recording_t bp_draft_recording_t; /* opaque */

typedef struct bp_draft_capture_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Returns 1 if runs of a program can be recorded, in either way; otherwise 0, with the reason in `error`.
   * [thread-safe] */
  uint32_t(BP_CALL* capturable)(const bp_program_t* program, bp_error_t* error);
  /* Starts recording: work put into the stream is recorded instead of run. [one at a time]. Errors: BP_BAD_STATE (the
   * stream is recording already, or is the framework's own), BP_UNSUPPORTED. */
  bp_status_t(BP_CALL* begin)(bp_stream_t* stream, bp_error_t* error);
  /* Ends the recording. Points that runs waited for and signaled become those of each launch. [one at a time]
   * [blocks]. Errors: BP_BAD_STATE, BP_UNSUPPORTED (the recorded work cannot be launched; the error names it),
   * BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* end)(bp_stream_t* stream, bp_draft_recording_t** out_recording, bp_error_t* error);
  /* Replaces the content of `recording` by that of `other`, which records the same work with other addresses or
   * extents. Use this where it is cheaper than a new recording. `other` is unchanged. [one at a time] [blocks].
   * Errors: BP_TYPE_MISMATCH (the work differs: keep `other`, the new recording). */
  bp_status_t(BP_CALL* update)(bp_draft_recording_t* recording, const bp_draft_recording_t* other, bp_error_t* error);
  /* Puts the recording into `run->stream`, of the same device, as one run: order, `done`, signals and failures are as
   * for bp_instance_api_t.run. [one at a time]. Errors: those of bp_instance_api_t.run. */
  bp_status_t(BP_CALL* launch)(bp_draft_recording_t* recording, const bp_run_t* run, bp_error_t* error);
  /* Call it after the last launch has ended. [one at a time] [blocks] */
  void(BP_CALL* destroy)(bp_draft_recording_t* recording);
} bp_draft_capture_api_t;

BP_EXTERN_C_END

#endif
