/* SPDX-License-Identifier: Apache-2.0
 * A complete plugin in plain C. It supports Relu and Add on float tensors that all have the same static shape, in host
 * memory. Each island has one node. */
#include "backplane/plugin.h"

#include <stdlib.h>
#include <string.h>

#include "backplane/sizes.h"

#define TEXT(s) \
  { s, sizeof(s) - 1 }
#ifndef SANITIZER /* the build defines it for sanitizers: host and plugin must use the same one */
#define SANITIZER BP_SANITIZER_NONE
#endif
/* Definitions of the handles, which are opaque to the host. An island has one node, because `review` splits larger
 * ones. */
struct bp_backend_t {
  int nothing;
};
struct bp_device_t {
  int nothing;
};
struct bp_program_t {
  const bp_graph_t* graph; /* lives as long as the program */
};
struct bp_instance_t {
  const bp_graph_t* graph;
  float* slots[3]; /* inputs 0 and 1, the output */
};
static bp_status_t fail(bp_error_t* error, bp_status_t status, uint64_t node, const char* text) {
  if (error == NULL) return status;
  const bp_error_t known = {.size = error->size,
                            .status = status,
                            .node = node,
                            .text = error->text,
                            .text_capacity = error->text_capacity,
                            .text_size = strlen(text)};
  memcpy(error, &known, error->size < sizeof known ? error->size : sizeof known);
  if (error->text != NULL)
    memcpy(error->text, text, known.text_size < known.text_capacity ? known.text_size : known.text_capacity);
  return status;
}
static const bp_type_t* type_of(const bp_graph_t* g, uint32_t value) {
  return bp_graph_type(g, bp_graph_value(g, value)->type);
}
static int64_t extent(const bp_graph_t* g, const bp_type_t* t, int32_t i) {
  return g->dims[t->first_dim + (uint32_t)i].extent;
}
static int is(const bp_node_t* n, const char* op) {
  return n->domain.size == 0 && n->since_version == 14 && n->op_type.size == strlen(op) &&
         !memcmp(n->op_type.data, op, n->op_type.size);
}
/* Decides whether a node is supported: returns BP_REASON_NONE or the reason why not. Coverage reports the result, and
 * compile checks it again. */
