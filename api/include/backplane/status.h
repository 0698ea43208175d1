/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes. The high byte of a code's low 16 bits says what the caller does next; the low byte says why.
 */
#ifndef BACKPLANE_STATUS_H
#define BACKPLANE_STATUS_H

#include "backplane/version.h"

BP_EXTERN_C_BEGIN

typedef uint32_t bp_status_t;

/* The class of a code: what to do next. Handle a code that you do not know by its class. */
#define BP_STATUS_CLASS(status) ((status)&0xff00u)
#define BP_CLASS_OK 0x0000u       /* continue */
#define BP_CLASS_FIX_CALL 0x0100u /* the call is wrong; the same call will fail again */
#define BP_CLASS_RETRY 0x0200u    /* nothing is broken, unless BP_ERROR_ABANDONED is set; the call may succeed later */
#define BP_CLASS_RECREATE 0x0300u /* the object is lost; destroy it, create another and try again */
#define BP_CLASS_GIVE_UP 0x0400u  /* a defect, or an environment that no call can repair */

#define BP_OK 0x0000u

#define BP_INVALID_ARGUMENT 0x0101u  /* an argument violates the rule documented for it */
#define BP_INVALID_MODEL 0x0102u     /* the model or the graph violates ONNX's rules */
#define BP_UNSUPPORTED 0x0103u       /* correct, but not supported; the detail says what is missing */
#define BP_NOT_FOUND 0x0104u         /* no file, device, name or entry of that kind */
#define BP_BUFFER_TOO_SMALL 0x0105u  /* a buffer is smaller than the call needs; the detail names the buffer */
#define BP_BAD_STATE 0x0106u         /* the object's state forbids the call; the detail says why */
#define BP_TYPE_MISMATCH 0x0107u     /* data type, rank or extent differ from what is declared */
#define BP_PERMISSION_DENIED 0x0108u /* the system or the user's policy forbids it */

#define BP_RESOURCE_EXHAUSTED 0x0201u /* memory, instances or handles are used up */
#define BP_TIMED_OUT 0x0202u          /* the deadline passed */
#define BP_CANCELLED 0x0203u          /* the cancel token was set */
#define BP_BUSY 0x0204u               /* another call holds what this one needs */
#define BP_DEPENDENCY_FAILED 0x0205u  /* a run that this run waited for failed; run that one again first */

#define BP_DEVICE_LOST 0x0301u /* the device or its driver is gone */
#define BP_FORKED 0x0303u      /* the process is a child of the one that created the object */
#define BP_STALE 0x0304u       /* a cache entry or handle belongs to an older build, driver or graph */

#define BP_INTERNAL 0x0401u     /* a defect in the callee */
#define BP_INCOMPATIBLE 0x0402u /* no common ABI version, other architecture, other sanitizer */
#define BP_CORRUPT 0x0403u      /* stored data fails its checksum or its format */
#define BP_IO_ERROR 0x0404u     /* the file system or the network failed */

/* Details of an error. The caller owns the struct and the text buffer, and passes NULL if it does not need the
 * details. On failure, the callee writes at most `size` bytes of the struct and at most `text_capacity` bytes of text,
 * and sets `text_size` to the length of the whole text in bytes, which may exceed `text_capacity`. On success it writes
 * nothing, except in slots that are documented to explain a result with BP_OK. The text is UTF-8 without a final zero:
 * one line that names the object, the value found and how to fix it.
 *
 * Where one side passes an error to the other as an argument (`done`, `semaphore_signal`), the text is the first
 * min(text_size, text_capacity) bytes: set both. */
typedef struct bp_error_t {
  uint32_t size;
  bp_status_t status;
  uint64_t node;       /* bp_node_t.id of the node that failed, or BP_NO_NODE */
  int64_t vendor_code; /* the driver's own code, or 0 */
  uint32_t flags;      /* BP_ERROR_* */
  uint32_t reserved;
  char* text; /* may be NULL when text_capacity is 0 */
  uint64_t text_capacity;
  uint64_t text_size;
  uint64_t run; /* bp_run_t.id of the run that failed, if that is not the run being reported; otherwise 0 */
} bp_error_t;

#define BP_NO_NODE UINT64_MAX
#define BP_ERROR_DEVICE_LOST 0x1u /* every object of the device is lost, not only the one that was called */
/* the device did not respond: memory bound to the exec must stay allocated, because the device may still write to it */
#define BP_ERROR_ABANDONED 0x2u
/* the failure is that of another run: a wait for a stream reports it, or `done` of a later run in the stream, which may
 * have failed too */
#define BP_ERROR_OF_RUN 0x4u

BP_EXTERN_C_END

#endif
