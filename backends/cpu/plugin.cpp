// SPDX-License-Identifier: Apache-2.0
// The C ABI of the CPU backend: the tables, and behind each slot one call into engine/.
#include "backplane/plugin.h"

#include <algorithm>
#include <memory>

#include "engine/coverage.h"
#include "engine/device.h"
#include "engine/fence.h"
#include "engine/instance.h"
#include "engine/program.h"
#include "engine/schedule.h"

namespace cpu = backplane::cpu;
using cpu::checked;
using cpu::fence;

struct bp_backend_t : cpu::Backend {
  using Backend::Backend;
};
struct bp_device_t : cpu::Device {
  using Device::Device;
};
struct bp_program_t : cpu::Program {
  using Program::Program;
};
struct bp_instance_t : cpu::Instance {
  using Instance::Instance;
};

namespace {

constexpr bp_text_t text(std::string_view view) {
  return {view.data(), view.size()};
}
std::string string(bp_text_t view) {
  return {view.data, view.size};
}

// No extension struct is known here: one that must be understood is refused, the others are skipped.
void check_chain(const bp_chain_t* chain) {
  for (; chain != nullptr; chain = chain->next)
    if (chain->required != 0)
      throw backplane::sdk::Error(BP_UNSUPPORTED,
                                  "extension '" + string(chain->extension) + "' is required and not known here");
}

// ---- devices

bp_status_t BP_CALL device_count(bp_backend_t* backend, uint32_t* out_count, bp_error_t* error) {
  return fence(backend->generation(), error, [&] { *out_count = 1; });
}

void check_index(uint32_t index) {
  if (index != 0)
    throw backplane::sdk::Error(
        BP_NOT_FOUND, "device " + std::to_string(index) + " does not exist; the cpu backend has device 0 only");
}

bp_status_t BP_CALL device_info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out_info, bp_error_t* error) {
  return fence(backend->generation(), error, [&] {
    check_index(index);
    const cpu::Processor& processor = backend->processor();
    bp_device_info_t info{};
    info.kind = BP_DEVICE_CPU;
    info.flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY;
    info.name = text(processor.name);
    info.vendor = text(processor.vendor);
    info.driver = text("1");
    info.arch = text(processor.arch);
    info.memory_bytes = processor.memory_bytes;
    info.launch_ns = 500;
    info.flops_fp32 = processor.flops_per_core * std::min(backend->threads(), processor.cores);
    info.dtypes = cpu::supported_dtypes();
    info.space_count = 1;
    cpu::write(out_info, info, "out_info");
  });
}

bp_status_t BP_CALL device_open(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how,
                                bp_device_t** out_device, bp_error_t* error) {
  *out_device = nullptr;
  return fence(backend->generation(), error, [&] {
    check_index(index);
    int threads = backend->threads();
    if (how != nullptr) {
      check_chain(checked(how, "how").chain);
      if (how->native != 0)
        throw backplane::sdk::Error(BP_UNSUPPORTED,
                                    "the cpu device has no native context to share; leave bp_device_open_t.native 0");
      for (uint32_t i = 0; i < how->option_count; ++i) {
        const auto& option = *reinterpret_cast<const bp_option_t*>(reinterpret_cast<const char*>(how->options) +
                                                                   uint64_t{i} * how->option_stride);
        if (string(option.name) != "threads")
          throw backplane::sdk::Error(
              BP_NOT_FOUND, "option '" + string(option.name) + "' is unknown; the cpu device knows 'threads'");
        threads = cpu::parse_threads(string(option.value));
      }
    }
    *out_device = new bp_device_t(*backend, threads);
  });
}

void BP_CALL device_close(bp_device_t* device) {
  // In the child of a fork the worker threads do not exist, and nobody can wait for them.
  if (device != nullptr && device->generation() != cpu::fork_generation()) return;
  delete device;
}

constexpr bp_device_api_t kDeviceApi = {
    sizeof(bp_device_api_t), 0, device_count, device_info, device_open, device_close, nullptr};

