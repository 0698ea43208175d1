/* SPDX-License-Identifier: Apache-2.0
 *
 * The API for frameworks. Link libbackplane.so.1, or dlopen it and call bp_get_api for the same functions as one table.
 *
 *   environment  the backends that were found, and settings     bp_env_*
 *   model        an ONNX model or a graph built in memory       bp_model_*, bp_builder_*
 *   session      the model placed on devices and compiled       bp_session_*
 *   exec         bound memory and a run in flight               bp_exec_*
 *   stream       a device's queue of work, or the framework's   bp_stream_*
 *
 * Destroy handles in reverse order. However, a session keeps what it needs of its model and environment alive, and
 * streams and native semaphores keep their environment alive, so the order of these does not matter. Text in
 * out-structs lives as long as the handle that was queried.
 *
 * Buffers keep nothing alive: release them before the environment is destroyed. After a device was abandoned, memory
 * that it may still use is never released, so the `release` callbacks of that memory are not called.
 *
 * Calls, and runs that are not put into a stream, may use the memory that they are given from the beginning of the
 * call: other work that writes it must have ended, unless the run waits for a point that this work signals.
 */
#ifndef BACKPLANE_LOADER_H
#define BACKPLANE_LOADER_H

#include "backplane/host.h"
#include "backplane/plugin.h"

BP_EXTERN_C_BEGIN

typedef struct bp_env_t bp_env_t;
typedef struct bp_model_t bp_model_t;
typedef struct bp_builder_t bp_builder_t;
typedef struct bp_session_t bp_session_t;
typedef struct bp_exec_t bp_exec_t;

/* ---- environment ------------------------------------------------------------------------------------------------- */

/* Backends are searched for in these places, in this order; of backends with the same id, the first is used:
 *   0. `plugins`                          linked into the program
 *   1. `backend_files`                    libraries or manifests, given here
 *   2. BACKPLANE_BACKEND_FILES            colon-separated; if it is set, 4 to 7 are skipped
 *   3. BACKPLANE_ADD_BACKEND_FILES        colon-separated
 *   4. `backend_folders`                  folders of manifests, given here
 *   5. configuration: $XDG_CONFIG_HOME, $XDG_CONFIG_DIRS, the system's; each with /backplane/backends.d
 *   6. data: $XDG_DATA_HOME, $XDG_DATA_DIRS, the system's; each with /backplane/backends.d
 *   7. next to the loader: ../share/backplane/backends.d, then ../../share/backplane/backends.d
 * Within a folder, manifests are read by descending priority, then in byte order of their names. A manifest masks
 * manifests with the same id in later folders; an empty manifest masks manifests with the same file name there. In a
 * process with elevated privileges, no environment variable is read. docs/reference/manifest.md has the details. */
typedef struct bp_env_desc_t {
  uint32_t size;
  uint32_t flags; /* BP_ENV_* */
  const bp_text_t* backend_files;
  const bp_text_t* backend_folders;
  uint32_t backend_file_count;
  uint32_t backend_folder_count;
  const bp_option_t* options; /* "cpu.threads" is passed to backend cpu as "threads"; "loader.*" are the loader's own */
  uint32_t option_count;
  uint32_t option_stride;
  uint32_t log_level; /* BP_LOG_*; 0: the level in BACKPLANE_LOG, or BP_LOG_WARNING where it sets none */
  uint32_t threads; /* number of threads that the backends share; 0: one for each core that the process may use, within
                       the processor limit of its control group. Must be set with `parallel_for`: every `worker` that
                       the framework's pool passes is below this number */
  void* self;
  /* The callbacks below are used until the environment and every session, exec, stream and native semaphore made from
   * it are destroyed; after a device was abandoned, until the process ends. `log` receives log lines. NULL: they go to
   * the file named by BACKPLANE_LOG_FILE, or to standard error. [thread-safe] */
  void(BP_CALL* log)(void* self, uint32_t level, bp_text_t text);
  /* The framework's own thread pool and allocator, as in host.h. NULL: the loader's, which also serves if only one of
   * `allocate` and `release` is set. [thread-safe] */
  void(BP_CALL* parallel_for)(void* self, const bp_loop_t* loop);
  bp_status_t(BP_CALL* submit)(void* self, const bp_task_t* task);
  void*(BP_CALL* allocate)(void* self, uint64_t bytes, uint64_t alignment);
  void(BP_CALL* release)(void* self, void* memory, uint64_t bytes, uint64_t alignment);
  /* Query functions of plugins that are linked into the program, for programs that cannot or do not want to load
   * libraries. Each is called like a library's bp_plugin_query. */
  const bp_plugin_query_t* plugins;
  uint32_t plugin_count;
  uint32_t reserved;
  const bp_chain_t* chain;
} bp_env_desc_t;

#define BP_ENV_ONLY_GIVEN 0x10000u /* places 2, 3 and 5 to 7 of the list above are not searched */

/* Why a candidate was refused. The codes are stable: tools and tests compare them. */
#define BP_REFUSED_NONE 0u          /* it was not refused */
#define BP_REFUSED_MISSING 1u       /* the file or folder does not exist or cannot be read */
#define BP_REFUSED_MANIFEST 2u      /* the manifest violates its format */
#define BP_REFUSED_NOT_A_LIBRARY 3u /* the file is not a shared library */
#define BP_REFUSED_ARCHITECTURE 4u  /* a library for another processor or word size */
#define BP_REFUSED_LINK 5u          /* the system's loader refused it: a missing dependency, an undefined symbol */
#define BP_REFUSED_SYMBOL 6u        /* bp_plugin_query is missing */
#define BP_REFUSED_DESCRIPTOR 7u    /* the descriptor is NULL or too small, or lacks a required table or slot */
#define BP_REFUSED_VERSION 8u       /* no common ABI version */
#define BP_REFUSED_SANITIZER 9u     /* built with a different sanitizer */
#define BP_REFUSED_BY_PLUGIN 10u    /* the plugin refused this host */
#define BP_REFUSED_ID 11u           /* the id is not valid, or differs from the manifest's */
#define BP_REFUSED_DUPLICATE 12u    /* an earlier backend or manifest has that id */
#define BP_REFUSED_DISABLED 13u     /* disabled or not selected (environment or options), or an empty manifest */
#define BP_REFUSED_CRASHED 14u      /* a child process that probed or isolated it crashed, exited or hung */
#define BP_REFUSED_CREATE 15u       /* `create` failed */
#define BP_REFUSED_DEVICES 16u      /* it has no device on this machine, or reports its devices wrongly */
#define BP_REFUSED_UNTRUSTED 17u    /* bad owner, permissions, hash or signature; executable stack; or it changed */
#define BP_REFUSED_UNTRIED 18u      /* no child process could be started to probe or isolate it */

/* A file that discovery considered, or a plugin that is linked into the program. */
typedef struct bp_candidate_t {
  uint32_t size;
  uint32_t refusal;   /* BP_REFUSED_* */
  bp_text_t text;     /* the whole explanation in one line, for people */
  bp_text_t id;       /* empty if unknown */
  bp_text_t manifest; /* path, or empty */
  bp_text_t library;  /* path, or empty */
  bp_text_t found_by; /* which of the places above: "plugins", "backend_files", "BACKPLANE_BACKEND_FILES", … */
  uint32_t version;   /* chosen ABI version, 0 if refused */
  uint32_t device_count;
} bp_candidate_t;

