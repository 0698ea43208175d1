/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph that a backend sees: immutable indexed arrays. The host owns them, and they are valid until the call that
 * passed them returns, unless the comment of a slot states a longer lifetime. Fields are read directly, without
 * function calls.
 *
 * The graph is canonical: operators are in the newest form that the plugin knows, default attributes are written out,
 * types and shapes are inferred, and nodes are in topological order. An index is a position in one of this graph's
 * arrays.
 */
#ifndef BACKPLANE_GRAPH_H
#define BACKPLANE_GRAPH_H

#include "backplane/types.h"

BP_EXTERN_C_BEGIN

typedef struct bp_graph_t bp_graph_t;

/* The type of a value. A container refers to its element's type by an index into bp_graph_t.types. */
typedef struct bp_type_t {
  uint32_t kind;      /* BP_KIND_*; 0 when unknown */
  bp_dtype_t dtype;   /* tensors: the element type; maps: the key type */
  int32_t rank;       /* tensors: number of dimensions, -1 when unknown */
  uint32_t first_dim; /* tensors: the first of `rank` entries in bp_graph_t.dims */
  uint32_t element;   /* sequence, optional, map: the element's index in bp_graph_t.types; otherwise BP_NONE */
  uint32_t reserved;
} bp_type_t;

/* A value: an edge of the graph. */
typedef struct bp_value_t {
  bp_text_t name;
  uint32_t type;      /* index into bp_graph_t.types */
  uint32_t producer;  /* the node that computes it, or BP_NONE for inputs, weights and values of an outer graph */
  uint32_t slot;      /* index among the producer's outputs, or among the inputs of the graph; otherwise BP_NONE */
  uint32_t weight;    /* index into bp_graph_t.weights if it is constant; otherwise BP_NONE */
  uint32_t outer;     /* in subgraphs: the value of the parent graph that this value refers to; otherwise BP_NONE */
  uint32_t first_use; /* the first of `use_count` entries in bp_graph_t.uses */
  uint32_t use_count;
  uint32_t flags; /* BP_VALUE_* */
} bp_value_t;

#define BP_VALUE_INPUT 0x1u  /* an input of the graph */
#define BP_VALUE_OUTPUT 0x2u /* an output of the graph */

/* A use of a value: input `slot` of `node` reads it. Reads by a node's subgraphs are listed with slot BP_NONE. Never
 * grows. */
typedef struct bp_use_t {
  uint32_t node;
  uint32_t slot;
} bp_use_t;

/* One call of an operator. */
typedef struct bp_node_t {
  bp_text_t op_type;      /* as ONNX spells it */
  bp_text_t domain;       /* "" is ai.onnx */
  bp_text_t overload;     /* functions only, otherwise empty */
  bp_text_t name;         /* as in the model; may be empty */
  uint64_t id;            /* the node's identity in the model: the same in every view, island, trace and error */
  uint32_t since_version; /* the operator-set version in which this form of the operator appeared; for functions and
                             domains that the host does not know, the model's version of the domain */
  uint32_t first_input;   /* the first of `input_count` entries in bp_graph_t.operands; BP_NONE is an omitted input */
  uint32_t input_count;
  uint32_t first_output; /* the first of `output_count` entries in bp_graph_t.operands; BP_NONE is an output that this
                            node must not write: the model omits it, or another node writes it */
  uint32_t output_count;
  uint32_t first_attribute; /* the first of `attribute_count` entries in bp_graph_t.attributes, sorted by name */
  uint32_t attribute_count;
  uint32_t flags; /* none defined */
} bp_node_t;

/* Attribute types, numbered as in ONNX's AttributeProto.AttributeType. */
#define BP_ATTR_FLOAT 1u
#define BP_ATTR_INT 2u
#define BP_ATTR_STRING 3u
#define BP_ATTR_TENSOR 4u
#define BP_ATTR_GRAPH 5u
#define BP_ATTR_FLOATS 6u
#define BP_ATTR_INTS 7u
#define BP_ATTR_STRINGS 8u
#define BP_ATTR_TENSORS 9u
#define BP_ATTR_GRAPHS 10u
#define BP_ATTR_SPARSE_TENSOR 11u
#define BP_ATTR_SPARSE_TENSORS 12u
#define BP_ATTR_TYPE 13u
#define BP_ATTR_TYPES 14u