// ---- coverage

bp_status_t BP_CALL coverage_query(bp_device_t* device, const bp_coverage_query_t* query,
                                   const bp_coverage_sink_t* sink, bp_error_t* error) {
  return fence(device->generation(), error,
               [&] { cpu::cover(*device, checked(query, "query"), checked(sink, "sink")); });
}

const bp_coverage_api_t kCoverageApi = {sizeof(bp_coverage_api_t),
                                        static_cast<uint32_t>(cpu::newest_opsets().size()),
                                        cpu::newest_opsets().data(),
                                        sizeof(bp_opset_t),
                                        0,
                                        coverage_query,
                                        nullptr,
                                        nullptr,
                                        nullptr};

// ---- programs

// What compilation may ask but this backend does not know is refused, not ignored.
void check_compile(const bp_compile_t& what) {
  checked(what.graph, "graph");
  for (const bp_chain_t* link = what.chain; link != nullptr; link = link->next) {
    if (link->required == 1)
      throw backplane::sdk::Error(BP_UNSUPPORTED,
                                  "extension '" + string(link->extension) + "' is required but not known");
  }
  if (what.option_count != 0)
    throw backplane::sdk::Error(
        BP_NOT_FOUND, "option '" + string(what.options->name) + "' is unknown; compiling for the cpu has none");
}

bp_status_t BP_CALL program_compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program,
                                    bp_error_t* error) {
  *out_program = nullptr;
  return fence(device->generation(), error, [&] {
    check_compile(checked(what, "what"));
    check_chain(what->chain);
    *out_program = new bp_program_t(*device, *what);
  });
}

void BP_CALL program_destroy(bp_program_t* program) {
  delete program;
}

bp_status_t BP_CALL program_info(const bp_program_t* program, bp_program_info_t* out_info, bp_error_t* error) {
  return fence(program->device().generation(), error, [&] {
    bp_program_info_t info{};
    info.input_count = program->graph().input_count;
    info.output_count = program->graph().output_count;
    info.shapes = program->shapes();
    info.device_bytes = program->held_bytes();
    info.inplace = program->inplace().data();
    info.inplace_count = static_cast<uint32_t>(program->inplace().size());
    cpu::write(out_info, info, "out_info");
  });
}

bp_status_t BP_CALL program_output_extents(const bp_program_t* program, const bp_tensor_t* inputs, uint32_t input_count,
                                           uint32_t input_stride, uint32_t output, uint32_t* out_rank,
                                           int64_t* out_extents, bp_error_t* error) {
  return fence(program->device().generation(), error, [&] {
    const bp_graph_t& graph = program->graph();
    if (input_count != graph.input_count || output >= graph.output_count) {
      throw backplane::sdk::Error(BP_INVALID_ARGUMENT,
                                  "output " + std::to_string(output) + " for " + std::to_string(input_count) +
                                      " inputs was asked; the program has " + std::to_string(graph.output_count) +
                                      " outputs and " + std::to_string(graph.input_count) + " inputs");
    }
    std::vector<cpu::Shape> shapes;
    for (uint32_t i = 0; i < input_count; ++i) {
      const auto& input = checked(
          reinterpret_cast<const bp_tensor_t*>(reinterpret_cast<const char*>(inputs) + uint64_t{i} * input_stride),
          "input");
      if (input.rank > BP_MAX_RANK ||
          !program->admits(program->type_of(graph.inputs[i]), {input.extents, input.rank})) {
        throw backplane::sdk::Error(BP_TYPE_MISMATCH,
                                    "extents of input " + std::to_string(i) + " do not fit its declared type");
      }
      shapes.emplace_back(std::span<const int64_t>(input.extents, input.rank));
    }
    std::shared_ptr<const cpu::Schedule> schedule = program->schedule(shapes);
    if (!schedule->shaped[graph.outputs[output]])
      throw backplane::sdk::Error(BP_BAD_STATE,
                                  "the extents of output " + std::to_string(output) + " are known only during the run");
    const cpu::Shape& shape = schedule->values[graph.outputs[output]].shape;
    *out_rank = static_cast<uint32_t>(shape.rank());
    std::copy(shape.begin(), shape.end(), out_extents);
  });
}

