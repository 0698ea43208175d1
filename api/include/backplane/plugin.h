/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of a backend. A plugin exports one symbol, bp_plugin_query; everything else is reached through tables.
 *
 * The life of a plugin:
 *   bp_plugin_query → create → devices → open → coverage → review → compile → instance_create → bind → run …
 * and back in reverse order. The plugin does not link against the host.
 */
#ifndef BACKPLANE_PLUGIN_H
#define BACKPLANE_PLUGIN_H

#include "backplane/graph.h"
#include "backplane/host.h"
#include "backplane/memory.h"
#include "backplane/sync.h"

BP_EXTERN_C_BEGIN

typedef struct bp_backend_t bp_backend_t;   /* a backend that was created; opaque */
typedef struct bp_device_t bp_device_t;     /* an opened device; opaque */
typedef struct bp_program_t bp_program_t;   /* a compiled island: immutable; opaque */
typedef struct bp_instance_t bp_instance_t; /* a program's state for one run at a time; opaque */

/* ---- devices ----------------------------------------------------------------------------------------------------- */

#define BP_DEVICE_CPU 1u
#define BP_DEVICE_GPU 2u
#define BP_DEVICE_NPU 3u
#define BP_DEVICE_FPGA 4u
#define BP_DEVICE_OTHER 5u

#define BP_DEVICE_SYNCHRONOUS 0x1u        /* `run` returns when the work is done; the device needs no stream */
#define BP_DEVICE_UNIFIED_MEMORY 0x2u     /* reads and writes host memory without a copy */
#define BP_DEVICE_FLUSHES_SUBNORMALS 0x4u /* replaces subnormal floating-point numbers by 0 */
#define BP_DEVICE_DETERMINISTIC 0x8u      /* the same inputs yield bit-identical outputs */

/* The description of a device. Text lives as long as the backend. */
typedef struct bp_device_info_t {
  uint32_t size;
  uint32_t index; /* counted from 0 among the backend's devices; in loader.h, from 1 among those of all backends */
  uint32_t kind;  /* BP_DEVICE_CPU … */
  uint32_t flags; /* BP_DEVICE_SYNCHRONOUS … */
  bp_text_t name; /* for people: "NVIDIA H200" */
  bp_text_t vendor;
  bp_text_t driver; /* the driver's version; part of cache keys */
  bp_text_t arch;   /* the architecture that a compiled program needs: "sm_90", "avx512_core"; part of cache keys */
  uint8_t uuid[16]; /* zero if there is none */
  bp_text_t pci;    /* "0000:65:00.0", or empty */
  uint64_t memory_bytes;     /* 0 if unknown */
  uint64_t memory_bandwidth; /* bytes per second; 0 if unknown */
  uint64_t link_bandwidth;   /* bytes per second between host memory and the device; 0 if unknown */
  uint64_t launch_ns;        /* overhead of a run, without its work */
  double flops_fp32;         /* operations per second, 0 if unknown; a multiply-add counts as two */
  double flops_fp16;         /* likewise */
  double ops_int8;           /* likewise */
  bp_dtype_set_t dtypes;     /* data types that values on this device may have; at least one */
  uint32_t space_count;      /* number of memory spaces; at least 1 if there is a bp_memory_api_t */
  uint32_t peer_count;
  const uint32_t* peers; /* devices of this plugin (their `index`) from whose memory `copy` of this device can read;
                            the array lives as long as the backend */
  /* Properties that have no field: "cuda.index", "pci.luid", "clock.mhz". They live as long as the backend. */
  const bp_option_t* properties;
  uint32_t property_count;
  uint32_t property_stride;
  uint64_t id; /* 0 from a plugin; in loader.h the device's id, which is the same in every process on this machine */
} bp_device_info_t;

/* An allocation request. */
typedef struct bp_allocate_t {
  uint32_t size;
  uint32_t space; /* index of one of the device's spaces */
  uint64_t bytes;
  bp_stream_t* stream; /* of this device: only work put into it later uses the memory; NULL: any work may use it */
  const bp_chain_t* chain;
} bp_allocate_t;

