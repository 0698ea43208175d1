/* SPDX-License-Identifier: Apache-2.0
 *
 * The host's functions for plugins: log, trace, memory, threads, topology, options, cancellation, semaphores,
 * containers. The table lives until the plugin's `destroy` has returned.
 */
#ifndef BACKPLANE_HOST_H
#define BACKPLANE_HOST_H

#include "backplane/memory.h"
#include "backplane/sync.h"

BP_EXTERN_C_BEGIN

/* The versions that the host offers to a plugin, before it creates a backend. The plugin chooses the highest version
 * that both support. */
typedef struct bp_host_offer_t {
  uint32_t size;
  uint32_t version_min; /* BP_MAKE_VERSION */
  uint32_t version_max;
  uint32_t sanitizer; /* BP_SANITIZER_* */
  bp_text_t build_id;
} bp_host_offer_t;

/* The sanitizer of a build. Both sides must have the same one (sanitizers replace the allocator or need instrumented
 * callers). */
#define BP_SANITIZER_NONE 0u
#define BP_SANITIZER_ADDRESS 1u
#define BP_SANITIZER_THREAD 2u
#define BP_SANITIZER_MEMORY 3u

#define BP_LOG_ERROR 1u
#define BP_LOG_WARNING 2u
#define BP_LOG_INFO 3u
#define BP_LOG_DEBUG 4u

/* A finished piece of work, for the trace's timeline. */
typedef struct bp_span_t {
  uint32_t size;
  uint32_t kind;         /* BP_SPAN_* */
  uint64_t begin;        /* ns on the monotonic clock; `flags` marks converted device time */
  uint64_t end;          /* ns */
  uint64_t trace_id;     /* bp_run_t.trace_id, or 0 */
  const uint64_t* nodes; /* bp_node_t.id of each node that was computed; a fused kernel has several */
  uint32_t node_count;
  uint32_t flags;  /* BP_SPAN_DEVICE_CLOCK */
  uint64_t bytes;  /* bytes moved, or 0 */
  uint64_t device; /* the device's id; 0: the plugin's first device */
  bp_text_t name;
} bp_span_t;

#define BP_SPAN_COMPUTE 1u
#define BP_SPAN_COPY 2u
#define BP_SPAN_COMPILE 3u
#define BP_SPAN_WAIT 4u
#define BP_SPAN_DEVICE_CLOCK 0x1u

/* A logical processor of the machine. Numbers that are unknown are BP_NONE, and sizes that are unknown are 0. */
typedef struct bp_core_t {
  uint32_t id;   /* logical processor, as numbered by the system */
  uint32_t core; /* physical core; the logical processors of a core share it */
  uint32_t numa_node;
  uint32_t package;
  uint32_t kind;     /* relative speed class; 0 is the slowest; if speeds are unknown, all are 0 */
  uint32_t flags;    /* BP_CORE_ALLOWED: the process may run on it */
  uint64_t l1_bytes; /* of the data cache */
  uint64_t l2_bytes;
  uint64_t l3_bytes; /* shared by the processors with the same `l3` */
  uint32_t l3;       /* number of the level 3 cache */
  uint32_t reserved;
} bp_core_t;
#define BP_CORE_ALLOWED 0x1u

typedef struct bp_topology_t {
  uint32_t size;
  uint32_t core_count;
  const bp_core_t* cores; /* valid as long as the host table */
  uint32_t core_stride;
  uint32_t numa_count;
  uint64_t memory_bytes; /* of the machine, or of the control group if that has less */
  uint64_t cache_line_bytes;
} bp_topology_t;

/* A cancel token. It can only go from 0 to 1. */
typedef struct bp_cancel_t bp_cancel_t;

/* A parallel loop over [0, count). */
typedef struct bp_loop_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  uint64_t count;
  uint64_t grain; /* minimum number of iterations in a chunk; 0: 1. A loop with fewer is one chunk */
  void* context;
  /* Runs the chunk [begin, end) of the loop. Chunks of one loop that run at the same time have different values of
   * `worker`, which is below `thread_count`. Other loops, including those within a chunk, may use the same values at
   * the same time. `body` must not throw, and must not wait for another chunk or for a semaphore. */
  void(BP_CALL* body)(void* context, uint32_t worker, uint64_t begin, uint64_t end);
} bp_loop_t;

/* Work for a thread of the host. */
typedef struct bp_task_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  void* self;
  /* Must not throw. May block, including in `semaphore_wait`. The host starts each task without waiting for another to
   * end, so a task may wait for a semaphore that another task signals. */
  void(BP_CALL* run)(void* self);
} bp_task_t;

/* A callback for cancellation. */
typedef struct bp_on_cancel_t {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* Called at most once, on a thread of the host, soon after the token was set. It must not throw and must not block.
   * The only slot that it may call is `semaphore_signal`. */
  void(BP_CALL* cancelled)(void* self);
} bp_on_cancel_t;
typedef struct bp_cancel_link_t bp_cancel_link_t; /* opaque */

typedef struct bp_host_t bp_host_t;
struct bp_host_t {
  uint32_t size;
  uint32_t version; /* the version that the plugin chose */
  void* self;       /* private to the host; plugins leave it alone */