constexpr bp_program_api_t kProgramApi = {sizeof(bp_program_api_t), 0, program_compile, program_destroy, program_info,
                                          program_output_extents};

// ---- instances

uint32_t generation(const bp_instance_t* instance) {
  return instance->program().device().generation();
}

bp_status_t BP_CALL instance_create(const bp_program_t* program, bp_instance_t** out_instance, bp_error_t* error) {
  *out_instance = nullptr;
  return fence(program->device().generation(), error, [&] { *out_instance = new bp_instance_t(*program); });
}

void BP_CALL instance_destroy(bp_instance_t* instance) {
  delete instance;
}

bp_status_t BP_CALL instance_bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
  return fence(generation(instance), error, [&] { instance->bind(checked(binding, "binding")); });
}

bp_status_t BP_CALL instance_extents(bp_instance_t* instance, uint32_t slot, uint32_t rank, const int64_t* extents,
                                     bp_error_t* error) {
  return fence(generation(instance), error, [&] { instance->set_extents(slot, rank, extents); });
}

bp_status_t BP_CALL instance_run(bp_instance_t* instance, const bp_run_t* run, bp_error_t* error) {
  return fence(generation(instance), error, [&] { instance->run(checked(run, "run")); });
}

constexpr bp_instance_api_t kInstanceApi = {
    sizeof(bp_instance_api_t), 0, instance_create, instance_destroy, instance_bind, instance_extents, instance_run};

// ---- the plugin

bp_status_t BP_CALL create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  *out_backend = nullptr;
  return fence(cpu::fork_generation(), error, [&] {
    check_chain(checked(how, "how").chain);
    *out_backend = new bp_backend_t(&checked(how->host, "host"));
  });
}

void BP_CALL destroy(bp_backend_t* backend) {
  delete backend;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr uint32_t kSanitizer = BP_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
constexpr uint32_t kSanitizer = BP_SANITIZER_THREAD;
#else
constexpr uint32_t kSanitizer = BP_SANITIZER_NONE;
#endif

constexpr bp_plugin_t descriptor(uint32_t version, bp_status_t refusal, std::string_view refusal_text) {
  bool good = refusal == BP_OK;
  return {sizeof(bp_plugin_t),
          version,
          BP_ABI_VERSION_MIN,
          BP_ABI_VERSION,
          kSanitizer,
          refusal,
          text(refusal_text),
          text("cpu"),
          text("CPU (oneDNN, oneTBB)"),
          text("Backplane"),
          text("0.1.0"),
          text("cpu-0.1.0"),
          good ? create : nullptr,
          good ? destroy : nullptr,
          nullptr,
          good ? &kDeviceApi : nullptr,
          good ? &kCoverageApi : nullptr,
          good ? &kProgramApi : nullptr,
          good ? &kInstanceApi : nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

constexpr bp_plugin_t kPlugin = descriptor(BP_ABI_VERSION, BP_OK, "");
constexpr bp_plugin_t kNoOffer =
    descriptor(0, BP_INVALID_ARGUMENT, "the host's offer is null or smaller than that of ABI 1.0");
constexpr bp_plugin_t kOtherVersion =
    descriptor(0, BP_INCOMPATIBLE, "the host and this plugin speak no common ABI version");
constexpr bp_plugin_t kOtherSanitizer =
    descriptor(0, BP_INCOMPATIBLE, "host and plugin were built with different sanitizers; build both alike");

}  // namespace

extern "C" const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  if (offer == nullptr || offer->size < BP_SIZE_1_0(bp_host_offer_t)) return &kNoOffer;
  if (offer->version_min > BP_ABI_VERSION || offer->version_max < BP_ABI_VERSION_MIN) return &kOtherVersion;
  if (offer->sanitizer != kSanitizer) return &kOtherSanitizer;
  return &kPlugin;
}