/* Searches for backends and negotiates with each. This call does not fail if a backend fails: see bp_env_candidate.
 * `desc` may be NULL. [thread-safe] [blocks]. Errors: BP_RESOURCE_EXHAUSTED, BP_NOT_FOUND (an unknown loader.*
 * option), BP_INVALID_ARGUMENT (an invalid value of one), BP_UNSUPPORTED (a required struct of the chain). */
BP_EXPORT bp_status_t BP_CALL bp_env_create(const bp_env_desc_t* desc, bp_env_t** out_env, bp_error_t* error);
/* Releases the caller's reference; sessions and streams may still use the environment. [one at a time] [blocks] */
BP_EXPORT void BP_CALL bp_env_destroy(bp_env_t* env);
/* The number of candidates. [thread-safe] */
BP_EXPORT uint32_t BP_CALL bp_env_candidate_count(const bp_env_t* env);
/* Describes candidate `i`, counted from 0 in the order in which they were considered. [thread-safe]. Errors:
 * BP_NOT_FOUND. */
BP_EXPORT bp_status_t BP_CALL bp_env_candidate(const bp_env_t* env, uint32_t i, bp_candidate_t* out_candidate,
                                               bp_error_t* error);
/* The number of devices of all backends. Devices are numbered from 1, in the order of the candidates and of each
 * backend's own devices; 0 is "host memory that belongs to no device". [thread-safe] */
BP_EXPORT uint32_t BP_CALL bp_env_device_count(const bp_env_t* env);
/* Describes device `index`, counted from 1. `out_name` (may be NULL) receives the name that options use: "cpu",
 * "opencl:1". The `peers` in `out_info` are counted in the same way. Other functions take a device by its id,
 * `out_info->id`. [thread-safe]. Errors: BP_NOT_FOUND. */
BP_EXPORT bp_status_t BP_CALL bp_env_device(const bp_env_t* env, uint32_t index, bp_device_info_t* out_info,
                                            bp_text_t* out_name, bp_error_t* error);
/* Opens a device before anything else does, in the framework's own context (`how->native`) or with options for this
 * device (`how->options`). `how->id` is ignored. Other devices are opened when they are needed. [thread-safe] [blocks].
 * Errors: BP_NOT_FOUND, BP_BAD_STATE (it is open), those of `open` in plugin.h and, with the environment's option
 * loader.load=when_used, BP_INCOMPATIBLE and BP_STALE as for bp_session_create. Except for BP_BAD_STATE, every call
 * that opens a device may return these errors too. */
BP_EXPORT bp_status_t BP_CALL bp_env_open_device(bp_env_t* env, uint64_t device, const bp_device_open_t* how,
                                                 bp_error_t* error);
/* Abandons a device that hangs. Nothing more is started on it. Runs in flight on it end with BP_DEVICE_LOST and
 * BP_ERROR_ABANDONED (see bp_exec_run). Waits for its streams and semaphores return BP_DEVICE_LOST, and so do copies
 * and fills if the device has streams; BP_ERROR_ABANDONED says that a copy or fill, or work in the stream that is
 * waited for, had not ended. Any other call that is inside a function of the plugin (opening, compiling, mapping,
 * allocating) returns only when that function does. Destroying its streams, execs and memory does not wait, and memory
 * that the device may still access is kept until the process ends. [thread-safe]. Errors: BP_NOT_FOUND. */
BP_EXPORT bp_status_t BP_CALL bp_env_abandon_device(bp_env_t* env, uint64_t device, bp_error_t* error);
/* Writes the whole environment as one JSON object, like `backplane list --json`. [thread-safe] [blocks] */
BP_EXPORT bp_status_t BP_CALL bp_env_report(const bp_env_t* env, bp_text_sink_t sink, void* context, bp_error_t* error);
/* Returns an extension table by name and version: the loader's own or, with the name "<backend id>/<name>", that of a
 * backend, which is loaded if necessary. NULL if there is none. The table lives until the environment is destroyed.
 * [thread-safe] [blocks for a backend's table] */
BP_EXPORT const void* BP_CALL bp_env_get_extension(const bp_env_t* env, bp_text_t name, uint32_t version);
/* Returns the plugin's own handle of a device, for the functions of the plugin's extension tables only. Opens the
 * device if necessary. The handle lives until the environment and every session, exec, stream and native semaphore made
 * from it are destroyed. See also bp_stream_plugin_stream, bp_native_semaphore_plugin_semaphore and
 * bp_session_plugin_program. [thread-safe] [blocks]. Errors: BP_NOT_FOUND, BP_UNSUPPORTED (the backend runs in a
 * separate process, whose handles are not valid in this process), BP_DEVICE_LOST, and those of `open` in plugin.h. */
BP_EXPORT bp_status_t BP_CALL bp_env_plugin_device(bp_env_t* env, uint64_t device, bp_device_t** out_device,
                                                   bp_error_t* error);

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* A tensor and its name. */
typedef struct bp_named_tensor_t {
  bp_text_t name;
  const bp_tensor_t* tensor;
} bp_named_tensor_t;

/* The source of a model: exactly one of path, bytes and descriptor. */
typedef struct bp_model_source_t {
  uint32_t size;
  int32_t descriptor;  /* an open file, which is not closed, or -1. Set it to -1 if unused: 0 is a valid descriptor */
  bp_text_t path;      /* a file */
  bp_bytes_t bytes;    /* borrowed until the model and all its sessions are destroyed */
  bp_text_t directory; /* the folder of external data, for bytes and descriptors; a path has its own folder */
  /* Weights that are passed separately: each becomes the initializer of that name, in place of the model's initializer
   * or graph input. Dense, in host memory, borrowed like `bytes`. */
  const bp_named_tensor_t* weights;
  uint32_t weight_count;
  uint32_t weight_stride;
  void* self;
  /* Called once, from any thread, when `bytes` and the memory of `weights` are no longer used; not called if the call
   * fails. May be NULL. */
  void(BP_CALL* release)(void* self);
  const bp_chain_t* chain;
} bp_model_source_t;

/* Reads, checks and canonicalizes a model. `env` may be NULL. [thread-safe] [blocks]. Errors: BP_NOT_FOUND,
 * BP_PERMISSION_DENIED, BP_IO_ERROR, BP_INVALID_MODEL (with the node), BP_UNSUPPORTED (newer than this loader),
 * BP_RESOURCE_EXHAUSTED, BP_TIMED_OUT (option loader.import_seconds), BP_TYPE_MISMATCH (a weight does not fit). */
BP_EXPORT bp_status_t BP_CALL bp_model_open(bp_env_t* env, const bp_model_source_t* source, bp_model_t** out_model,
                                            bp_error_t* error);
/* Sessions made from the model stay valid. [one at a time] */
BP_EXPORT void BP_CALL bp_model_destroy(bp_model_t* model);
/* Returns the canonical graph: inputs, outputs, nodes, weights. The first call creates it; it lives as long as the
 * model, and so do the bytes that its `weight_map` returns. NULL if `model` is NULL or if there is no memory for the
 * graph. [thread-safe] [blocks the first time] */
BP_EXPORT const bp_graph_t* BP_CALL bp_model_graph(const bp_model_t* model);
/* Writes operator sets, inputs, outputs, operators, size, metadata and problems as one JSON object, like `backplane
 * info --json` but without `uncovered`. [thread-safe] [blocks] */
