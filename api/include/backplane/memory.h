/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of tensors: memory spaces, buffers, tensors, and how memory passes between owners.
 */
#ifndef BACKPLANE_MEMORY_H
#define BACKPLANE_MEMORY_H

#include "backplane/types.h"

BP_EXTERN_C_BEGIN

typedef struct bp_memory_t bp_memory_t; /* an allocation or import of a plugin; opaque */

/* A kind of memory that a device reaches. Space 0 of every device is host memory if its flags have BP_SPACE_HOST. */
typedef struct bp_space_t {
  uint32_t size;
  uint32_t flags;          /* BP_SPACE_* */
  bp_text_t name;          /* "host", "device", "pinned"; lives as long as the device, like the arrays below */
  uint64_t alignment;      /* bytes, a power of two: allocations in the space start at a multiple of it. Memory of a
                              framework and parts of buffers may start anywhere: a run uses such memory correctly, or
                              `bind` or the run refuses it with BP_UNSUPPORTED */
  uint64_t capacity;       /* bytes; 0 if unknown */
  uint64_t budget;         /* bytes that may be allocated now; 0 if unknown */
  const uint32_t* imports; /* the BP_EXTERNAL_* kinds that `import` accepts for this space */
  const uint32_t* exports; /* the BP_EXTERNAL_* kinds that `export_` returns for the space's buffers */
  uint32_t import_count;
  uint32_t export_count;
} bp_space_t;

#define BP_SPACE_HOST 0x1u     /* memory of the process, and coherent: any host pointer is in this space */
#define BP_SPACE_MAPPABLE 0x2u /* `map` returns a host pointer */
#define BP_SPACE_COHERENT 0x4u /* mappings and imported host memory need no call of `flush` */
#define BP_SPACE_DEVICE 0x8u   /* fastest for the device */

/* A piece of memory. In a space with BP_SPACE_HOST, `memory` is NULL and `address` is a pointer. In other spaces,
 * `memory` is a handle of the device's plugin, and `address` is the device address if the plugin offers it, otherwise
 * 0. The creator of a buffer fills it in: a plugin's `allocate` and `import` write `memory`, `address` and `offset`;
 * their caller writes the other fields. The struct never grows. */
typedef struct bp_buffer_t {
  uint64_t device; /* the device's id (bp_device_open_t.id); 0: host memory that belongs to no device */
  uint32_t space;  /* index of one of the device's spaces, from 0 */
  uint32_t flags;  /* BP_BUFFER_* */
  bp_memory_t* memory;
  void* address;
  uint64_t offset; /* bytes from `memory` or `address` */
  uint64_t bytes;
  uint64_t reserved; /* set it to 0: other values may get a meaning later, and are refused with BP_UNSUPPORTED */
} bp_buffer_t;

#define BP_BUFFER_READ_ONLY 0x10000u /* must not be written to: binding it to an output is BP_INVALID_ARGUMENT */

/* How elements are arranged in a buffer. 0 is dense row-major (types below 8 bits are packed). */
#define BP_LAYOUT_DENSE 0u
#define BP_LAYOUT_STRIDED 1u /* `strides`, in elements */
/* layout ids from this value up are a plugin's own; on one device, equal ids mean equal layouts */
#define BP_LAYOUT_VENDOR BP_VENDOR

/* A tensor in memory. */
typedef struct bp_tensor_t {
  uint32_t size;
  bp_dtype_t dtype;
  uint32_t rank;
  uint32_t layout;        /* BP_LAYOUT_* */
  const int64_t* extents; /* `rank` numbers */
  const int64_t* strides; /* `rank` numbers, only with BP_LAYOUT_STRIDED; otherwise NULL */
  bp_buffer_t buffer;
} bp_tensor_t;

/* A sequence, optional or map: a handle that is owned by its creator and used through a table. Reading calls may run
 * concurrently with each other, but not with a call that changes the container. */
typedef struct bp_container_t bp_container_t;
typedef struct bp_container_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Sequences: the number of elements. Optionals: 0 or 1. Maps: the number of keys. [thread-safe among reads] */
  uint64_t(BP_CALL* count)(const bp_container_t* container);
  /* Element `i` as a tensor, valid until the container changes. Maps: the value of key `i`. [thread-safe among reads].
   * Errors: BP_NOT_FOUND, BP_TYPE_MISMATCH (the element is itself a container: use `child`). */
  bp_status_t(BP_CALL* tensor)(const bp_container_t* container, uint64_t i, bp_tensor_t* out_tensor);
  /* Element `i` as a container. `container` owns it, and it is valid until `container` changes. [thread-safe among
   * reads]. Errors: BP_NOT_FOUND, BP_TYPE_MISMATCH. */
  bp_status_t(BP_CALL* child)(const bp_container_t* container, uint64_t i, bp_container_t** out_container);
  /* Key `i` of a map: text for string keys, otherwise the 8 bytes of an int64. Empty in a sequence or optional. Valid
   * until the container changes.
   * [thread-safe among reads]. Errors: BP_NOT_FOUND. */
  bp_status_t(BP_CALL* key)(const bp_container_t* container, uint64_t i, bp_bytes_t* out_key);
  /* Appends a copy of a dense host tensor. In a map, the copy is the value of `key` (bytes as returned by the slot
   * `key`, never NULL); the key is not compared with those of the map. [one at a time]. Errors: BP_RESOURCE_EXHAUSTED,
   * BP_BAD_STATE (an optional that is full). */
  bp_status_t(BP_CALL* append)(bp_container_t* container, bp_bytes_t key, const bp_tensor_t* tensor);
  /* Appends an empty container and returns it, as `child` does. Its kind is that of the element type of `container`;
   * the host does not check what is appended to it. [one at a time]. Errors: as for `append`. */
  bp_status_t(BP_CALL* append_child)(bp_container_t* container, bp_bytes_t key, bp_container_t** out_child);
  /* Removes everything. [one at a time] */
  void(BP_CALL* clear)(bp_container_t* container);
} bp_container_api_t;

/* Kinds of handle of memory outside this API, which `import` accepts and `export_` returns. */
#define BP_EXTERNAL_HOST_POINTER 1u /* handle: the pointer */
#define BP_EXTERNAL_CUDA_POINTER 5u /* handle: a CUdeviceptr */
#define BP_EXTERNAL_CL_MEM 6u       /* handle: a cl_mem; import retains it */
/* 2, 3, 4, 7 and 8 are reserved for the drafts in ext/draft/kinds.h. */

typedef struct bp_external_t {
  uint32_t size;
  uint32_t kind; /* BP_EXTERNAL_* */
  uint64_t handle;
  uint64_t bytes;
  uint64_t offset;   /* bytes from the handle to the first byte */
  uint64_t modifier; /* how the memory is laid out, for kinds whose comment gives it a meaning; otherwise 0 */
  uint32_t flags;    /* BP_BUFFER_* */
  uint32_t reserved;
  void* self;
  /* Import: called once, when the import has ended and the device no longer uses the memory, from any thread but one in
   * which a driver forbids calls to it (such as a CUDA host function's). It may block and call drivers, but no function
   * of Backplane. Not called if the import failed. May be NULL. Export: NULL. */
  void(BP_CALL* release)(void* self);
  const bp_chain_t* chain;
} bp_external_t;

BP_EXTERN_C_END

#endif
