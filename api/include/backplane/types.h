/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all headers: the conventions, text, data types, dimensions, options.
 *
 * Conventions (each is stated once, here):
 *
 *  - Platforms are 64-bit and little-endian. Alignment is natural; padding is written out as `reserved`, set to zero by
 *    the writer and ignored by the reader.
 *  - Every struct that may grow and is not an element of an array begins with `uint32_t size`, which the owner of the
 *    memory sets to sizeof the struct in the headers that it was built with, after it has zeroed the struct. A reader
 *    copies min(size, its own sizeof) bytes into a zeroed local, or checks BP_HAS before it reads a field that ABI 1.0
 *    lacks; it refuses only sizes below that of ABI 1.0 (sizes.h). A writer writes at most `size` bytes. Zero in a new
 *    field means the behavior before the field existed.
 *  - Structs in an array have no size field: the array comes with a count and a stride in bytes, and the stride is
 *    their size. Tensors in an array (bp_shape_query_t.inputs) have one nevertheless: then the stride is only the
 *    distance between elements, and each is read by its own `size`.
 *  - A slot is a function pointer in a table or another struct. NULL means "not offered"; the comment of the slot says
 *    what the caller then does. A slot whose comment does not mention NULL is always set, unless the comment of its
 *    table says otherwise.
 *  - A pointer argument is borrowed until the call returns, unless the comment of the slot states a longer lifetime.
 *    `out_` arguments are written on success only; a created handle's out-argument is set to NULL on failure.
 *  - Every create has a destroy; a destroy accepts NULL and returns nothing. Children are destroyed before their
 *    parents.
 *  - Slots are marked [thread-safe] (any thread, at any time) or [one at a time] (any thread; one call per object at a
 *    time, the caller orders them; the object is the slot's first argument, or the library if a backend is created).
 *    [blocks] means that a call may wait for a device, a file or another thread; without it, a call returns in
 *    microseconds.
 *  - A callback calls no function of the side that calls it, unless its comment names the function. Work that the host
 *    runs on its threads for a plugin (bp_loop_t.body, bp_task_t.run) is not a callback in this sense: it may call
 *    every slot of the host that its own comment does not exclude. No callback throws, and none blocks unless its
 *    comment says so.
 *  - "Errors" lists, by name, the codes that a slot returns. Any slot may also return BP_INVALID_ARGUMENT,
 *    BP_RESOURCE_EXHAUSTED, BP_INTERNAL, BP_UNSUPPORTED for a required flag or extension struct that it does not know,
 *    BP_DEVICE_LOST if it uses a device, and BP_FORKED for an object that the parent process created before it forked
 *    this one. In the child, destroying such an object does nothing. Handle any other code by its class
 *    (status.h).
 *  - Host and plugin pass each other no type, kind, flag or attribute type that is newer than the version that they
 *    negotiated. A framework treats numbers that it does not know in results as unknown; unknown reasons as OTHER.
 *  - Flags: the low 16 bits of a word are hints, and a reader ignores those that it does not know. The high 16 bits
 *    (BP_FLAGS_REQUIRED) change the request: a reader that does not know one of them refuses the call with
 *    BP_UNSUPPORTED. In requests of a framework, the loader refuses every bit that it does not know. Flags of results
 *    (about a device, a value, a span, an error) only inform, and a call that returns no status has only hints.
 *  - No exception, longjmp, abort or exit crosses the ABI in either direction.
 *  - Text is UTF-8 and not zero-terminated. Points in time are nanoseconds on the monotonic clock; durations are in the
 *    unit that their name states (`seconds`, `launch_ns`). Sizes are in bytes.
 */
#ifndef BACKPLANE_TYPES_H
#define BACKPLANE_TYPES_H

#include "backplane/status.h"

BP_EXTERN_C_BEGIN

/* Whether a struct has a field. `size` is the struct's own, or the stride of the array that it is an element of. Check
 * this before you read a field that ABI 1.0 lacks, because an older peer's struct ends before it. */
#define BP_HAS(pointer, size, field) \
  ((uint64_t)((const char*)(&(pointer)->field + 1) - (const char*)(pointer)) <= (uint64_t)(size))

#define BP_FLAGS_REQUIRED 0xffff0000u /* flags that must be understood */

#define BP_NONE UINT32_MAX /* "no index" */
/* Numbers of kinds start at 1, and 0 means none. A vendor's own kinds have numbers from this value up. */
#define BP_VENDOR 0x80000000u
/* A deadline that is never reached. A wait whose deadline has passed, such as 0, returns at once. Only in
 * bp_run_t does 0 mean that there is no deadline. */
#define BP_FOREVER UINT64_MAX

/* Borrowed text. `data` may be NULL when `size` is 0. The struct never grows, so it is passed and embedded by value. */
typedef struct bp_text_t {
  const char* data;
  uint64_t size;
} bp_text_t;

/* Borrowed bytes. The struct never grows. */
typedef struct bp_bytes_t {
  const void* data;
  uint64_t size;
} bp_bytes_t;

/* Receives text, or the bytes of a serialized message or program, in one or more pieces, each borrowed for its call.
 * Called on the caller's thread, before the caller's call returns. */
typedef void(BP_CALL* bp_text_sink_t)(void* context, bp_text_t piece);

/* A named setting. Names are lower case with dots ("cpu.threads"). Unknown names are refused with BP_NOT_FOUND.
 * A plugin sees its own settings only, and without its prefix ("threads"). The struct never grows. */
typedef struct bp_option_t {
  bp_text_t name;
  bp_text_t value;
} bp_option_t;

/* The head of an extension struct; the head never grows. Descriptors may point to a chain of extension structs. A
 * reader skips a struct that it does not know, unless its `required` is 1: then the reader refuses the call with
 * BP_UNSUPPORTED and names the extension. A struct of a version that the reader does not know counts as unknown. The
 * structs of a run (bp_run_t, bp_binding_t and the like) have no chain. */
typedef struct bp_chain_t {
  uint32_t size;
  uint32_t required;
  bp_text_t extension; /* the extension's name, as in get_extension */
  uint32_t version;    /* of the extension, as in get_extension */
  uint32_t reserved;
  const struct bp_chain_t* next;
} bp_chain_t;

/* Data types, numbered as in ONNX's TensorProto.DataType. Types below 8 bits are packed as in ONNX raw_data, first
 * element in the low bits. BOOL is one byte, 0 or 1. */
typedef uint32_t bp_dtype_t;
#define BP_DTYPE_UNDEFINED 0u
#define BP_DTYPE_FLOAT 1u
#define BP_DTYPE_UINT8 2u
#define BP_DTYPE_INT8 3u
#define BP_DTYPE_UINT16 4u
#define BP_DTYPE_INT16 5u
#define BP_DTYPE_INT32 6u
#define BP_DTYPE_INT64 7u
/* The memory of n strings: n+1 int64 offsets, then the strings' bytes. String k is bytes [offset[k], offset[k+1]) of
 * the part after the offsets. */
#define BP_DTYPE_STRING 8u
#define BP_DTYPE_BOOL 9u
#define BP_DTYPE_FLOAT16 10u
#define BP_DTYPE_DOUBLE 11u
#define BP_DTYPE_UINT32 12u
#define BP_DTYPE_UINT64 13u
#define BP_DTYPE_COMPLEX64 14u
#define BP_DTYPE_COMPLEX128 15u
#define BP_DTYPE_BFLOAT16 16u
#define BP_DTYPE_FLOAT8E4M3FN 17u
#define BP_DTYPE_FLOAT8E4M3FNUZ 18u
#define BP_DTYPE_FLOAT8E5M2 19u
#define BP_DTYPE_FLOAT8E5M2FNUZ 20u
#define BP_DTYPE_UINT4 21u
#define BP_DTYPE_INT4 22u
#define BP_DTYPE_FLOAT4E2M1 23u
#define BP_DTYPE_FLOAT8E8M0 24u
#define BP_DTYPE_UINT2 25u
#define BP_DTYPE_INT2 26u

/* A set of data types: bit (1 << dtype). */
typedef uint64_t bp_dtype_set_t;

/* Kinds of values. */
#define BP_KIND_TENSOR 1u
#define BP_KIND_SPARSE_TENSOR 2u
#define BP_KIND_SEQUENCE 3u
#define BP_KIND_OPTIONAL 4u
#define BP_KIND_MAP 5u

#define BP_MAX_RANK 32

/* One dimension. An `extent` >= 0 is a number; -1 is unknown. If unknown, `symbol` is its index in bp_graph_t.symbols,
 * or BP_NONE if nothing relates it to another dimension. The struct never grows. */
typedef struct bp_dim_t {
  int64_t extent;
  uint32_t symbol;
  uint32_t reserved;
} bp_dim_t;

/* A named dimension and the extents that it may take, from min to max inclusive. */
typedef struct bp_symbol_t {
  bp_text_t name;
  int64_t min;
  int64_t max; /* INT64_MAX if there is no bound */
} bp_symbol_t;

BP_EXTERN_C_END

#endif