BP_EXPORT bp_status_t BP_CALL bp_model_report(const bp_model_t* model, bp_text_sink_t sink, void* context,
                                              bp_error_t* error);

/* A node of a graph that the framework builds with the bp_builder_* functions. Values are numbered from 0 in order of
 * creation. Names must be unique; a value without a name gets one. All builder calls: [one at a time], where a builder
 * and the bodies made from it are one object. Errors: BP_INVALID_MODEL, BP_UNSUPPORTED, BP_BAD_STATE (finished). */
typedef struct bp_node_desc_t {
  uint32_t size;
  uint32_t reserved;
  bp_text_t op_type;
  bp_text_t domain;
  bp_text_t overload;
  bp_text_t name;
  const uint32_t* inputs; /* `input_count` values; BP_NONE for omitted ones */
  uint32_t input_count;
  uint32_t output_count;         /* at most 1000000 */
  const bp_text_t* output_names; /* `output_count` names, or NULL; an output that nothing reads still gets a value */
  /* As in graph.h, except for: TENSOR(S), where `data` is an array of const bp_tensor_t* (host memory, borrowed like
   * weights); GRAPH(S), where it is an array of bp_builder_t* from bp_builder_create_body: the call empties these
   * builders, perhaps even if it fails; and TYPE(S) and SPARSE_TENSOR(S), which are not supported. */
  const bp_attribute_t* attributes;
  uint32_t attribute_count;
  uint32_t attribute_stride;
  const bp_chain_t* chain;
} bp_node_desc_t;

typedef struct bp_builder_desc_t {
  uint32_t size;
  uint32_t opset_count;
  const bp_opset_t* opsets; /* at least the opset of domain "" (ai.onnx) */
  uint32_t opset_stride;
  uint32_t flags; /* none defined */
  void* self;
  /* Called once, from any thread, when the memory of the weights and of the attributes' tensors is no longer used:
   * after the model and its sessions are destroyed or, if no model was finished, when the builder is destroyed. Not
   * called if bp_builder_create fails. May be NULL. */
  void(BP_CALL* release)(void* self);
  const bp_chain_t* chain;
} bp_builder_desc_t;

/* Creates a builder for a model's outermost graph. `env` may be NULL. */
BP_EXPORT bp_status_t BP_CALL bp_builder_create(bp_env_t* env, const bp_builder_desc_t* desc,
                                                bp_builder_t** out_builder, bp_error_t* error);
/* Creates a builder for the body of a control-flow node. To read a value of an enclosing graph, call bp_builder_input
 * with its name (type and extents are then those of that value). `outer` must outlive it. */
BP_EXPORT bp_status_t BP_CALL bp_builder_create_body(bp_builder_t* outer, bp_builder_t** out_builder,
                                                     bp_error_t* error);
BP_EXPORT void BP_CALL bp_builder_destroy(bp_builder_t* builder);
typedef struct bp_input_desc_t {
  uint32_t size;
  bp_dtype_t dtype;
  bp_text_t name;
  const int64_t* extents;   /* `rank` numbers; -1: any extent */
  const bp_text_t* symbols; /* `rank` names, for the dimensions that are -1; empty: unrelated. May be NULL */
  uint32_t rank;
  uint32_t flags; /* none defined */
  const bp_chain_t* chain;
} bp_input_desc_t;

/* Adds a graph input, which is a tensor. */
BP_EXPORT bp_status_t BP_CALL bp_builder_input(bp_builder_t* builder, const bp_input_desc_t* input, uint32_t* out_value,
                                               bp_error_t* error);
/* Adds a dense constant in host memory. It is borrowed until the model and all its sessions are destroyed. */
BP_EXPORT bp_status_t BP_CALL bp_builder_weight(bp_builder_t* builder, bp_text_t name, const bp_tensor_t* tensor,
                                                uint32_t* out_value, bp_error_t* error);
/* Adds a node. `out_first_value` receives its first output; the other outputs have the next numbers. */
BP_EXPORT bp_status_t BP_CALL bp_builder_node(bp_builder_t* builder, const bp_node_desc_t* node,
                                              uint32_t* out_first_value, bp_error_t* error);
/* Adds a graph output. */
BP_EXPORT bp_status_t BP_CALL bp_builder_output(bp_builder_t* builder, uint32_t value, bp_error_t* error);
/* Checks and canonicalizes the graph, and returns it as a model. The builder is empty afterwards and must still be
 * destroyed. [blocks] */
BP_EXPORT bp_status_t BP_CALL bp_builder_finish(bp_builder_t* builder, bp_model_t** out_model, bp_error_t* error);

/* ---- sessions ---------------------------------------------------------------------------------------------------- */

/* How strongly the listed devices are preferred. */
#define BP_FALLBACK_ALLOW 0u  /* the cheapest placement on the listed devices */
#define BP_FALLBACK_PREFER 1u /* each node runs on the first listed device that supports it */
/* the first listed device runs every node; otherwise creating the session fails, and the error names the first node
 * that the device does not support */
#define BP_FALLBACK_FORBID 2u

/* Requires that certain nodes run on a certain one of the session's devices, whatever `fallback` says. The first pin
 * that matches a node counts; one that places no node is logged as a warning. */
typedef struct bp_pin_t {
  bp_text_t pattern; /* "name=GLOB" or "op=GLOB", for names or operators of nodes; "GLOB" alone means "name=GLOB" */
  bp_text_t device;  /* the device's name, see bp_env_device */
} bp_pin_t;

typedef struct bp_session_desc_t {
  uint32_t size;
  uint32_t compute_types; /* BP_COMPUTE_* that are allowed in addition to each node's own type; 0: none */
  uint32_t fallback;      /* BP_FALLBACK_* */
  uint32_t device_count;
  /* names as in bp_env_device, preferred first; if empty, all devices: accelerators, then CPUs, then others */
  const bp_text_t* devices;
  const bp_pin_t* pins;
  uint32_t pin_count;
  uint32_t pin_stride;
  const bp_option_t* options; /* "<backend>.<name>" for compiling, and "loader.*" */
  uint32_t option_count;
  uint32_t option_stride;
  uint32_t max_islands; /* 0: no limit */
  uint32_t flags;       /* BP_SESSION_* */
  /* The extents that dimensions of the model will have, by name; other dimensions may have any extent. A run with an
   * extent outside these is refused. */
  const bp_symbol_t* symbols;
  uint32_t symbol_count;
  uint32_t symbol_stride;
  const bp_cancel_t* cancel;
  void* self;
  /* Reports that `done` of `total` islands have been compiled. It may call bp_cancel_set. May be NULL. [thread-safe] */
  void(BP_CALL* progress)(void* self, uint32_t done, uint32_t total);
  const bp_chain_t* chain;
} bp_session_desc_t;

#define BP_SESSION_REFIT 0x10000u /* weights can be replaced later */
/* Place and report, but do not compile: no exec can be created. Nodes that no device supports are not an error. */
#define BP_SESSION_PLACE_ONLY 0x20000u

/* The placement of a node. */
typedef struct bp_placed_node_t {
  uint32_t size;
  uint32_t island;  /* numbered from 0 in the order in which islands run; BP_NONE if no device supports the node */
  uint64_t device;  /* the device's id; 0 if no device supports the node (BP_SESSION_PLACE_ONLY) */
  double seconds;   /* expected time of the node; 0 if unknown */
  bp_text_t reason; /* why the node is on this device and not on one listed before it; empty on the first listed
                       device, unless a pin chose it */
} bp_placed_node_t;