/* Parameters for opening a device. */
typedef struct bp_device_open_t {
  uint32_t size;
  uint32_t reserved;
  uint64_t id;               /* the host's id of the device, in buffers, points and spans */
  const bp_native_t* native; /* the framework's own context to work in, or NULL; it must outlive the device */
  const bp_option_t* options;
  uint32_t option_count;
  uint32_t option_stride;
  void* self;
  /* The framework's own allocator of the device's memory. The host uses it for memory between islands and for outputs;
   * a plugin may use it for its own memory. The allocator writes `out_external` (of a kind that the space imports): at
   * least `what->bytes` bytes, aligned as the space requires. Because bp_external_t.release takes no stream, it is
   * called only once no work uses the memory any more. `what->stream` and `what->chain` are NULL. `self` and the
   * function must stay valid until the device was closed and the last `release` was called: in loader.h, until the
   * environment and every session, exec, stream and native semaphore made from it are destroyed; if the device was
   * abandoned, until the process ends. If the import fails, the caller of `allocate` calls `release`. NULL: the
   * plugin's `allocate`. [thread-safe] [blocks]. Errors: BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* allocate)(void* self, const bp_allocate_t* what, bp_external_t* out_external);
  const bp_chain_t* chain;
} bp_device_open_t;

typedef struct bp_device_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Returns the number of devices. The number and the order of the devices stay the same while the backend lives. This
   * may start the driver. 0 is not an error: return BP_OK and put the reason into
   * `error`. [one at a time] [blocks]. Errors: BP_UNSUPPORTED, BP_PERMISSION_DENIED. */
  bp_status_t(BP_CALL* count)(bp_backend_t* backend, uint32_t* out_count, bp_error_t* error);
  /* Describes device `index`, counted from 0. [thread-safe]. Errors: BP_NOT_FOUND. */
  bp_status_t(BP_CALL* info)(bp_backend_t* backend, uint32_t index, bp_device_info_t* out_info, bp_error_t* error);
  /* Opens device `index`, counted from 0. May be called again while the device is open, with other options or another
   * native object; a backend that cannot do that returns BP_BUSY. [one at a time] [blocks]. Errors: BP_NOT_FOUND,
   * BP_BUSY, BP_DEVICE_LOST, BP_RESOURCE_EXHAUSTED, BP_UNSUPPORTED. */
  bp_status_t(BP_CALL* open)(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how,
                             bp_device_t** out_device, bp_error_t* error);
  /* The host calls this after it has destroyed everything created on the device. [one at a time] [blocks] */
  void(BP_CALL* close)(bp_device_t* device);
  /* BP_OK while the device works. [thread-safe]. NULL: it always does. Errors: BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* health)(bp_device_t* device, bp_error_t* error);
  /* Abandons a device that hangs: a run has not ended although its deadline passed, or the framework reports that the
   * device hangs. The host starts nothing more on the device. It calls no slot with the device or with anything created
   * on it, not even `destroy` and `close`: program, instances, streams, memory, backend and library stay. Bound memory
   * stays allocated; `done` of a run may still be called, and calls begun before may still arrive. The plugin stops
   * whatever would wait for the device, and must not wait itself. [thread-safe]. NULL: nothing to stop. */
  void(BP_CALL* abandon)(bp_device_t* device);
} bp_device_api_t;

/* ---- coverage and review ----------------------------------------------------------------------------------------- */

#define BP_ANSWER_NO 0u
#define BP_ANSWER_YES 1u
#define BP_ANSWER_CONDITIONAL 2u /* yes, as long as the symbols stay in the given ranges */

/* Why a device does not support a node. The codes are stable: tools and tests compare them. */
#define BP_REASON_NONE 0u
#define BP_REASON_OPERATOR 1u /* the device does not know the operator */
#define BP_REASON_OPSET 2u    /* the device does not know this form of the operator */
#define BP_REASON_DTYPE 3u
#define BP_REASON_SHAPE 4u /* rank, extent or an unknown dimension */
#define BP_REASON_ATTRIBUTE 5u
#define BP_REASON_CONSTANT 6u /* an input must be constant and is not, or the reverse */
#define BP_REASON_MEMORY 7u
#define BP_REASON_PRECISION 8u /* only with less precision than the session allows */
#define BP_REASON_SUBGRAPH 9u
#define BP_REASON_COST 10u   /* possible, but not worth its cost */
#define BP_REASON_POLICY 11u /* forbidden by an option or by the user */
#define BP_REASON_OTHER 12u

/* A mask of types, other than the node's own, in which a node may be computed or was computed. */
#define BP_COMPUTE_TF32 0x1u            /* fp32 products with 10 bits of mantissa, accumulated in fp32 */
#define BP_COMPUTE_BF16 0x2u            /* accumulated in fp32 */
#define BP_COMPUTE_FP16 0x4u            /* accumulated in fp32 */
#define BP_COMPUTE_FP16_ACCUMULATE 0x8u /* fp16 accumulated in fp16 */
#define BP_COMPUTE_FP8 0x10u            /* accumulated in fp32 */

/* A symbol and the extents for which an answer holds, from min to max inclusive. The struct never grows. */
typedef struct bp_range_t {
  uint32_t symbol; /* index into bp_graph_t.symbols */
  uint32_t reserved;
  int64_t min;
  int64_t max;
} bp_range_t;

/* A device's verdict on a node. */
typedef struct bp_verdict_t {
  uint32_t node;          /* index into bp_graph_t.nodes */
  uint32_t answer;        /* BP_ANSWER_* */
  uint32_t reason;        /* BP_REASON_*, with BP_ANSWER_NO */
  uint32_t compute_types; /* BP_COMPUTE_* in which the device computes the node, among those that the query allows; 0:
                             the node's own type */
  bp_text_t detail;       /* for people: the value found and what is supported; copied */
  double seconds;         /* expected time; 0 if unknown */
  uint64_t bytes;         /* device memory, without inputs and outputs; 0 if unknown */
  float confidence;       /* how far to trust `seconds`: from 0 (a guess) to 1 (measured on this machine) */
  uint32_t range_count;
  const bp_range_t* ranges; /* with BP_ANSWER_CONDITIONAL; copied */
} bp_verdict_t;

/* Nodes that the device would run as one, for example fused. A node may be in several groups. */
typedef struct bp_group_t {
  const uint32_t* nodes; /* copied */
  uint32_t node_count;
  uint32_t flags;         /* BP_GROUP_* */
  double seconds;         /* expected time of the whole group; 0 if unknown */
  uint64_t bytes;         /* device memory, as in bp_verdict_t */
  uint32_t compute_types; /* as in bp_verdict_t */
  float confidence;       /* as in bp_verdict_t */
  bp_text_t name;         /* for people: "attention"; copied */
} bp_group_t;

#define BP_GROUP_ATOMIC 0x10000u /* the nodes' own verdicts hold only within this group: place all of them or none */

/* Receives verdicts and groups. The host owns the sink and copies its arguments. May be called from any thread while
 * `query` is in progress. [one at a time] */