/* An attribute. A single element is an array of length 1. `data` points to `count` elements:
 * FLOAT(S) float · INT(S) int64_t · STRING(S) bp_text_t · TENSOR(S) uint32_t indices into bp_graph_t.weights ·
 * GRAPH(S) uint32_t indices into bp_graph_t.subgraphs ·
 * TYPE(S) uint32_t indices into bp_graph_t.types · SPARSE_TENSOR(S) three uint32_t each: indices of the values and of
 * the indices into bp_graph_t.weights, and one into bp_graph_t.types, of kind BP_KIND_SPARSE_TENSOR with the extents of
 * the dense tensor. */
typedef struct bp_attribute_t {
  bp_text_t name;
  uint32_t type; /* BP_ATTR_* */
  uint32_t count;
  const void* data;
} bp_attribute_t;

/* A constant tensor. Its bytes stay where they are (a file, the framework's memory): `weight_map` returns them. `data`
 * is their address if no call is needed: they are in memory or in a mapped file, whose pages are read when touched. */
typedef struct bp_weight_t {
  bp_dtype_t dtype;
  uint32_t rank;
  uint32_t first_dim; /* the first of `rank` entries in bp_graph_t.dims, all numbers */
  uint32_t flags;     /* BP_WEIGHT_* */
  uint64_t bytes;
  const void* data; /* NULL if `weight_map` must be called; may be unaligned, because files guarantee no alignment */
  bp_text_t file;   /* the file that contains the bytes, or empty */
  uint64_t file_offset; /* in `file` */
  uint64_t id;          /* the weight's identity in the model: the same in every view */
} bp_weight_t;

#define BP_WEIGHT_REFIT 0x1u /* the framework may replace its bytes later: fold it only in a way that allows that */

/* The version of the operator set that the nodes of a domain use. */
typedef struct bp_opset_t {
  bp_text_t domain;
  uint32_t version;
  uint32_t reserved;
} bp_opset_t;

/* Functions of a graph, in addition to its arrays. All are [thread-safe]. `graph` is any graph that the host passed and
 * that is still valid. */
typedef struct bp_graph_api_t {
  uint32_t size;
  uint32_t reserved;
  /* Returns the bytes of a weight, at any alignment. The host owns them. They stay valid as long as the program that is
   * being compiled lives (during coverage and review: until the call returns). [blocks] while a file is read. Errors:
   * BP_IO_ERROR, BP_RESOURCE_EXHAUSTED. */
  bp_status_t(BP_CALL* weight_map)(const bp_graph_t* graph, uint32_t weight, const void** out_data, bp_error_t* error);
  /* Reports that the plugin has its own copy (packed, uploaded) and will not read the bytes again, so the host may
   * release the pages. The bytes remain readable; reading them later only costs time. */
  void(BP_CALL* weight_consumed)(const bp_graph_t* graph, uint32_t weight);
  /* Returns a 128-bit hash of data type, extents and bytes, for sharing and caching. It is computed once and then
   * stored. [blocks] the first time. Errors: BP_IO_ERROR. */
  bp_status_t(BP_CALL* weight_hash)(const bp_graph_t* graph, uint32_t weight, uint64_t out_hash[2], bp_error_t* error);
  /* Writes the graph as a serialized ONNX ModelProto, for plugins with their own ONNX parser. `sink` receives the
   * pieces of one message in order. Weights above `external_above` bytes that lie in files are written as external
   * data that refers to these files (UINT64_MAX: all weights are inside the message). [blocks]. Errors: BP_IO_ERROR,
   * BP_UNSUPPORTED (over 2 GB inside the message). */
  bp_status_t(BP_CALL* serialize)(const bp_graph_t* graph, uint64_t external_above, bp_text_sink_t sink, void* context,
                                  bp_error_t* error);
} bp_graph_api_t;