/* A device's verdict on a node. */
typedef struct bp_node_verdict_t {
  uint32_t size;
  uint32_t answer;        /* BP_ANSWER_* */
  uint32_t reason;        /* BP_REASON_*, with BP_ANSWER_NO */
  uint32_t compute_types; /* BP_COMPUTE_* in which the device computes the node; 0: the node's own type */
  bp_text_t detail;       /* for people: the value found and what is supported; with BP_ANSWER_NO never empty */
  double seconds;         /* expected time of the node; 0 if unknown */
  uint64_t bytes;         /* device memory, without inputs and outputs; 0 if unknown */
  float confidence;       /* how far to trust `seconds`: from 0 (a guess) to 1 (measured on this machine) */
  uint32_t reserved;
} bp_node_verdict_t;

/* Queries all devices, places the model and compiles it. `desc` may be NULL. [thread-safe] [blocks]. Errors:
 * BP_UNSUPPORTED (no device supports a node; the detail names node, operator and each device's reason), BP_NOT_FOUND
 * (a device, an option, a dimension), BP_CANCELLED, BP_TIMED_OUT (option loader.import_seconds), BP_DEVICE_LOST,
 * BP_RESOURCE_EXHAUSTED, BP_INVALID_MODEL (inputs or attributes of a node are impossible, as found with the output
 * types that a backend reports for operators of domains that the loader does not know), and those of `open` and
 * `compile` in plugin.h. With the environment's option loader.load=when_used, the call may load a backend, and may fail
 * with BP_INCOMPATIBLE (the plugin is refused) or BP_STALE (the backend no longer has as many devices as the
 * environment lists). */
BP_EXPORT bp_status_t BP_CALL bp_session_create(bp_env_t* env, bp_model_t* model, const bp_session_desc_t* desc,
                                                bp_session_t** out_session, bp_error_t* error);
/* Destroy the session's execs first. [one at a time] [blocks] */
BP_EXPORT void BP_CALL bp_session_destroy(bp_session_t* session);
/* The placement of node `i` of bp_model_graph. [thread-safe]. Errors: BP_NOT_FOUND. */
BP_EXPORT bp_status_t BP_CALL bp_session_node(const bp_session_t* session, uint32_t i, bp_placed_node_t* out_node,
                                              bp_error_t* error);
/* The verdict of one of the session's devices (by id) on node `i`. To get verdicts without compiling, use
 * BP_SESSION_PLACE_ONLY. [thread-safe]. Errors: BP_NOT_FOUND (no such node, or the session does not use the device). */
BP_EXPORT bp_status_t BP_CALL bp_session_verdict(const bp_session_t* session, uint32_t i, uint64_t device,
                                                 bp_node_verdict_t* out_verdict, bp_error_t* error);
/* The model's canonical graph with the session's inputs and outputs. Like bp_model_graph, but lives as long as the
 * session. [thread-safe] [blocks the first time] */
BP_EXPORT const bp_graph_t* BP_CALL bp_session_graph(const bp_session_t* session);
/* Writes islands, reasons, costs and copies as one JSON object, like `backplane explain --json`. [thread-safe]
 * [blocks] */
BP_EXPORT bp_status_t BP_CALL bp_session_report(const bp_session_t* session, bp_text_sink_t sink, void* context,
                                                bp_error_t* error);
/* Weights and their replacements. */
typedef struct bp_session_refit_t {
  uint32_t size;
  uint32_t count;
  const bp_named_tensor_t* weights; /* dense, in host memory or a device's; borrowed for the call */
  uint32_t stride;
  uint32_t flags; /* none defined */
  const bp_chain_t* chain;
} bp_session_refit_t;
/* Replaces weights by name: all of them or, if the call fails, none. (If a device fails while it restores the old
 * weights, the error says so: destroy the session.) The session must have been created with BP_SESSION_REFIT. A weight
 * from whose elements bp_model_open or bp_builder_finish computed shapes or constants of the graph (the shape of a
 * Reshape, the small w of Neg(w)) accepts no other elements: BP_UNSUPPORTED, and the detail names it. A run in flight
 * continues: islands that have begun end with the old weights; those that have not may begin with either. Later runs
 * use the new weights. [one at a time] [blocks]. Errors: BP_NOT_FOUND (the weight, or the device whose memory holds the
 * tensor), BP_INVALID_ARGUMENT (a weight twice), BP_TYPE_MISMATCH, BP_BUFFER_TOO_SMALL, BP_BAD_STATE (the session was
 * created without BP_SESSION_REFIT or with BP_SESSION_PLACE_ONLY), BP_UNSUPPORTED (also: the device cannot copy the
 * tensor, or supports a node only in an older form, which cannot express the new weights), BP_BUSY (the session
 * switched to other devices during the call: call again), those of bp_session_create, and those of `refit` and `copy`
 * in plugin.h. */
BP_EXPORT bp_status_t BP_CALL bp_session_refit(bp_session_t* session, const bp_session_refit_t* what,
                                               bp_error_t* error);
/* Reads a weight by name, as a dense tensor, into the caller's memory: the caller fills in the whole of `tensor`, with
 * the weight's type and extents, and host memory. [thread-safe] [blocks]. Errors: as for bp_session_refit. */
BP_EXPORT bp_status_t BP_CALL bp_session_read_weight(const bp_session_t* session, bp_text_t weight, bp_tensor_t* tensor,
                                                     bp_error_t* error);
/* The plugin's own program of an island (bp_placed_node_t.island), for the functions of an extension table. It lives
 * until the session is destroyed, even if the session switches to other devices. [thread-safe]. Errors: BP_NOT_FOUND,
 * BP_BAD_STATE (BP_SESSION_PLACE_ONLY), BP_UNSUPPORTED (as for bp_env_plugin_device), BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_session_plugin_program(const bp_session_t* session, uint32_t island,
                                                        const bp_program_t** out_program, bp_error_t* error);

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Parameters for creating an exec. */
typedef struct bp_exec_desc_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  const bp_chain_t* chain;
} bp_exec_desc_t;

/* Creates a session's state for one run at a time. Many threads can run one session, each with its own exec. `desc`
 * may be NULL. [thread-safe] [blocks]. Errors: BP_BAD_STATE (a BP_SESSION_PLACE_ONLY session), BP_RESOURCE_EXHAUSTED,
 * BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_exec_create(bp_session_t* session, const bp_exec_desc_t* desc, bp_exec_t** out_exec,
                                             bp_error_t* error);
/* Waits for a run in flight. [one at a time] [blocks] */
BP_EXPORT void BP_CALL bp_exec_destroy(bp_exec_t* exec);
/* Binds dense memory to input `slot`, or to output `slot - BP_SLOT_OUTPUT`. The caller owns the memory, which is used
 * until the slot is bound again or unbound. The loader allocates outputs that are not bound.
 *
 * One buffer may be bound to an input and to an output if the device updates it in place (bp_program_info_t.inplace),
 * for example a cache, which a run that fails may have changed; with BP_DONATE_MUST it has to be bound to both. No
 * other island may read the input after the output was written. Otherwise memory of an output must not overlap that of
 * an input or of another output. A run returns BP_UNSUPPORTED, with the names, if an input and an
 * output violate these rules. It does not check whether two outputs overlap.
 *
 * [one at a time] [blocks while a stream has a run of the exec]. Errors: BP_NOT_FOUND (the slot, or the buffer's device
 * or space), BP_INVALID_ARGUMENT (also: `memory` is NULL in a space that is not host memory), BP_TYPE_MISMATCH (also:
 * the slot is a container), BP_BUFFER_TOO_SMALL, BP_UNSUPPORTED (the layout, or memory of a device that cannot copy
 * it), BP_BUSY (a run is in flight), BP_DEVICE_LOST, and those of `open` in plugin.h. */