typedef struct bp_coverage_sink_t {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* Takes verdicts, in any number of calls. A node without a verdict counts as BP_ANSWER_NO, BP_REASON_OPERATOR. */
  void(BP_CALL* verdicts)(void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride);
  void(BP_CALL* groups)(void* self, const bp_group_t* groups, uint32_t count, uint32_t stride);
} bp_coverage_sink_t;

typedef struct bp_coverage_query_t {
  uint32_t size;
  uint32_t compute_types; /* BP_COMPUTE_* that the session allows */
  const bp_graph_t* graph;
  const uint32_t* nodes; /* indices of the nodes that are queried; NULL: all nodes */
  uint32_t node_count;
  uint32_t option_stride;
  const bp_option_t* options;
  uint32_t option_count;
  uint32_t reserved;
  const bp_cancel_t* cancel;
  const bp_chain_t* chain;
} bp_coverage_query_t;

/* An island and its compile settings. */
typedef struct bp_compile_t {
  uint32_t size;
  uint32_t compute_types; /* BP_COMPUTE_* that the session allows */
  /* The island. It lives as long as the program (in review: until the call returns). Its symbols have the ranges of
   * extents that will be used in runs. */
  const bp_graph_t* graph;
  const bp_option_t* options;
  uint32_t option_count;
  uint32_t option_stride;
  uint32_t flags; /* BP_COMPILE_* */
  uint32_t reserved;
  const bp_cancel_t* cancel;
  void* progress_self;
  /* Reports `done` of `total` steps. May be NULL. May be called from any thread while the call is in progress. [one at
   * a time] */
  void(BP_CALL* progress)(void* progress_self, uint32_t done, uint32_t total);
  const bp_chain_t* chain;
} bp_compile_t;

#define BP_COMPILE_REFIT 0x10000u /* weights marked BP_WEIGHT_REFIT must stay replaceable */

#define BP_REVIEW_ACCEPT 0u
#define BP_REVIEW_REJECT 1u
#define BP_REVIEW_SPLIT 2u

/* The verdict on a proposed island. */
typedef struct bp_review_t {
  uint32_t size;
  uint32_t answer; /* BP_REVIEW_* */
  uint32_t reason; /* BP_REASON_*, unless accepted */
  uint32_t reserved;
  double seconds; /* expected time of the whole island; 0 if unknown */
  uint64_t bytes; /* device memory that it needs; 0 if unknown */
  void* split_self;
  /* Set by the host. With BP_REVIEW_SPLIT, the plugin calls it once for each part that it would accept, with node
   * indices of the island. Nodes in no part go back to the host. May be called from any thread while `review` is in
   * progress. [one at a time] */
  void(BP_CALL* split)(void* split_self, const uint32_t* nodes, uint32_t count);
} bp_review_t;

/* A node whose outputs have types that the host does not know. */
typedef struct bp_infer_t {
  uint32_t size;
  uint32_t node; /* index into bp_graph_t.nodes */
  const bp_graph_t* graph;
  const bp_option_t* options;
  uint32_t option_count;
  uint32_t option_stride;
  const bp_cancel_t* cancel;
  const bp_chain_t* chain;
} bp_infer_t;

/* The newest operator sets that a device supports. */
typedef struct bp_opsets_t {
  uint32_t size;
  uint32_t ir_version; /* the newest ONNX IR version for `serialize`; 0: the host's */
  const bp_opset_t* opsets;
  uint32_t opset_count;
  uint32_t opset_stride;
} bp_opsets_t;

/* Receives the types of a node's outputs. The host owns the sink and copies its arguments. */
typedef struct bp_infer_sink_t {
  uint32_t size;
  uint32_t reserved;
  void* self;
  /* Reports that output `slot` is a tensor of this type, with `rank` elements in `dims`. A `rank` of -1 and extents of
   * -1 are unknown; symbols are those of the graph. May be called from any thread while `infer` is in progress. [one at
   * a time] */
  void(BP_CALL* output)(void* self, uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims);
} bp_infer_sink_t;

typedef struct bp_coverage_api_t {
  uint32_t size;
  uint32_t newest_opset_count;
  /* The newest supported operator set of each domain. The host presents each node in the newest form within that set.
   * For a node without such a form, the host ignores the device's verdict and reports BP_REASON_OPSET. */
  const bp_opset_t* newest_opsets;
  uint32_t newest_opset_stride;
  uint32_t reserved;
  /* Reports to `sink` which of the queried nodes the device can run. Idempotent; keeps no pointer. The host may call it
   * several times for a model: for the bodies of control flow, and for other forms of a node (a function, and the nodes
   * that it consists of). `compile` refuses unknown options; this call, `review` and `infer` may do so too
   * (BP_NOT_FOUND). [thread-safe] [blocks]. Errors: BP_CANCELLED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* query)(bp_device_t* device, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                              bp_error_t* error);
  /* Reviews an island, which is passed as a graph with inputs and outputs. An accepted island must compile with
   * the same `what`. To reject one, return BP_OK with the reason in `error`. [thread-safe] [blocks]. NULL: every
   * island of supported nodes is accepted. Errors: BP_CANCELLED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* review)(bp_device_t* device, const bp_compile_t* what, bp_review_t* out_review,
                               bp_error_t* error);
  /* Reports to `sink` the output types of a node that the device claims and whose domain the host does not know. The
   * types of the node's inputs are in the graph. [thread-safe] [blocks]. NULL: outputs have the types that the model
   * declares. Errors: BP_INVALID_MODEL (the node's inputs or attributes are impossible), BP_UNSUPPORTED, BP_CANCELLED.
   */
  bp_status_t(BP_CALL* infer)(bp_device_t* device, const bp_infer_t* what, const bp_infer_sink_t* sink,
                              bp_error_t* error);
  /* The newest operator sets and IR version of this device, if they differ from those of the backend. The arrays live
   * as long as the device. [thread-safe]. NULL: `newest_opsets` applies. */
  bp_status_t(BP_CALL* opsets)(bp_device_t* device, bp_opsets_t* out_opsets, bp_error_t* error);
} bp_coverage_api_t;