  /* Writes a log line; the text is copied. [thread-safe]. NULL: nothing is logged. */
  void(BP_CALL* log)(const bp_host_t* host, uint32_t level, bp_text_t text);
  /* Returns 1 while a trace is being collected, otherwise 0: spans are then dropped, so do not time them.
   * [thread-safe]. NULL: no tracing. */
  uint32_t(BP_CALL* tracing)(const bp_host_t* host);
  /* Copies the span. [thread-safe]. NULL if `tracing` is NULL. */
  void(BP_CALL* trace)(const bp_host_t* host, const bp_span_t* span);

  /* Allocates host memory; `alignment` is a power of two up to 4096. Returns NULL if there is no memory or
   * `alignment` is another number. [thread-safe]. NULL slot: use your own allocator. */
  void*(BP_CALL* allocate)(const bp_host_t* host, uint64_t bytes, uint64_t alignment);
  /* Frees memory of `allocate`. Pass the same `bytes` and `alignment` as to `allocate`. [thread-safe]. NULL if
   * `allocate` is NULL. */
  void(BP_CALL* release)(const bp_host_t* host, void* memory, uint64_t bytes, uint64_t alignment);

  /* Runs a loop on the host's threads and on the calling thread, and returns when all of it is done. May be called
   * from within a body. [thread-safe] [blocks]. NULL slot: run the loop yourself. */
  void(BP_CALL* parallel_for)(const bp_host_t* host, const bp_loop_t* loop);
  /* The maximum number of threads that `parallel_for` uses, including the caller; at least 1. [thread-safe] */
  uint32_t(BP_CALL* thread_count)(const bp_host_t* host);
  /* Describes the machine. [thread-safe] [blocks] the first time. Errors: BP_UNSUPPORTED. */
  bp_status_t(BP_CALL* topology)(const bp_host_t* host, bp_topology_t* out_topology);

  /* Returns a setting of this plugin by its name without the plugin's prefix ("threads", not "cpu.threads"). The text
   * lives as long as this table. [thread-safe]. Errors: BP_NOT_FOUND. */
  bp_status_t(BP_CALL* option)(const bp_host_t* host, bp_text_t name, bp_text_t* out_value);
  /* Returns 1 if the token was set. A NULL token is never set. [thread-safe] */
  uint32_t(BP_CALL* cancelled)(const bp_host_t* host, const bp_cancel_t* token);

  /* Waits until a host semaphore (the handle of a point of kind BP_POINT_HOST) reaches `value`. `deadline` is in ns on
   * the monotonic clock; BP_FOREVER means none, and 0 checks without waiting. [thread-safe] [blocks]. Errors:
   * BP_TIMED_OUT, BP_CANCELLED, BP_DEPENDENCY_FAILED (with the detail of the failure that the value was signaled
   * with). */
  bp_status_t(BP_CALL* semaphore_wait)(const bp_host_t* host, bp_semaphore_t* semaphore, uint64_t value,
                                       uint64_t deadline, const bp_cancel_t* cancel, bp_error_t* error);
  /* Sets the semaphore to `value` if that is larger, and wakes every waiter. With `failure` (copied; its status is not
   * BP_OK), the values that this call adds have failed. [thread-safe] */
  void(BP_CALL* semaphore_signal)(const bp_host_t* host, bp_semaphore_t* semaphore, uint64_t value,
                                  const bp_error_t* failure);
  /* Returns the semaphore's current value. [thread-safe]. Errors: BP_DEPENDENCY_FAILED if that value has failed, with
   * the detail; `out_value` is then written too. */
  bp_status_t(BP_CALL* semaphore_query)(const bp_host_t* host, bp_semaphore_t* semaphore, uint64_t* out_value,
                                        bp_error_t* error);

  /* The functions that read and change bound sequences, optionals and maps. NULL: the host passes no containers.
   * [thread-safe] */
  const bp_container_api_t* containers;

  /* Returns an extension table by name and version, or NULL. It lives as long as this table. [thread-safe]. NULL slot:
   * no extensions. */
  const void*(BP_CALL* get_extension)(const bp_host_t* host, bp_text_t name, uint32_t version);

  /* Runs a task on a thread of the host other than the caller's, without waiting for it. The host waits for all tasks
   * of a plugin before it calls the plugin's `destroy`. [thread-safe]. NULL: start a thread of your own. Errors:
   * BP_RESOURCE_EXHAUSTED (the task will not run). */
  bp_status_t(BP_CALL* submit)(const bp_host_t* host, const bp_task_t* task);
  /* Requests a callback when a token is set; if the token is already set, the callback comes soon. Remove every link
   * with `off_cancel` before the token is destroyed; the token is destroyed at the end of the run or call that it came
   * with. [thread-safe]. NULL: poll `cancelled`. Errors: BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* on_cancel)(const bp_host_t* host, const bp_cancel_t* token, const bp_on_cancel_t* what,
                                  bp_cancel_link_t** out_link);
  /* Removes the callback. When this returns, the callback is not running and will not run. Must not be called from
   * within the callback. [thread-safe] [blocks]. NULL if `on_cancel` is NULL. */
  void(BP_CALL* off_cancel)(const bp_host_t* host, bp_cancel_link_t* link);
  /* Returns setting `index` of this plugin, counted from 0 in the order of the settings' names, so that the plugin can
   * refuse unknown settings. [thread-safe]. NULL: query settings by name with `option`. Errors: BP_NOT_FOUND (`index`
   * is not below the number of settings). */
  bp_status_t(BP_CALL* option_at)(const bp_host_t* host, uint32_t index, bp_option_t* out_option);
};

BP_EXTERN_C_END

#endif