BP_EXPORT bp_status_t BP_CALL bp_exec_bind(bp_exec_t* exec, uint32_t slot, const bp_tensor_t* tensor,
                                           bp_error_t* error);
/* Binds a sequence, optional or map to a slot, as bp_exec_bind does with memory. The caller owns the container, which
 * is used until the slot is bound again or unbound. The container of an input may be bound to an output only if the
 * output is a copy of an input: otherwise a run returns BP_UNSUPPORTED with the names. [one at a time] [blocks like
 * bp_exec_bind]. Errors: BP_NOT_FOUND, BP_TYPE_MISMATCH (the slot is a tensor), BP_BUSY, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_exec_bind_container(bp_exec_t* exec, uint32_t slot, bp_container_t* container,
                                                     bp_error_t* error);
/* Removes a slot's binding, after which the loader no longer uses the memory. The loader then allocates an output
 * itself. [one at a time] [blocks like bp_exec_bind]. Errors: BP_NOT_FOUND, BP_BUSY, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_exec_unbind(bp_exec_t* exec, uint32_t slot, bp_error_t* error);
/* Sets new extents of bound inputs and outputs, within their capacity (buffer.bytes): of all or, if the call fails, of
 * none. For an output, a run uses only the capacity; bp_exec_output returns the extents. [one at a time] [blocks like
 * bp_exec_bind]. Errors: as for bp_exec_bind, and BP_BAD_STATE. */
BP_EXPORT bp_status_t BP_CALL bp_exec_extents(bp_exec_t* exec, const bp_slot_extents_t* slots, uint32_t count,
                                              uint32_t stride, bp_error_t* error);
/* Sets the extent of a named dimension (its index in bp_graph_t.symbols) in every bound input that has it. Otherwise
 * like bp_exec_extents. */
BP_EXPORT bp_status_t BP_CALL bp_exec_symbol(bp_exec_t* exec, uint32_t symbol, int64_t extent, bp_error_t* error);
/* A named dimension and its extent. */
typedef struct bp_symbol_extent_t {
  uint32_t symbol; /* index in bp_graph_t.symbols; each at most once in a call */
  uint32_t reserved;
  int64_t extent;
} bp_symbol_extent_t;
/* Like bp_exec_symbol, but sets several dimensions at once: only the extents that result from all of them must fit the
 * capacities, not those after each single change. */
BP_EXPORT bp_status_t BP_CALL bp_exec_symbols(bp_exec_t* exec, const bp_symbol_extent_t* symbols, uint32_t count,
                                              uint32_t stride, bp_error_t* error);
/* Runs and returns when the run has ended. `run` may be NULL; its `output` must be NULL. Without `stream`, the native
 * points of the run may be of any device of the environment: the loader waits for them and signals them from the host,
 * so they carry only order, and no failure. If the call does not return BP_OK, it has neither advanced the signals nor
 * called `done`: the caller does both. After BP_OK both have been done, `done` first.
 *
 * With `stream` (of bp_stream_create), the call puts the run into the stream and returns. It does not wait for the
 * points that the run waits for, for earlier work in the stream, or for the run (for the exceptions, see below).
 * Results are valid in the order of the stream; `done` (may be NULL) and signals come as for `run` in plugin.h, and may
 * come on another thread before the call returns. All of the session's work must fit into that stream: islands of its
 * device, and their copies. If other work is needed, the run is refused (BP_UNSUPPORTED; the detail names the work)
 * before anything is put into the stream. So is a run with native points of another device (BP_INVALID_ARGUMENT):
 * import the semaphore on the stream's device. The first run, a run after a bind, an unbind, new extents or a run that
 * was not in this stream, and a run whose plan depends on the bytes of an input may wait for the points and the earlier
 * work, but not for the run itself. If a plugin returns BP_BUSY (bp_run_t), each run waits for the run before it.
 * bp_exec_bind, bp_exec_unbind and bp_exec_extents wait for the stream.
 *
 * [one at a time] [blocks]. Errors: BP_BAD_STATE (an input is not bound; the error names it), BP_TYPE_MISMATCH
 * (extents), BP_BUFFER_TOO_SMALL (an output), BP_UNSUPPORTED (memory or a container that an input and an output share,
 * see bp_exec_bind; memory that starts where a device cannot use it, see bp_space_t.alignment; an imported semaphore of
 * a single value among the signals; native points of a device that does not let the host wait for them or signal
 * them), BP_BUSY, BP_CANCELLED, BP_TIMED_OUT, BP_DEPENDENCY_FAILED, BP_DEVICE_LOST, BP_RESOURCE_EXHAUSTED, and those of
 * `create`, `bind`, `run`, `copy` and `output_extents` in plugin.h. An asynchronous device that has not ended a run 100
 * ms after its deadline is abandoned: BP_TIMED_OUT with BP_ERROR_ABANDONED. The environment's option
 * loader.abandon_after sets another number of ms. (A run that was accepted into a stream does not cause that.) A run
 * without a deadline ends with BP_DEVICE_LOST and BP_ERROR_ABANDONED if the device is abandoned for another reason. The
 * exec is then lost (BP_DEVICE_LOST), and other execs continue without the device. Memory bound to the lost exec, or to
 * other execs that used the device, must stay allocated. */
BP_EXPORT bp_status_t BP_CALL bp_exec_run(bp_exec_t* exec, const bp_run_t* run, bp_error_t* error);
/* Like bp_exec_run without `stream`, but returns at once. The run needs `done` or a host point among its signals.
 * BP_OK means that the run was accepted: `done`, and then the signals, report its end and its failure, on another
 * thread and perhaps before the call returns. `run` and its arrays are copied; its cancel token and semaphores must
 * live until the signals have advanced. The exec is free for the next run before the signals advance. `done` must not
 * call the exec, which is still busy, nor destroy it or its session. [one at a time]. Errors: BP_INVALID_ARGUMENT,
 * BP_BUSY, BP_RESOURCE_EXHAUSTED, BP_UNSUPPORTED and BP_DEVICE_LOST (a native point among the signals). */
BP_EXPORT bp_status_t BP_CALL bp_exec_submit(bp_exec_t* exec, const bp_run_t* run, bp_error_t* error);
/* Returns output `output` (counted from 0) of the last run: extents and memory, valid until the next run, bind or
 * unbind. The memory is the host's unless other memory is bound. After a run in a stream, its content is valid in that
 * stream's order. [one at a time]. Errors: BP_BAD_STATE, BP_NOT_FOUND, BP_TYPE_MISMATCH (a container), BP_BUSY,
 * BP_DEVICE_LOST.
 */
BP_EXPORT bp_status_t BP_CALL bp_exec_output(bp_exec_t* exec, uint32_t output, bp_tensor_t* out_tensor,
                                             bp_error_t* error);