/* ---- compile ----------------------------------------------------------------------------------------------------- */

#define BP_SHAPES_STATIC 0u         /* the graph states all extents */
#define BP_SHAPES_COMPUTED 1u       /* `output_extents` returns them before the run */
#define BP_SHAPES_DATA_DEPENDENT 2u /* known only during the run: the plugin calls bp_run_t.output */

/* Output `output` may share the buffer of input `input`. The struct never grows. */
typedef struct bp_inplace_t {
  uint32_t input;
  uint32_t output;
  uint32_t rule; /* BP_DONATE_* */
  uint32_t reserved;
} bp_inplace_t;
#define BP_DONATE_NEVER 0u /* input and output must not overlap (the default) */
#define BP_DONATE_MAY 1u
#define BP_DONATE_MUST 2u /* the same buffer must be bound to both, for example a cache that is updated in place */

typedef struct bp_program_info_t {
  uint32_t size;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t shapes; /* BP_SHAPES_*: the highest number among the outputs */
  /* Bytes of scratch memory that an instance needs bound to BP_SLOT_SCRATCH, as UINT8, in the space in which the
   * loader binds the slots of a framework (bp_memory_api_t). 0: none. The content is lost between runs, because other
   * instances of the device share the memory. */
  uint64_t scratch_bytes;
  uint32_t flags; /* none defined */
  uint32_t inplace_count;
  const bp_inplace_t* inplace; /* lives as long as the program */
  uint64_t device_bytes;       /* held by the program itself: weights, code */
} bp_program_info_t;

/* The inputs for which output extents are requested. */
typedef struct bp_shape_query_t {
  uint32_t size;
  uint32_t input_count;
  /* One tensor for each input; that of a container is ignored. Its `buffer.address` points to the data if they are
   * known and in host memory; a host may always pass NULL. */
  const bp_tensor_t* inputs;
  uint32_t input_stride;
  uint32_t output_stride; /* of the array that receives the shapes */
} bp_shape_query_t;

/* The extents of an output. The struct never grows. */
typedef struct bp_shape_t {
  uint32_t rank; /* BP_NONE: known only during the run */
  uint32_t reserved;
  int64_t extents[BP_MAX_RANK]; /* the first `rank` are used */
} bp_shape_t;

typedef struct bp_program_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Compiles an island. [thread-safe] [blocks]. Errors: BP_UNSUPPORTED (with the node), BP_NOT_FOUND (an option),
   * BP_CANCELLED, BP_RESOURCE_EXHAUSTED, BP_DEVICE_LOST, BP_IO_ERROR. */
  bp_status_t(BP_CALL* compile)(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program,
                                bp_error_t* error);
  /* The host destroys the program's instances first. [one at a time] [blocks] */
  void(BP_CALL* destroy)(bp_program_t* program);
  /* Describes the program. [thread-safe] */
  bp_status_t(BP_CALL* info)(const bp_program_t* program, bp_program_info_t* out_info, bp_error_t* error);
  /* Computes the extents of all outputs for given inputs. `out_shapes` has one element for each output. The host calls
   * it unless `shapes` is BP_SHAPES_STATIC, and then binds each output whose extents are known. [thread-safe]. NULL:
   * shapes are static or data-dependent. Errors: BP_TYPE_MISMATCH. */
  bp_status_t(BP_CALL* output_extents)(const bp_program_t* program, const bp_shape_query_t* query,
                                       bp_shape_t* out_shapes, bp_error_t* error);
} bp_program_api_t;

/* ---- run --------------------------------------------------------------------------------------------------------- */

/* Slots of an instance, to which memory is bound: inputs from 0, outputs from BP_SLOT_OUTPUT, and scratch memory. */
#define BP_SLOT_OUTPUT 0x40000000u
#define BP_SLOT_SCRATCH 0x80000000u

/* The memory or container to bind to a slot. Memory comes with a tensor and a capacity (buffer.bytes). The tensor's
 * extents are the slot's until others are set. */
typedef struct bp_binding_t {
  uint32_t size;
  uint32_t slot;       /* an input, BP_SLOT_OUTPUT plus an output, or BP_SLOT_SCRATCH */
  bp_tensor_t* tensor; /* borrowed for the call; the caller owns its memory, which is used until the slot is rebound */
  bp_container_t* container; /* for values that are not tensors; used until the slot is rebound. In each run, the plugin
                                clears an output's container before it appends to it */
} bp_binding_t;

/* New extents for a slot. */
typedef struct bp_slot_extents_t {
  uint32_t slot; /* an input, or BP_SLOT_OUTPUT plus an output */
  uint32_t rank;
  const int64_t* extents; /* `rank` numbers */
} bp_slot_extents_t;

/* Parameters for creating an instance. */
typedef struct bp_instance_create_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  const bp_chain_t* chain;
} bp_instance_create_t;