static uint32_t refusal(const bp_graph_t* g, const bp_node_t* n) {
  if (!is(n, "Relu") && !is(n, "Add")) return BP_REASON_OPERATOR;
  const bp_type_t* y = type_of(g, bp_node_output(g, n, 0));
  for (uint32_t i = 0; i < n->input_count; ++i) {
    const uint32_t value = bp_node_input(g, n, i);
    const bp_type_t* x = type_of(g, value);
    if (bp_graph_value(g, value)->weight != BP_NONE) return BP_REASON_CONSTANT;
    if (x->kind != BP_KIND_TENSOR || x->dtype != BP_DTYPE_FLOAT) return BP_REASON_DTYPE;
    if (x->rank < 0 || x->rank != y->rank) return BP_REASON_SHAPE;
    for (int32_t d = 0; d < x->rank; ++d)
      if (extent(g, x, d) < 0 || extent(g, x, d) != extent(g, y, d)) return BP_REASON_SHAPE;
  }
  return BP_REASON_NONE;
}
static bp_status_t BP_CALL count(bp_backend_t* backend, uint32_t* out_count, bp_error_t* error) {
  *out_count = 1;
  return BP_OK;
}
static bp_status_t BP_CALL info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out, bp_error_t* error) {
  const bp_device_info_t device = {.size = out->size,
                                   .kind = BP_DEVICE_OTHER,
                                   .name = TEXT("A device in plain C"),
                                   .flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY,
                                   .dtypes = 1u << BP_DTYPE_FLOAT};
  if (index != 0) return fail(error, BP_NOT_FOUND, BP_NO_NODE, "c_sample has one device, number 0");
  if (out->size < BP_SIZE_1_0(bp_device_info_t))
    return fail(error, BP_INVALID_ARGUMENT, BP_NO_NODE, "out_info.size is below that of ABI 1.0");
  memcpy(out, &device, out->size < sizeof device ? out->size : sizeof device);
  return BP_OK;
}
static bp_status_t BP_CALL open(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how, bp_device_t** out,
                                bp_error_t* e) {
  static bp_device_t device; /* it has no state */
  *out = &device;
  return BP_OK;
}
static void BP_CALL close_device(bp_device_t* device) {}
static bp_status_t BP_CALL query(bp_device_t* device, const bp_coverage_query_t* q, const bp_coverage_sink_t* sink,
                                 bp_error_t* error) {
  for (uint32_t i = 0; i < (q->nodes == NULL ? q->graph->node_count : q->node_count); ++i) {
    bp_verdict_t verdict = {
        .node = q->nodes == NULL ? i : q->nodes[i],
        .detail = TEXT("only Relu and Add of float tensors with equal static shapes are supported")};
    verdict.reason = refusal(q->graph, bp_graph_node(q->graph, verdict.node));
    verdict.answer = verdict.reason == BP_REASON_NONE ? BP_ANSWER_YES : BP_ANSWER_NO;
    sink->verdicts(sink->self, &verdict, 1, sizeof verdict);
  }
  return BP_OK;
}
static bp_status_t BP_CALL review(bp_device_t* device, const bp_compile_t* what, bp_review_t* out, bp_error_t* error) {
  const bp_graph_t* island = what->graph;
  out->answer = island->node_count == 1 ? BP_REVIEW_ACCEPT : BP_REVIEW_SPLIT;
  for (uint32_t i = 0; i < island->node_count && out->answer == BP_REVIEW_SPLIT; ++i)
    out->split(out->split_self, &i, 1);
  return BP_OK;
}
static bp_status_t BP_CALL compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out,
                                   bp_error_t* error) {
  const bp_node_t* node = bp_graph_node(what->graph, 0);
  *out = NULL;
  if (what->graph->node_count != 1 || refusal(what->graph, node) != BP_REASON_NONE)
    return fail(error, BP_UNSUPPORTED, node->id, "c_sample compiles one covered node at a time");
  if ((*out = malloc(sizeof **out)) == NULL)
    return fail(error, BP_RESOURCE_EXHAUSTED, BP_NO_NODE, "out of host memory");
  (*out)->graph = what->graph;
  return BP_OK;
}
static void BP_CALL program_destroy(bp_program_t* program) {
  free(program);
}
static bp_status_t BP_CALL program_info(const bp_program_t* program, bp_program_info_t* out, bp_error_t* error) {
  const bp_program_info_t known = {.size = out->size, .input_count = program->graph->input_count, .output_count = 1};
  if (out->size < BP_SIZE_1_0(bp_program_info_t))
    return fail(error, BP_INVALID_ARGUMENT, BP_NO_NODE, "out_info.size is below that of ABI 1.0");
  memcpy(out, &known, out->size < sizeof known ? out->size : sizeof known);
  return BP_OK;
}
static bp_status_t BP_CALL create_instance(const bp_program_t* program, const bp_instance_create_t* how,
                                           bp_instance_t** out, bp_error_t* error) {
  if ((*out = calloc(1, sizeof **out)) == NULL)
    return fail(error, BP_RESOURCE_EXHAUSTED, BP_NO_NODE, "out of host memory");
  (*out)->graph = program->graph;
  return BP_OK;
}
static void BP_CALL destroy_instance(bp_instance_t* instance) {
  free(instance);
}
static uint64_t elements(const bp_graph_t* g) {
  const bp_type_t* y = type_of(g, g->outputs[0]);
  uint64_t n = 1;
  for (int32_t i = 0; i < y->rank; ++i) n *= (uint64_t)extent(g, y, i);
  return n;
}
static bp_status_t BP_CALL bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
  const bp_tensor_t* t = binding->tensor;
  const int output = binding->slot == BP_SLOT_OUTPUT;
  if (!output && binding->slot >= instance->graph->input_count)
    return fail(error, BP_INVALID_ARGUMENT, BP_NO_NODE, "the slot does not exist");
  if (t == NULL || t->dtype != BP_DTYPE_FLOAT)
    return fail(error, BP_TYPE_MISMATCH, BP_NO_NODE, "c_sample binds only float tensors");
  if (t->layout != BP_LAYOUT_DENSE || t->buffer.memory != NULL)
    return fail(error, BP_UNSUPPORTED, BP_NO_NODE, "c_sample binds only dense tensors in host memory");
  if (t->buffer.bytes / sizeof(float) < elements(instance->graph))
    return fail(error, BP_BUFFER_TOO_SMALL, BP_NO_NODE, "the tensor's memory is too small");
  instance->slots[output ? 2 : binding->slot] = (float*)((char*)t->buffer.address + t->buffer.offset);
  return BP_OK;
}
static bp_status_t BP_CALL run(bp_instance_t* instance, const bp_run_t* how, bp_error_t* error) {
  const bp_graph_t* g = instance->graph;
  const bp_node_t* n = bp_graph_node(g, 0);
  const uint64_t size = elements(g);
  float *a = instance->slots[bp_node_input(g, n, 0) == g->inputs[0] ? 0 : 1], *y = instance->slots[2];
  float* b = n->input_count < 2 ? a : instance->slots[bp_node_input(g, n, 1) == g->inputs[0] ? 0 : 1];
  if (size != 0 && (!a || !b || !y))
    return fail(error, BP_BAD_STATE, n->id, "a slot has no memory: bind every slot before the run");
  if (how->wait_count + how->signal_count != 0)
    return fail(error, BP_UNSUPPORTED, BP_NO_NODE,
                "c_sample has no semaphores: wait before the run and signal after it");
  for (uint64_t k = 0; k < size; ++k) y[k] = n->input_count == 2 ? a[k] + b[k] : a[k] < 0 ? 0 : a[k];
  if (how->done != NULL) how->done(how->self, BP_OK, NULL);
  return BP_OK;
}
static bp_status_t BP_CALL create(const bp_backend_create_t* how, bp_backend_t** out, bp_error_t* error) {
  static bp_backend_t backend; /* it has no state */
  *out = &backend;
  return BP_OK;
}
static void BP_CALL destroy(bp_backend_t* backend) {}
static const bp_opset_t kOpset = {.version = 27};
static const bp_device_api_t kDevices = {
    .size = sizeof kDevices, .count = count, .info = info, .open = open, .close = close_device};