/* Returns an output that is a sequence, optional or map, valid as for bp_exec_output. The loader owns the container.
 * [one at a time]. Errors: BP_BAD_STATE, BP_NOT_FOUND, BP_TYPE_MISMATCH (a tensor), BP_BUSY, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_exec_output_container(bp_exec_t* exec, uint32_t output, bp_container_t** out_container,
                                                       bp_error_t* error);

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* Creates a stream of a device, or wraps the framework's own. Opens the device if necessary. The stream keeps the
 * environment alive. [thread-safe] [blocks]. Errors: BP_NOT_FOUND, BP_UNSUPPORTED (the device has no streams, or does
 * not accept this native stream), BP_DEVICE_LOST, BP_RESOURCE_EXHAUSTED. */
BP_EXPORT bp_status_t BP_CALL bp_stream_create(bp_env_t* env, uint64_t device, const bp_stream_create_t* how,
                                               bp_stream_t** out_stream, bp_error_t* error);
/* Waits for all work in the stream. Failures that have not been reported are lost: call bp_stream_wait first to get
 * them. A framework's native stream is not destroyed. [one at a time] [blocks] */
BP_EXPORT void BP_CALL bp_stream_destroy(bp_stream_t* stream);
/* Waits until all work in the stream has ended, and reports failures of runs without `done`. `deadline` is in ns on
 * the monotonic clock; BP_FOREVER: none; 0: return at once, with BP_TIMED_OUT unless it is known that all work has
 * ended. After BP_TIMED_OUT, work may be left, unless BP_ERROR_OF_RUN says that a run failed with that code.
 * [thread-safe] [blocks]. Errors: BP_TIMED_OUT, BP_DEVICE_LOST, those of the runs (with BP_ERROR_OF_RUN). */
BP_EXPORT bp_status_t BP_CALL bp_stream_wait(bp_stream_t* stream, uint64_t deadline, bp_error_t* error);
/* The stream's native handle, valid as long as the stream lives. [thread-safe]. Errors: BP_UNSUPPORTED,
 * BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_stream_export(bp_stream_t* stream, bp_native_t* out_native, bp_error_t* error);
/* The plugin's own handle of the stream, for the functions of an extension table; it lives as long as the stream.
 * [thread-safe]. Errors: BP_UNSUPPORTED (as for bp_env_plugin_device), BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_stream_plugin_stream(bp_stream_t* stream, bp_stream_t** out_stream, bp_error_t* error);

/* Creates or imports a semaphore of a device, for native points. [thread-safe] [blocks]. Errors: as for
 * bp_stream_create. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_create(bp_env_t* env, uint64_t device,
                                                         const bp_semaphore_create_t* how,
                                                         bp_native_semaphore_t** out_semaphore, bp_error_t* error);
/* Call it only when nothing waits for the semaphore or signals it any more. [one at a time] */
BP_EXPORT void BP_CALL bp_native_semaphore_destroy(bp_native_semaphore_t* semaphore);
/* Waits until the semaphore reaches `value`, which carries no failure. `deadline`: as for bp_stream_wait. [thread-safe]
 * [blocks]. Errors: BP_UNSUPPORTED (the device does not offer it), BP_TIMED_OUT, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_wait(bp_native_semaphore_t* semaphore, uint64_t value,
                                                       uint64_t deadline, bp_error_t* error);
/* Signals from the host. [thread-safe]. Errors: BP_UNSUPPORTED (the device does not offer it, or the semaphore is an
 * imported one of a single value), BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_signal(bp_native_semaphore_t* semaphore, uint64_t value,
                                                         bp_error_t* error);
/* Returns the current value. [thread-safe]. Errors: BP_UNSUPPORTED, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_query(bp_native_semaphore_t* semaphore, uint64_t* out_value,
                                                        bp_error_t* error);
/* Returns a handle for another device or framework, owned as for `semaphore_export` in plugin.h. [thread-safe]. Errors:
 * BP_UNSUPPORTED, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_export(bp_native_semaphore_t* semaphore,
                                                         const bp_semaphore_export_t* what, bp_native_t* out_native,
                                                         bp_error_t* error);
/* The plugin's own handle of the semaphore; lifetime, thread class and errors are as for bp_stream_plugin_stream. */
BP_EXPORT bp_status_t BP_CALL bp_native_semaphore_plugin_semaphore(bp_native_semaphore_t* semaphore,
                                                                   bp_native_semaphore_t** out_semaphore,
                                                                   bp_error_t* error);

/* ---- semaphores, cancellation, memory, trace --------------------------------------------------------------------- */

/* Creates a timeline semaphore of the host with an initial value. [thread-safe] */
BP_EXPORT bp_status_t BP_CALL bp_semaphore_create(uint64_t value, bp_semaphore_t** out_semaphore, bp_error_t* error);
/* No call may be waiting for the semaphore, and no run may signal it later. [one at a time] */
BP_EXPORT void BP_CALL bp_semaphore_destroy(bp_semaphore_t* semaphore);
/* Sets the semaphore to `value` if that is larger. With `failure` (may be NULL; copied), the values above the old one
 * have failed: waiting for one of them returns BP_DEPENDENCY_FAILED. [thread-safe]. Errors: BP_INVALID_ARGUMENT (a
 * failure whose status is BP_OK). */
BP_EXPORT bp_status_t BP_CALL bp_semaphore_signal(bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure,
                                                  bp_error_t* error);
/* Sets the semaphore to any value and clears its failures. Nothing may be waiting for it, and no run that was
 * started before may signal it later. [thread-safe] */
BP_EXPORT bp_status_t BP_CALL bp_semaphore_reset(bp_semaphore_t* semaphore, uint64_t value, bp_error_t* error);
/* Waits for `value`. `deadline`: as for bp_stream_wait. [thread-safe] [blocks]. Errors: BP_TIMED_OUT, BP_CANCELLED,
 * BP_DEPENDENCY_FAILED (with the detail of the failure: text, node, vendor code). */
BP_EXPORT bp_status_t BP_CALL bp_semaphore_wait(bp_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                                                const bp_cancel_t* cancel, bp_error_t* error);
/* Returns the current value. [thread-safe]. Errors: BP_DEPENDENCY_FAILED if that value has failed, with the detail;
 * `out_value` is then written too. */
BP_EXPORT bp_status_t BP_CALL bp_semaphore_query(bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error);

/* Creates a cancel token that is not set. [thread-safe] */
BP_EXPORT bp_status_t BP_CALL bp_cancel_create(bp_cancel_t** out_cancel, bp_error_t* error);
/* No call or run may be using the token. [one at a time] */
BP_EXPORT void BP_CALL bp_cancel_destroy(bp_cancel_t* cancel);
/* Sets the token, for good. [thread-safe]; may be called from a signal handler */
BP_EXPORT void BP_CALL bp_cancel_set(bp_cancel_t* cancel);

/* Creates an empty container: `kind` is BP_KIND_SEQUENCE, BP_KIND_OPTIONAL or BP_KIND_MAP. bp_container_api returns its
 * functions. [thread-safe] */
BP_EXPORT bp_status_t BP_CALL bp_container_create(uint32_t kind, bp_container_t** out_container, bp_error_t* error);
/* The container must not be bound to an exec. [one at a time] */
BP_EXPORT void BP_CALL bp_container_destroy(bp_container_t* container);
/* The functions of containers. The table lives as long as the loader's library. [thread-safe] */
BP_EXPORT const bp_container_api_t* BP_CALL bp_container_api(void);