/* One run, or one copy. The callee copies the struct and its arrays. `cancel` and the semaphores must live until
 * `done` was called and the signals have advanced. Without `done`, they must live until the `done` of a later run in
 * the stream was called or `stream_wait` found all work ended; without a stream, until its host points have advanced.
 *
 * The end of a run: the device no longer touches the bound memory (even after a failure, a deadline or a cancellation),
 * then `done` is called, then host points advance. Native points advance in the device's order, see sync.h.
 *
 * In a stream, a run starts when all earlier work in the stream has ended. The call returns without waiting for that
 * work or for the run. However, the first run with new bindings or extents, and a run whose plan depends on the bytes
 * of an input, may wait for the earlier work and for the points that the run waits for. Without `done`, the plugin
 * makes no callback for the run. If it fails, the next `done` or `stream_wait` of the stream reports the failure, with
 * this run's id in bp_error_t.run; of several failures, it reports the first, and the others are lost. So a run whose
 * `done` reports another run's failure may have failed itself, and its results are not valid. Later runs of the stream
 * start nevertheless. A host point that a run in a stream signals carries the first failure in the stream, up to that
 * run, that no `done` or `stream_wait` has reported; runs of the same backend that wait for a native point of that run
 * report the same failure. Carrying a failure does not report it: after a run without `done`, the next `done` or
 * `stream_wait` reports it too.
 *
 * Work in a stream may run to its end in spite of `deadline` and `cancel`: a host that wants to end a run early runs
 * it without a stream. There, a run ends soon after its deadline or its cancel token was set, as far as the device can
 * stop it, and the host may `abandon` a device whose run has not ended some time after its deadline (the loader: 100
 * ms, or its option loader.abandon_after). Runs of an instance may follow each other in one stream; a plugin that does
 * not allow that returns BP_BUSY, and the host waits for the stream. Several threads may put work into one stream: its
 * order is that of the calls. Without a stream, a run on an asynchronous device needs `done` or a host point among its
 * signals, because nothing else would report its failure. */
typedef struct bp_run_t bp_run_t;
struct bp_run_t {
  uint32_t size;
  uint32_t flags;      /* none defined */
  bp_stream_t* stream; /* of the same device; NULL: the instance's own order */
  const bp_point_t* waits;
  const bp_point_t* signals; /* advanced once the run is accepted, whether it succeeds, fails or is cancelled */
  uint32_t wait_count;
  uint32_t signal_count;
  uint64_t deadline; /* ns on the monotonic clock, 0 or BP_FOREVER: none */
  const bp_cancel_t* cancel;
  uint64_t id;      /* the host's number of the run, for bp_error_t.run; 0: none. Below 2^63 from a framework */
  int32_t priority; /* BP_PRIORITY_LOW … BP_PRIORITY_HIGH */
  uint32_t reserved;
  uint64_t trace_id; /* for bp_span_t.trace_id; 0: none */
  void* self;
  /* For outputs that are not bound because their size is not known before the run: their extents are data-dependent, or
   * their elements are strings. The plugin calls it once for each of them. `slot` is BP_SLOT_OUTPUT plus the output.
   * The plugin passes the extents and receives a tensor to write to, valid until the run ends. `bytes` is the size of a
   * string tensor (offsets and text); 0 if the size follows from type and extents. The plugin sets `out_tensor->size`.
   * NULL: the program has no such outputs. May be called from any thread during the run. [blocks]: within it, the
   * host may call `allocate`, `import` and `release` of the device, and nothing else. Errors: BP_RESOURCE_EXHAUSTED,
   * BP_BUFFER_TOO_SMALL. */
  bp_status_t(BP_CALL* output)(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                               bp_tensor_t* out_tensor);
  /* Called once when the run has ended, from any thread, before host points advance. `error` is borrowed and may be
   * NULL. The thread may be a driver's, so the host calls no slot of any plugin within it. A framework may call
   * bp_semaphore_signal, bp_semaphore_query and bp_cancel_set of loader.h, and nothing else. To start another run,
   * even of another exec, it must wake another thread. `done` may be NULL. */
  void(BP_CALL* done)(void* self, bp_status_t status, const bp_error_t* error);
};

/* A hint for ordering runs and streams of one device. Any number is allowed: a device uses the nearest of its own
 * levels. */
#define BP_PRIORITY_LOW (-100)
#define BP_PRIORITY_NORMAL 0
#define BP_PRIORITY_HIGH 100

typedef struct bp_instance_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Creates an instance of the program, which must outlive it. [thread-safe] [blocks]. Errors: BP_RESOURCE_EXHAUSTED,
   * BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* create)(const bp_program_t* program, const bp_instance_create_t* how,
                               bp_instance_t** out_instance, bp_error_t* error);
  /* Waits for a run in flight. [one at a time] [blocks] */
  void(BP_CALL* destroy)(bp_instance_t* instance);
  /* Binds memory to a slot, for all further runs. The host calls this and `extents` only when no run of the instance is
   * in flight. A slot cannot be unbound: the host creates another instance instead. [one at a time] [blocks]. Errors:
   * BP_TYPE_MISMATCH, BP_BUFFER_TOO_SMALL, BP_UNSUPPORTED (space, layout or alignment). */
  bp_status_t(BP_CALL* bind)(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error);
  /* Sets new extents of bound inputs and outputs, within their capacity and without rebinding: of all of them or, if
   * the call fails, of none. Extents of different slots need not fit each other until `run`. [one at a time]. NULL: the
   * host binds again. Errors: BP_TYPE_MISMATCH, BP_BUFFER_TOO_SMALL, BP_BAD_STATE (not bound). */
  bp_status_t(BP_CALL* extents)(bp_instance_t* instance, const bp_slot_extents_t* slots, uint32_t count,
                                uint32_t stride, bp_error_t* error);
  /* Runs once. BP_OK means that the run was accepted; on a BP_DEVICE_SYNCHRONOUS device, that it is also done. An
   * instance has one run at a time, or several that follow each other in one stream. A run without `done` counts as
   * ended once the `done` of a later run in its stream was called or `stream_wait` found all work ended; without a
   * stream, once its host points have advanced. If the call fails, even after the work began, the device no longer
   * touches the bound memory, and the plugin has neither called `done` nor advanced a signal: the caller does both.
   * After BP_OK the plugin does both; a synchronous device does so before it returns, and reports failures by its
   * return value alone, never by the status of `done`. [one at a time] [blocks on synchronous devices, where bindings
   * or extents are new, and where the plan depends on bytes of an input]. Errors: BP_BAD_STATE (a slot is not bound,
   * and is no output whose memory comes from bp_run_t.output), BP_BUSY, BP_CANCELLED, BP_TIMED_OUT, BP_DEVICE_LOST,
   * BP_DEPENDENCY_FAILED, BP_RESOURCE_EXHAUSTED, BP_TYPE_MISMATCH, BP_UNSUPPORTED (memory at an unsupported address; an
   * imported semaphore of a single value among the signals). */
  bp_status_t(BP_CALL* run)(bp_instance_t* instance, const bp_run_t* run, bp_error_t* error);
} bp_instance_api_t;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#define BP_MAP_READ 0x1u
#define BP_MAP_WRITE 0x2u