struct bp_graph_t {
  uint32_t size;
  uint32_t flags; /* none defined */
  const bp_graph_api_t* api;
  uint64_t id; /* unique in the process: a graph with the same id has the same content */
  bp_text_t name;

  const bp_node_t* nodes; /* topological order */
  uint32_t node_count;
  uint32_t node_stride;
  const bp_value_t* values;
  uint32_t value_count;
  uint32_t value_stride;
  const bp_type_t* types;
  uint32_t type_count;
  uint32_t type_stride;
  const bp_attribute_t* attributes;
  uint32_t attribute_count;
  uint32_t attribute_stride;
  const bp_weight_t* weights;
  uint32_t weight_count;
  uint32_t weight_stride;
  const bp_symbol_t* symbols;
  uint32_t symbol_count;
  uint32_t symbol_stride;
  const bp_opset_t* opsets;
  uint32_t opset_count;
  uint32_t opset_stride;
  const bp_use_t* uses; /* this array and the next four have no stride: their element types never grow */
  const bp_dim_t* dims;
  const uint32_t* operands; /* value indices of the nodes' inputs and outputs */
  const uint32_t* inputs;   /* value indices */
  const uint32_t* outputs;  /* value indices */
  uint32_t use_count;
  uint32_t dim_count;
  uint32_t operand_count;
  uint32_t input_count;
  uint32_t output_count;
  uint32_t subgraph_count;
  const bp_graph_t* const* subgraphs; /* bodies of control-flow nodes */
  const bp_graph_t* parent;           /* NULL for the outermost graph */
  void* host;                         /* private to the host; plugins leave it alone */
  uint32_t ir_version;                /* the ONNX IR version that `serialize` writes */
  uint32_t reserved;
};

/* Access by index; `i` must be below the array's count. */
static inline const bp_node_t* bp_graph_node(const bp_graph_t* g, uint32_t i) {
  return (const bp_node_t*)((const char*)g->nodes + (uint64_t)i * g->node_stride);
}
static inline const bp_value_t* bp_graph_value(const bp_graph_t* g, uint32_t i) {
  return (const bp_value_t*)((const char*)g->values + (uint64_t)i * g->value_stride);
}
static inline const bp_type_t* bp_graph_type(const bp_graph_t* g, uint32_t i) {
  return (const bp_type_t*)((const char*)g->types + (uint64_t)i * g->type_stride);
}
static inline const bp_attribute_t* bp_graph_attribute(const bp_graph_t* g, uint32_t i) {
  return (const bp_attribute_t*)((const char*)g->attributes + (uint64_t)i * g->attribute_stride);
}
static inline const bp_weight_t* bp_graph_weight(const bp_graph_t* g, uint32_t i) {
  return (const bp_weight_t*)((const char*)g->weights + (uint64_t)i * g->weight_stride);
}
static inline const bp_symbol_t* bp_graph_symbol(const bp_graph_t* g, uint32_t i) {
  return (const bp_symbol_t*)((const char*)g->symbols + (uint64_t)i * g->symbol_stride);
}
static inline const bp_opset_t* bp_graph_opset(const bp_graph_t* g, uint32_t i) {
  return (const bp_opset_t*)((const char*)g->opsets + (uint64_t)i * g->opset_stride);
}
/* The value that is input or output `slot` of a node; BP_NONE if it is omitted or `slot` is beyond the count. */
static inline uint32_t bp_node_input(const bp_graph_t* g, const bp_node_t* n, uint32_t slot) {
  return slot < n->input_count ? g->operands[n->first_input + slot] : BP_NONE;
}
static inline uint32_t bp_node_output(const bp_graph_t* g, const bp_node_t* n, uint32_t slot) {
  return slot < n->output_count ? g->operands[n->first_output + slot] : BP_NONE;
}

BP_EXTERN_C_END

#endif