/* The next four functions act on memory of a device, which is given by its id, as the slots of bp_memory_api_t do. They
 * open the device if necessary. Do not use a buffer with another environment, whose devices have the same ids.
 * [thread-safe] [blocks]. Errors: BP_NOT_FOUND, BP_UNSUPPORTED, BP_RESOURCE_EXHAUSTED, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_memory_space(bp_env_t* env, uint64_t device, uint32_t index, bp_space_t* out_space,
                                              bp_error_t* error);
BP_EXPORT bp_status_t BP_CALL bp_memory_allocate(bp_env_t* env, uint64_t device, const bp_allocate_t* what,
                                                 bp_buffer_t* out_buffer, bp_error_t* error);
BP_EXPORT bp_status_t BP_CALL bp_memory_import(bp_env_t* env, uint64_t device, const bp_import_t* what,
                                               bp_buffer_t* out_buffer, bp_error_t* error);
BP_EXPORT bp_status_t BP_CALL bp_memory_export(bp_env_t* env, const bp_export_t* what, bp_external_t* out_external,
                                               bp_error_t* error);
/* Frees a buffer from bp_memory_allocate or bp_memory_import. If `what` has a stream and the device has no function
 * `release`, this waits until the work now in the stream has ended, without a limit: what that work waits for must not
 * depend on a later call of the same thread. [thread-safe] [blocks]. */
BP_EXPORT void BP_CALL bp_memory_release(bp_env_t* env, const bp_release_t* what);
/* Returns a host pointer to a buffer, valid until bp_memory_unmap. For host memory it is the buffer's own address. The
 * call and bp_memory_unmap flush as the access needs, so also map imported host memory around the host's accesses if
 * its space lacks BP_SPACE_COHERENT. [thread-safe] [blocks]. Errors: BP_NOT_FOUND, BP_UNSUPPORTED, BP_DEVICE_LOST. */
BP_EXPORT bp_status_t BP_CALL bp_memory_map(bp_env_t* env, const bp_map_t* what, void** out_pointer, bp_error_t* error);
/* Ends a mapping: `what` and `pointer` are bp_memory_map's. [thread-safe] [blocks]. Errors: as for bp_memory_map. */
BP_EXPORT bp_status_t BP_CALL bp_memory_unmap(bp_env_t* env, const bp_map_t* what, void* pointer, bp_error_t* error);
/* Fills a buffer. If a run is given, the fill is ordered in its stream like that run. [thread-safe] [blocks without a
 * run]. Errors: as for bp_memory_copy. */
BP_EXPORT bp_status_t BP_CALL bp_memory_fill(bp_env_t* env, const bp_fill_t* what, bp_error_t* error);
/* Copies between any two buffers, through host memory if there is no shorter way. If a run is given, the copy is
 * ordered in its stream like that run. The stream must be one of the device that copies: that of `to` or, if `to` is
 * host memory, that of `from`. Otherwise the call returns when the copy is done. [thread-safe] [blocks without a run].
 * Errors: BP_INVALID_ARGUMENT (a run without a stream; parts of one memory of a device that overlap), BP_NOT_FOUND,
 * BP_BUFFER_TOO_SMALL, BP_UNSUPPORTED (with a run: no single device can do the copy in that order), and those of `copy`
 * in plugin.h. */
BP_EXPORT bp_status_t BP_CALL bp_memory_copy(bp_env_t* env, const bp_copy_t* what, bp_error_t* error);

/* Starts collecting spans of all sessions of the environment, and drops those collected before. Holds at most 512 MiB
 * of spans: those that no longer fit are only counted. [thread-safe] */
BP_EXPORT bp_status_t BP_CALL bp_trace_start(bp_env_t* env, bp_error_t* error);
/* Stops collecting, and writes the spans as Chrome/Perfetto JSON, with the number of spans that were not held as
 * `otherData.dropped`. [thread-safe] [blocks]. Errors: BP_BAD_STATE (not started). */
BP_EXPORT bp_status_t BP_CALL bp_trace_stop(bp_env_t* env, bp_text_sink_t sink, void* context, bp_error_t* error);

/* The name of a code, such as "BP_INVALID_MODEL"; never NULL. [thread-safe] */
BP_EXPORT const char* BP_CALL bp_status_name(bp_status_t status);

/* ---- the same as one table --------------------------------------------------------------------------------------- */