/* A buffer to free. */
typedef struct bp_release_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  const bp_buffer_t* buffer;
  bp_stream_t*
      stream; /* NULL: no work uses the memory any more; otherwise freed when the work now in the stream has ended */
} bp_release_t;

/* Memory to make visible to the host. */
typedef struct bp_map_t {
  uint32_t size;
  uint32_t access; /* BP_MAP_* */
  const bp_buffer_t* buffer;
} bp_map_t;

/* A copy of `bytes` bytes from the beginning of one buffer to the beginning of another. The two ranges must not
 * overlap. */
typedef struct bp_copy_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  const bp_buffer_t* from;
  const bp_buffer_t* to;
  uint64_t bytes;
  const bp_run_t* run; /* its `stream` is set and its `output` NULL; waits, `done` and signals are as for a run. NULL:
                          copy at once, and wait for it */
} bp_copy_t;

/* A pattern of 1, 2, 4 or 8 bytes, repeated over a whole buffer; the last repetition may be incomplete. */
typedef struct bp_fill_t {
  uint32_t size;
  uint32_t pattern_bytes;
  uint64_t pattern; /* the first `pattern_bytes` bytes of it, in memory order, are the pattern */
  const bp_buffer_t* buffer;
  const bp_run_t* run; /* as in bp_copy_t */
} bp_fill_t;

/* Memory that another library or process owns, to be imported into a space. */
typedef struct bp_import_t {
  uint32_t size;
  uint32_t space; /* index of one of the device's spaces */
  const bp_external_t* external;
} bp_import_t;

/* A buffer to be exported as a handle for another library or process. */
typedef struct bp_export_t {
  uint32_t size;
  uint32_t kind; /* BP_EXTERNAL_* */
  const bp_buffer_t* buffer;
} bp_export_t;

/* Devices of a plugin without this table use host memory (space 0, BP_SPACE_HOST). With the table, all slots are
 * required unless their comment mentions NULL. Programs accept dense tensors in space 0 and in every space with
 * BP_SPACE_DEVICE. A slot to which the framework binds memory is bound in space 0 if space 0 has BP_SPACE_HOST or no
 * space has BP_SPACE_DEVICE, otherwise in the first space with BP_SPACE_DEVICE. Values between islands are in the first
 * space that has BP_SPACE_DEVICE and not BP_SPACE_HOST, if there is one. */
typedef struct bp_memory_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Describes space `index`, counted from 0. [thread-safe]. Errors: BP_NOT_FOUND. */
  bp_status_t(BP_CALL* space)(bp_device_t* device, uint32_t index, bp_space_t* out_space, bp_error_t* error);
  /* Allocates memory. The caller owns the buffer until it passes it to `release`. [thread-safe] [blocks]. Errors:
   * BP_RESOURCE_EXHAUSTED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* allocate)(bp_device_t* device, const bp_allocate_t* what, bp_buffer_t* out_buffer,
                                 bp_error_t* error);
  /* Frees a buffer from `allocate` or `import`. [thread-safe] [blocks] */
  void(BP_CALL* release)(bp_device_t* device, const bp_release_t* what);
  /* Returns a host pointer to the buffer, valid until `unmap`. [thread-safe] [blocks]. NULL: the host copies. Errors:
   * BP_UNSUPPORTED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* map)(bp_device_t* device, const bp_map_t* what, void** out_pointer, bp_error_t* error);
  /* Ends a mapping: `what` and `pointer` are those of `map`. [thread-safe] [blocks]. NULL if `map` is NULL. Errors:
   * BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* unmap)(bp_device_t* device, const bp_map_t* what, void* pointer, bp_error_t* error);
  /* Makes what the host wrote visible to the device (BP_MAP_WRITE), or what the device wrote visible to the host
   * (BP_MAP_READ): through a mapping, or through the host memory that was imported. [thread-safe] [blocks]. NULL: both
   * are coherent. Errors: BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* flush)(bp_device_t* device, const bp_map_t* what, bp_error_t* error);
  /* Copies between buffers of this device, between this device and the host, or from a peer's buffer
   * (bp_device_info_t.peers) to one of this device. [thread-safe] [blocks without a run]. Errors: BP_UNSUPPORTED,
   * BP_DEVICE_LOST, and those of `run`. */
  bp_status_t(BP_CALL* copy)(bp_device_t* device, const bp_copy_t* what, bp_error_t* error);
  /* Fills a buffer. [thread-safe] [blocks without a run]. NULL: the host fills memory of its own and copies that.
   * Errors: as for `copy`. */
  bp_status_t(BP_CALL* fill)(bp_device_t* device, const bp_fill_t* what, bp_error_t* error);
  /* Imports memory that another library or process owns. `release` ends the import, but does not free the memory.
   * [thread-safe] [blocks]. NULL slot: the device imports no memory. Errors: BP_UNSUPPORTED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* import)(bp_device_t* device, const bp_import_t* what, bp_buffer_t* out_buffer,
                               bp_error_t* error);
  /* Returns a handle for another library or process. The caller owns a descriptor, and closes it or passes it on. Other
   * handles are borrowed: they are valid while the buffer lives (retain a cl_mem to keep it). [thread-safe]. NULL:
   * none. Errors: BP_UNSUPPORTED. */
  bp_status_t(BP_CALL* export_)(bp_device_t* device, const bp_export_t* what, bp_external_t* out_external,
                                bp_error_t* error);
} bp_memory_api_t;

