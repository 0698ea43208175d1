// SPDX-License-Identifier: Apache-2.0
// Programs and stored programs.
#include "partial_backend/device.h"

namespace backplane::partial {
namespace {

using sdk::Error;

// Has the graph serialized as an ONNX model, and checks that the model begins with its first field, the IR version.
void parse(const bp_graph_t& graph) {
  std::string model;
  const bp_text_sink_t append = [](void* to, bp_text_t piece) {
    static_cast<std::string*>(to)->append(piece.data, piece.size);
  };
  sdk::Detail detail;
  const bp_status_t status = graph.api->serialize(&graph, UINT64_MAX, append, &model, detail.get());
  if (status == BP_UNSUPPORTED) return;
  detail.check(status, "the graph cannot be serialized as an ONNX model");
  constexpr char kIrVersion = 0x08;
  if (!model.starts_with(kIrVersion)) throw Error(BP_INTERNAL, "the serialized graph is not an ONNX model");
}

Program* make(Device& device, const bp_compile_t* what, bp_error_t* error) {
  device.check();
  bp_compile_t asked = sdk::read(what, "what");
  asked.options = nullptr;
  asked.option_count = 0;
  if (device.script().parses) parse(*what->graph);
  auto program = std::make_unique<Program>();
  program->device = &device;
  program->translated = std::make_unique<Translated>(*what->graph);
  asked.graph = program->translated->graph();
  program->nodes = what->graph->node_count;
  program->outputs = what->graph->output_count;
  pass(cpu->program->compile(device.inner, &asked, &program->inner, error));
  if (const auto& fault = device.script().fault) {
    for (uint32_t i = 0; i < what->graph->node_count; ++i) {
      const bp_node_t* node = bp_graph_node(what->graph, i);
      if (std::string_view(node->name.data, node->name.size) == fault->node) program->fault_node = node->id;
    }
  }
  ++device.counters().programs;
  return program.release();
}

bp_status_t BP_CALL compile(bp_device_t* handle, const bp_compile_t* what, bp_program_t** out, bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    Device& device = of(handle);
    device.called();
    ++device.counters().compiles_begun;
    take_time(device.script().compile_us);
    if (device.script().held == "compile") wait_for_test(device.counters());
    *out = reinterpret_cast<bp_program_t*>(make(device, what, error));
    ++device.counters().compiles;
  });
}

void BP_CALL destroy(bp_program_t* handle) {
  if (handle == nullptr) return;
  const auto* program = reinterpret_cast<Program*>(handle);
  program->device->called();
  cpu->program->destroy(program->inner);
  --program->device->counters().programs;
  delete program;
}

bp_status_t BP_CALL info(const bp_program_t* handle, bp_program_info_t* out, bp_error_t* error) {
  of(handle).device->called();
  const bp_status_t status = cpu->program->info(of(handle).inner, out, error);
  if (status == BP_OK) out->scratch_bytes = of(handle).device->script().scratch;
  return status;
}

bp_status_t BP_CALL output_extents(const bp_program_t* handle, const bp_shape_query_t* query, bp_shape_t* out_shapes,
                                   bp_error_t* error) {
  const Device& device = *of(handle).device;
  device.called();
  const uint64_t number = ++device.counters().shape_queries;
  const bp_status_t status = cpu->program->output_extents(of(handle).inner, query, out_shapes, error);
  if (status == BP_OK && number >= device.script().forgets)
    for (size_t o = 0; o < of(handle).outputs; ++o)
      reinterpret_cast<bp_shape_t*>(reinterpret_cast<char*>(out_shapes) + o * query->output_stride)->rank = BP_NONE;
  return status;
}

// ---- stored programs: a header and a body with a checksum. Loading one compiles the graph again.

struct Blob {
  char magic[8];
  uint64_t sum;  // checksum of the members below
  uint64_t nodes;
  char stamp[32];
  char body[4096];
};
constexpr char kMagic[8] = {'p', 'a', 'r', 't', 'i', 'a', 'l', '1'};

uint64_t sum_of(const Blob& blob) {
  uint64_t sum = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&blob.nodes);
  for (const auto* end = reinterpret_cast<const unsigned char*>(&blob + 1); bytes != end; ++bytes)
    sum = (sum + *bytes) * 0x100000001b3u;
  return sum;
}

uint32_t judge(const Device& device, bp_bytes_t bytes, std::string& reason) {
  Blob blob;
  if (bytes.size != sizeof blob) {
    reason = "it has " + std::to_string(bytes.size) + " bytes, but stored programs have " + std::to_string(sizeof blob);
    return BP_CACHE_UNUSABLE;
  }
  std::memcpy(&blob, bytes.data, sizeof blob);
  if (std::memcmp(blob.magic, kMagic, sizeof kMagic) != 0 || blob.sum != sum_of(blob)) {
    reason = "it is damaged: its first bytes or its checksum are wrong";
    return BP_CACHE_UNUSABLE;
  }
  const Script& script = device.script();
  if (script.cache == "recompile" || script.stamp != blob.stamp) {
    reason = "it was compiled by version " + std::string(blob.stamp) + ", this device has version " + script.stamp;
    return BP_CACHE_RECOMPILE;
  }
  return script.cache == "usable" ? BP_CACHE_USABLE : BP_CACHE_EXACT;
}

bp_status_t BP_CALL serialize(const bp_program_t* handle, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fence(error, [&] {
    const Program& program = of(handle);
    program.device->called();
    const Script& script = program.device->script();
    if (script.cache == "0") throw Error(BP_UNSUPPORTED, "programs of this device are not stored: partial.cache is 0");
    Blob blob{};
    std::memcpy(blob.magic, kMagic, sizeof kMagic);
    blob.nodes = program.nodes;
    script.stamp.copy(blob.stamp, sizeof blob.stamp - 1);
    for (size_t i = 0; i < sizeof blob.body; ++i) blob.body[i] = static_cast<char>(draw(blob.nodes, i));
    blob.sum = sum_of(blob);
    const auto* bytes = reinterpret_cast<const char*>(&blob);
    sink(context, {bytes, 100});
    sink(context, {bytes + 100, sizeof blob - 100});
  });
}

bp_status_t BP_CALL validate(bp_device_t* handle, bp_bytes_t blob, uint32_t* out_answer, bp_error_t* error) {
  std::string reason;
  of(handle).called();
  *out_answer = judge(of(handle), blob, reason);
  if (!reason.empty()) sdk::report(error, BP_OK, reason);
  return BP_OK;
}

bp_status_t BP_CALL deserialize(bp_device_t* handle, const bp_compile_t* what, bp_bytes_t blob, bp_program_t** out,
                                bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    Device& device = of(handle);
    device.called();
    std::string reason;
    const uint32_t answer = judge(device, blob, reason);
    if (answer == BP_CACHE_UNUSABLE) throw Error(BP_CORRUPT, reason);
    if (answer == BP_CACHE_RECOMPILE) throw Error(BP_STALE, reason);
    *out = reinterpret_cast<bp_program_t*>(make(device, what, error));
    ++device.counters().deserializations;
  });
}

}  // namespace

const bp_program_api_t kProgramApi = {
    .size = sizeof(bp_program_api_t),
    .compile = compile,
    .destroy = destroy,
    .info = info,
    .output_extents = output_extents,
};

const bp_cache_api_t kCacheApi = {
    .size = sizeof(bp_cache_api_t),
    .serialize = serialize,
    .validate = validate,
    .deserialize = deserialize,
};

}  // namespace backplane::partial