typedef struct bp_loader_api_t {
  uint32_t size;
  uint32_t version;  /* BP_ABI_VERSION of the loader */
  bp_text_t release; /* the loader's own version */
  bp_text_t build_id;
  bp_status_t(BP_CALL* env_create)(const bp_env_desc_t*, bp_env_t**, bp_error_t*);
  void(BP_CALL* env_destroy)(bp_env_t*);
  uint32_t(BP_CALL* env_candidate_count)(const bp_env_t*);
  bp_status_t(BP_CALL* env_candidate)(const bp_env_t*, uint32_t, bp_candidate_t*, bp_error_t*);
  uint32_t(BP_CALL* env_device_count)(const bp_env_t*);
  bp_status_t(BP_CALL* env_device)(const bp_env_t*, uint32_t, bp_device_info_t*, bp_text_t*, bp_error_t*);
  bp_status_t(BP_CALL* env_open_device)(bp_env_t*, uint64_t, const bp_device_open_t*, bp_error_t*);
  bp_status_t(BP_CALL* env_abandon_device)(bp_env_t*, uint64_t, bp_error_t*);
  bp_status_t(BP_CALL* env_report)(const bp_env_t*, bp_text_sink_t, void*, bp_error_t*);
  const void*(BP_CALL* env_get_extension)(const bp_env_t*, bp_text_t, uint32_t);
  bp_status_t(BP_CALL* model_open)(bp_env_t*, const bp_model_source_t*, bp_model_t**, bp_error_t*);
  void(BP_CALL* model_destroy)(bp_model_t*);
  const bp_graph_t*(BP_CALL* model_graph)(const bp_model_t*);
  bp_status_t(BP_CALL* model_report)(const bp_model_t*, bp_text_sink_t, void*, bp_error_t*);
  bp_status_t(BP_CALL* builder_create)(bp_env_t*, const bp_builder_desc_t*, bp_builder_t**, bp_error_t*);
  bp_status_t(BP_CALL* builder_create_body)(bp_builder_t*, bp_builder_t**, bp_error_t*);
  void(BP_CALL* builder_destroy)(bp_builder_t*);
  bp_status_t(BP_CALL* builder_input)(bp_builder_t*, const bp_input_desc_t*, uint32_t*, bp_error_t*);
  bp_status_t(BP_CALL* builder_weight)(bp_builder_t*, bp_text_t, const bp_tensor_t*, uint32_t*, bp_error_t*);
  bp_status_t(BP_CALL* builder_node)(bp_builder_t*, const bp_node_desc_t*, uint32_t*, bp_error_t*);
  bp_status_t(BP_CALL* builder_output)(bp_builder_t*, uint32_t, bp_error_t*);
  bp_status_t(BP_CALL* builder_finish)(bp_builder_t*, bp_model_t**, bp_error_t*);
  bp_status_t(BP_CALL* session_create)(bp_env_t*, bp_model_t*, const bp_session_desc_t*, bp_session_t**, bp_error_t*);
  void(BP_CALL* session_destroy)(bp_session_t*);
  bp_status_t(BP_CALL* session_node)(const bp_session_t*, uint32_t, bp_placed_node_t*, bp_error_t*);
  bp_status_t(BP_CALL* session_verdict)(const bp_session_t*, uint32_t, uint64_t, bp_node_verdict_t*, bp_error_t*);
  const bp_graph_t*(BP_CALL* session_graph)(const bp_session_t*);
  bp_status_t(BP_CALL* session_report)(const bp_session_t*, bp_text_sink_t, void*, bp_error_t*);
  bp_status_t(BP_CALL* session_refit)(bp_session_t*, const bp_session_refit_t*, bp_error_t*);
  bp_status_t(BP_CALL* session_read_weight)(const bp_session_t*, bp_text_t, bp_tensor_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_create)(bp_session_t*, const bp_exec_desc_t*, bp_exec_t**, bp_error_t*);
  void(BP_CALL* exec_destroy)(bp_exec_t*);
  bp_status_t(BP_CALL* exec_bind)(bp_exec_t*, uint32_t, const bp_tensor_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_bind_container)(bp_exec_t*, uint32_t, bp_container_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_unbind)(bp_exec_t*, uint32_t, bp_error_t*);
  bp_status_t(BP_CALL* exec_extents)(bp_exec_t*, const bp_slot_extents_t*, uint32_t, uint32_t, bp_error_t*);
  bp_status_t(BP_CALL* exec_symbol)(bp_exec_t*, uint32_t, int64_t, bp_error_t*);
  bp_status_t(BP_CALL* exec_run)(bp_exec_t*, const bp_run_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_submit)(bp_exec_t*, const bp_run_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_output)(bp_exec_t*, uint32_t, bp_tensor_t*, bp_error_t*);
  bp_status_t(BP_CALL* exec_output_container)(bp_exec_t*, uint32_t, bp_container_t**, bp_error_t*);
  bp_status_t(BP_CALL* stream_create)(bp_env_t*, uint64_t, const bp_stream_create_t*, bp_stream_t**, bp_error_t*);
  void(BP_CALL* stream_destroy)(bp_stream_t*);
  bp_status_t(BP_CALL* stream_wait)(bp_stream_t*, uint64_t, bp_error_t*);
  bp_status_t(BP_CALL* stream_export)(bp_stream_t*, bp_native_t*, bp_error_t*);
  bp_status_t(BP_CALL* native_semaphore_create)(bp_env_t*, uint64_t, const bp_semaphore_create_t*,
                                                bp_native_semaphore_t**, bp_error_t*);
  void(BP_CALL* native_semaphore_destroy)(bp_native_semaphore_t*);
  bp_status_t(BP_CALL* native_semaphore_wait)(bp_native_semaphore_t*, uint64_t, uint64_t, bp_error_t*);
  bp_status_t(BP_CALL* native_semaphore_signal)(bp_native_semaphore_t*, uint64_t, bp_error_t*);
  bp_status_t(BP_CALL* native_semaphore_query)(bp_native_semaphore_t*, uint64_t*, bp_error_t*);
  bp_status_t(BP_CALL* native_semaphore_export)(bp_native_semaphore_t*, const bp_semaphore_export_t*, bp_native_t*,
                                                bp_error_t*);
  bp_status_t(BP_CALL* semaphore_create)(uint64_t, bp_semaphore_t**, bp_error_t*);
  void(BP_CALL* semaphore_destroy)(bp_semaphore_t*);
  bp_status_t(BP_CALL* semaphore_signal)(bp_semaphore_t*, uint64_t, const bp_error_t*, bp_error_t*);
  bp_status_t(BP_CALL* semaphore_reset)(bp_semaphore_t*, uint64_t, bp_error_t*);
  bp_status_t(BP_CALL* semaphore_wait)(bp_semaphore_t*, uint64_t, uint64_t, const bp_cancel_t*, bp_error_t*);
  bp_status_t(BP_CALL* semaphore_query)(bp_semaphore_t*, uint64_t*, bp_error_t*);
  bp_status_t(BP_CALL* cancel_create)(bp_cancel_t**, bp_error_t*);
  void(BP_CALL* cancel_destroy)(bp_cancel_t*);
  void(BP_CALL* cancel_set)(bp_cancel_t*);
  bp_status_t(BP_CALL* container_create)(uint32_t, bp_container_t**, bp_error_t*);
  void(BP_CALL* container_destroy)(bp_container_t*);
  const bp_container_api_t*(BP_CALL* container_api)(void);
  bp_status_t(BP_CALL* memory_space)(bp_env_t*, uint64_t, uint32_t, bp_space_t*, bp_error_t*);
  bp_status_t(BP_CALL* memory_allocate)(bp_env_t*, uint64_t, const bp_allocate_t*, bp_buffer_t*, bp_error_t*);
  bp_status_t(BP_CALL* memory_import)(bp_env_t*, uint64_t, const bp_import_t*, bp_buffer_t*, bp_error_t*);
  bp_status_t(BP_CALL* memory_export)(bp_env_t*, const bp_export_t*, bp_external_t*, bp_error_t*);
  void(BP_CALL* memory_release)(bp_env_t*, const bp_release_t*);
  bp_status_t(BP_CALL* memory_map)(bp_env_t*, const bp_map_t*, void**, bp_error_t*);
  bp_status_t(BP_CALL* memory_unmap)(bp_env_t*, const bp_map_t*, void*, bp_error_t*);
  bp_status_t(BP_CALL* memory_fill)(bp_env_t*, const bp_fill_t*, bp_error_t*);
  bp_status_t(BP_CALL* memory_copy)(bp_env_t*, const bp_copy_t*, bp_error_t*);
  bp_status_t(BP_CALL* trace_start)(bp_env_t*, bp_error_t*);
  bp_status_t(BP_CALL* trace_stop)(bp_env_t*, bp_text_sink_t, void*, bp_error_t*);
  const char*(BP_CALL* status_name)(bp_status_t);
  bp_status_t(BP_CALL* env_plugin_device)(bp_env_t*, uint64_t, bp_device_t**, bp_error_t*);
  bp_status_t(BP_CALL* session_plugin_program)(const bp_session_t*, uint32_t, const bp_program_t**, bp_error_t*);
  bp_status_t(BP_CALL* exec_symbols)(bp_exec_t*, const bp_symbol_extent_t*, uint32_t, uint32_t, bp_error_t*);
  bp_status_t(BP_CALL* stream_plugin_stream)(bp_stream_t*, bp_stream_t**, bp_error_t*);
  bp_status_t(BP_CALL* native_semaphore_plugin_semaphore)(bp_native_semaphore_t*, bp_native_semaphore_t**, bp_error_t*);
} bp_loader_api_t;

/* Returns the functions above as a static table, for a caller built with ABI `version`. NULL if the loader does not
 * support that version: another draft, another major version, or one older than it supports. For a newer minor version
 * the table is smaller than the caller's: check its `size`, or use BP_HAS. [thread-safe] */
BP_EXPORT const bp_loader_api_t* BP_CALL bp_get_api(uint32_t version);
#define BP_LOADER_SYMBOL "bp_get_api"
typedef const bp_loader_api_t*(BP_CALL* bp_get_api_t)(uint32_t version);

BP_EXTERN_C_END

#endif