/* ---- sync -------------------------------------------------------------------------------------------------------- */

/* Parameters for creating a stream. */
typedef struct bp_stream_create_t {
  uint32_t size;
  int32_t priority;          /* BP_PRIORITY_LOW … BP_PRIORITY_HIGH */
  const bp_native_t* native; /* the framework's own stream, which must outlive this one; NULL: a new one */
  const bp_chain_t* chain;
} bp_stream_create_t;

/* Parameters for creating a semaphore. */
typedef struct bp_semaphore_create_t {
  uint32_t size;
  uint32_t flags;            /* none defined */
  uint64_t value;            /* the initial value of a new one */
  const bp_native_t* native; /* a semaphore of another device or framework to import; NULL: a new one */
  const bp_chain_t* chain;
} bp_semaphore_create_t;

/* A handle of a semaphore for another device, plugin or framework. */
typedef struct bp_semaphore_export_t {
  uint32_t size;
  uint32_t kind;  /* BP_NATIVE_* that the caller can import; 0: the plugin chooses one that carries every value */
  uint64_t value; /* for kinds of a single value: the value that the handle represents */
  const bp_chain_t* chain;
} bp_semaphore_export_t;

/* A plugin whose devices are all synchronous has no such table. The host then passes no points to `run`: it waits and
 * signals itself. */
typedef struct bp_sync_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Creates a stream, or wraps `how->native`. [thread-safe] [blocks]. Errors: BP_UNSUPPORTED, BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* stream_create)(bp_device_t* device, const bp_stream_create_t* how, bp_stream_t** out_stream,
                                      bp_error_t* error);
  /* Waits for all work in the stream. Failures that neither `done` nor `stream_wait` has reported are lost. A
   * framework's native stream is not destroyed. [one at a time] [blocks] */
  void(BP_CALL* stream_destroy)(bp_stream_t* stream);
  /* Waits until all work in the stream has ended. `deadline` is in ns on the monotonic clock; BP_FOREVER: none; 0:
   * return at once, with BP_TIMED_OUT unless it is known that all work has ended. After BP_TIMED_OUT, work may be left,
   * unless BP_ERROR_OF_RUN says that a run failed with that code. [thread-safe] [blocks]. Errors: BP_TIMED_OUT,
   * BP_DEVICE_LOST, and the failures of work without `done` (with BP_ERROR_OF_RUN). */
  bp_status_t(BP_CALL* stream_wait)(bp_stream_t* stream, uint64_t deadline, bp_error_t* error);
  /* Returns the stream's native handle, valid as long as the stream lives. [thread-safe]. NULL slot: streams have
   * no native handle. Errors: BP_UNSUPPORTED. */
  bp_status_t(BP_CALL* stream_export)(bp_stream_t* stream, bp_native_t* out_native, bp_error_t* error);
  /* Creates a timeline semaphore of the device, or imports `how->native`. [thread-safe] [blocks]. NULL: the device has
   * none; runs then wait for and signal host semaphores. Errors: BP_UNSUPPORTED, BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* semaphore_create)(bp_device_t* device, const bp_semaphore_create_t* how,
                                         bp_native_semaphore_t** out_semaphore, bp_error_t* error);
  /* Called only when nothing waits for the semaphore or signals it any more. [one at a time]. This slot and the next
   * three are NULL if `semaphore_create` is NULL. */
  void(BP_CALL* semaphore_destroy)(bp_native_semaphore_t* semaphore);
  /* Waits for the value, which carries no failure. `deadline`: as for `stream_wait`. [thread-safe] [blocks]. Errors:
   * BP_TIMED_OUT, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* semaphore_wait)(bp_native_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                                       bp_error_t* error);
  /* Signals from the host. [thread-safe]. Errors: BP_UNSUPPORTED (an imported semaphore of a single value). */
  bp_status_t(BP_CALL* semaphore_signal)(bp_native_semaphore_t* semaphore, uint64_t value, bp_error_t* error);
  /* Returns the current value. [thread-safe] */
  bp_status_t(BP_CALL* semaphore_query)(bp_native_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error);
  /* Returns a handle that another device of this backend or another plugin may import while the semaphore lives. The
   * caller closes a descriptor, unless an import took it. [thread-safe]. NULL slot: there are no exports.
   * Errors: BP_UNSUPPORTED (the kind). */
  bp_status_t(BP_CALL* semaphore_export)(bp_native_semaphore_t* semaphore, const bp_semaphore_export_t* what,
                                         bp_native_t* out_native, bp_error_t* error);
} bp_sync_api_t;

/* ---- cache ------------------------------------------------------------------------------------------------------- */

#define BP_CACHE_EXACT 0u     /* made for this device, driver and build */
#define BP_CACHE_USABLE 1u    /* works, but a new compilation might produce a faster program */
#define BP_CACHE_RECOMPILE 2u /* intact, but made for another device, driver or build */
#define BP_CACHE_UNUSABLE 3u  /* damaged, or not from this plugin */