static const bp_coverage_api_t kCoverage = {.size = sizeof kCoverage,
                                            .newest_opset_count = 1,
                                            .newest_opsets = &kOpset,
                                            .newest_opset_stride = sizeof kOpset,
                                            .query = query,
                                            .review = review};
static const bp_program_api_t kPrograms = {
    .size = sizeof kPrograms, .compile = compile, .destroy = program_destroy, .info = program_info};
static const bp_instance_api_t kInstances = {
    .size = sizeof kInstances, .create = create_instance, .destroy = destroy_instance, .bind = bind, .run = run};
#define COMMON \
  .size = sizeof(bp_plugin_t), .version_min = BP_ABI_VERSION, .version_max = BP_ABI_VERSION, .id = TEXT("c_sample")
static const bp_plugin_t kPlugin = {COMMON,
                                    .version = BP_ABI_VERSION,
                                    .name = TEXT("C sample"),
                                    .release = TEXT("1.0"),
                                    .create = create,
                                    .destroy = destroy,
                                    .device = &kDevices,
                                    .coverage = &kCoverage,
                                    .program = &kPrograms,
                                    .instance = &kInstances,
                                    .sanitizer = SANITIZER};
static const bp_plugin_t kRefused = {
    COMMON, .refusal = BP_INCOMPATIBLE,
    .refusal_text = TEXT("c_sample and the host support different versions of the ABI")};
BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  return offer != NULL && offer->version_min <= BP_ABI_VERSION && offer->version_max >= BP_ABI_VERSION ? &kPlugin
                                                                                                       : &kRefused;
}