/* If a plugin has no such table, its programs are not cached. */
typedef struct bp_cache_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Writes the program in pieces, which need not contain the weights, because `deserialize` receives the graph again.
   * [thread-safe] [blocks]. Errors: BP_UNSUPPORTED. (The host handles failures of its sink.) */
  bp_status_t(BP_CALL* serialize)(const bp_program_t* program, bp_text_sink_t sink, void* context, bp_error_t* error);
  /* Checks a blob without loading it. Sets `out_answer` to BP_CACHE_*; the reason goes to `error` with BP_OK.
   * [thread-safe] [blocks]. Errors: only the general ones. */
  bp_status_t(BP_CALL* validate)(bp_device_t* device, bp_bytes_t blob, uint32_t* out_answer, bp_error_t* error);
  /* Loads a program. `blob` is untrusted: damage results in BP_CORRUPT, never in a crash. It is borrowed as long as the
   * program lives. [thread-safe] [blocks]. Errors: BP_CORRUPT, BP_STALE, BP_RESOURCE_EXHAUSTED, BP_DEVICE_LOST. */
  bp_status_t(BP_CALL* deserialize)(bp_device_t* device, const bp_compile_t* what, bp_bytes_t blob,
                                    bp_program_t** out_program, bp_error_t* error);
} bp_cache_api_t;

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* A weight and its replacement. */
typedef struct bp_refit_weight_t {
  uint32_t weight; /* index into bp_graph_t.weights of the island's graph */
  uint32_t reserved;
  const bp_tensor_t* tensor; /* with the same type and extents, in host memory or a space of this device */
} bp_refit_weight_t;

typedef struct bp_refit_t {
  uint32_t size;
  uint32_t count;
  const bp_refit_weight_t* weights;
  uint32_t stride;
  uint32_t flags; /* none defined */
} bp_refit_t;

/* Replacing weights of a program. A refit changes only this program's weights, even where programs of a device share
 * weights with equal content (bp_graph_api_t.weight_hash). A plugin without this table has no refit. */
typedef struct bp_weights_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Replaces weights: all of them or, if the call fails, none. Waits for runs of this program that are in flight; later
   * runs use the new weights. [one at a time] [blocks]. Errors: BP_UNSUPPORTED, BP_TYPE_MISMATCH, BP_NOT_FOUND. */
  bp_status_t(BP_CALL* refit)(bp_program_t* program, const bp_refit_t* what, bp_error_t* error);
  /* Reads a weight, as a dense tensor, into the caller's memory: the caller fills in the whole of `out_tensor`, with
   * the weight's type and extents, and host memory. [thread-safe] [blocks]. Errors: as for `refit`, and
   * BP_BUFFER_TOO_SMALL. */
  bp_status_t(BP_CALL* read)(const bp_program_t* program, uint32_t weight, bp_tensor_t* out_tensor, bp_error_t* error);
} bp_weights_api_t;

/* ---- the plugin -------------------------------------------------------------------------------------------------- */

/* Parameters for creating a backend. */
typedef struct bp_backend_create_t {
  uint32_t size;
  uint32_t reserved;
  const bp_host_t* host; /* lives until `destroy` has returned */
  bp_text_t directory;   /* the folder of the plugin's file */
  const bp_chain_t* chain;
} bp_backend_create_t;

/* The descriptor that bp_plugin_query returns. It is static, and valid as long as the library is loaded. */
typedef struct bp_plugin_t {
  uint32_t size;
  uint32_t version;     /* the version that the plugin chose; 0 if it refuses */
  uint32_t version_min; /* oldest supported version */
  uint32_t version_max;
  uint32_t sanitizer;  /* BP_SANITIZER_* */
  bp_status_t refusal; /* BP_OK, or why the plugin refuses this host */
  bp_text_t refusal_text;
  bp_text_t id;   /* "cpu": lower case, digits, '_'; the same as in its manifest and its file name */
  bp_text_t name; /* for people */
  bp_text_t vendor;
  bp_text_t release; /* the plugin's own version; part of cache keys */
  bp_text_t build_id;

  /* Creates the backend. May be called again while other backends of this plugin exist, for another environment of the
   * process. [one at a time] [blocks]. Errors: BP_UNSUPPORTED (no driver), BP_INCOMPATIBLE,
   * BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* create)(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error);
  /* Destroys the backend. The host closes its devices first. [one at a time] [blocks] */
  void(BP_CALL* destroy)(bp_backend_t* backend);
  /* Returns an extension table by name and version, or NULL. The table lives until `destroy`. NULL slot: no
   * extensions. [thread-safe] */
  const void*(BP_CALL* get_extension)(bp_backend_t* backend, bp_text_t name, uint32_t version);

  const bp_device_api_t* device;     /* required */
  const bp_coverage_api_t* coverage; /* required */
  const bp_program_api_t* program;   /* required */
  const bp_instance_api_t* instance; /* required */
  const bp_memory_api_t* memory;
  const bp_sync_api_t* sync;
  const bp_cache_api_t* cache;
  const bp_weights_api_t* weights;
} bp_plugin_t;

/* The one symbol of a plugin. It is pure and fast: it starts no driver and no thread, and returns the same result each
 * time for the same offer. It never returns NULL: a refusal is a descriptor with a code and a text. [thread-safe] */
#define BP_PLUGIN_SYMBOL "bp_plugin_query"
typedef const bp_plugin_t*(BP_CALL* bp_plugin_query_t)(const bp_host_offer_t* offer);
BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer);

BP_EXTERN_C_END

#endif
