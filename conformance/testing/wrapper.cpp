// SPDX-License-Identifier: Apache-2.0
// The build defines HONEST_PLUGIN as the path of the honest backend's library.
#include "testing/wrapper.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

namespace backplane::liar {
namespace {

const bp_plugin_t* honest = nullptr;
bp_plugin_t plugin;
bp_device_api_t device_api;
bp_coverage_api_t coverage_api;
bp_program_api_t program_api;
bp_instance_api_t instance_api;

std::mutex mutex;
struct Compiled {
  std::string op;
  uint32_t nodes = 0;
};
std::map<const bp_program_t*, Compiled> programs;
std::map<bp_instance_t*, Run> instances;
uint32_t running = 0;

std::string op_of(const bp_graph_t* graph, uint32_t node) {
  const bp_text_t op = bp_graph_node(graph, node)->op_type;
  return {op.data, op.size};
}

bp_status_t info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out_info, bp_error_t* error) {
  const bp_status_t status = honest->device->info(backend, index, out_info, error);
  if (status == BP_OK && kLie.info != nullptr) kLie.info(*out_info);
  return status;
}

struct Sink {
  const bp_coverage_sink_t* honest;
  const bp_graph_t* graph;
};

void verdicts(void* self, const bp_verdict_t* verdicts, uint32_t count, uint32_t stride) {
  const Sink& sink = *static_cast<Sink*>(self);
  for (uint32_t i = 0; i < count; ++i) {
    bp_verdict_t verdict{};
    std::memcpy(&verdict, reinterpret_cast<const char*>(verdicts) + uint64_t{i} * stride,
                std::min<size_t>(stride, sizeof verdict));
    kLie.verdict(op_of(sink.graph, verdict.node), verdict);
    sink.honest->verdicts(sink.honest->self, &verdict, 1, sizeof verdict);
  }
}

void groups(void* self, const bp_group_t* groups, uint32_t count, uint32_t stride) {
  const Sink& sink = *static_cast<Sink*>(self);
  sink.honest->groups(sink.honest->self, groups, count, stride);
}

bp_status_t query(bp_device_t* device, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                  bp_error_t* error) {
  if (kLie.verdict == nullptr) return honest->coverage->query(device, query, sink, error);
  Sink own = {sink, query->graph};
  const bp_coverage_sink_t passed = {.size = sizeof passed, .self = &own, .verdicts = verdicts, .groups = groups};
  return honest->coverage->query(device, query, &passed, error);
}

bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program, bp_error_t* error) {
  const std::string op = what != nullptr && what->graph->node_count != 0 ? op_of(what->graph, 0) : "";
  if (kLie.compile != nullptr) {
    if (const bp_status_t status = kLie.compile(op); status != BP_OK) {
      *out_program = nullptr;
      return status;
    }
  }
  const uint32_t nodes = what != nullptr ? what->graph->node_count : 0;
  if (kLie.compile_nodes != nullptr) {
    if (const bp_status_t status = kLie.compile_nodes(nodes); status != BP_OK) {
      *out_program = nullptr;
      return status;
    }
  }
  const bp_status_t status = honest->program->compile(device, what, out_program, error);
  const std::lock_guard lock(mutex);
  if (status == BP_OK) programs[*out_program] = {op, nodes};
  return status;
}

void destroy_program(bp_program_t* program) {
  {
    const std::lock_guard lock(mutex);
    programs.erase(program);
  }
  honest->program->destroy(program);
}

bp_status_t create(const bp_program_t* program, const bp_instance_create_t* how, bp_instance_t** out_instance,
                   bp_error_t* error) {
  const bp_status_t status = honest->instance->create(program, how, out_instance, error);
  const std::lock_guard lock(mutex);
  if (status == BP_OK) {
    instances[*out_instance].op = programs[program].op;
    instances[*out_instance].nodes = programs[program].nodes;
  }
  return status;
}

void destroy_instance(bp_instance_t* instance) {
  {
    const std::lock_guard lock(mutex);
    instances.erase(instance);
  }
  honest->instance->destroy(instance);
}

bp_status_t bind(bp_instance_t* instance, const bp_binding_t* binding, bp_error_t* error) {
  if (binding == nullptr || binding->tensor == nullptr) return honest->instance->bind(instance, binding, error);
  bp_binding_t passed = taken(*binding);
  bp_tensor_t tensor = taken(*binding->tensor);
  passed.tensor = &tensor;
  if (kLie.bind != nullptr) kLie.bind(tensor);
  bp_status_t status = honest->instance->bind(instance, &passed, error);
  if (status != BP_OK && kLie.bind_refused != nullptr && kLie.bind_refused()) return BP_OK;
  if (status != BP_OK || binding->slot >= BP_SLOT_SCRATCH) return status;
  const std::lock_guard lock(mutex);
  Run& run = instances[instance];
  std::vector<Bound>& bound = binding->slot >= BP_SLOT_OUTPUT ? run.outputs : run.inputs;
  const uint32_t slot = binding->slot % BP_SLOT_OUTPUT;
  if (bound.size() <= slot) bound.resize(slot + 1);
  bound[slot] = {tensor, {tensor.extents, tensor.extents + tensor.rank}};
  return status;
}

bp_status_t run(bp_instance_t* instance, const bp_run_t* settings, bp_error_t* error) {
  if (settings == nullptr) return honest->instance->run(instance, settings, error);
  Run* state;
  {
    const std::lock_guard lock(mutex);
    state = &instances[instance];
    state->together = ++running;
  }
  bp_run_t passed = taken(*settings);
  if (kLie.settings != nullptr) kLie.settings(passed);
  if (kLie.before != nullptr) kLie.before(*state);
  bp_status_t status = BP_OK;
  if (!kLie.skip && !(kLie.answered != nullptr && kLie.answered(*state)))
    status = honest->instance->run(instance, &passed, error);
  else if (passed.done != nullptr)
    passed.done(passed.self, BP_OK, nullptr);
  {
    const std::lock_guard lock(mutex);
    state->together = std::max(state->together, running--);
  }
  if (status == BP_OK && kLie.after != nullptr) kLie.after(*state);
  ++state->number;
  return status;
}

// Queries the honest plugin. Its library stays loaded for later queries.
const bp_plugin_t* ask(const bp_host_offer_t* offer) {
  static void* const kLibrary = dlopen(HONEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  static const auto kHonestQuery =
      kLibrary == nullptr ? nullptr : reinterpret_cast<bp_plugin_query_t>(dlsym(kLibrary, BP_PLUGIN_SYMBOL));
  return kHonestQuery == nullptr ? nullptr : kHonestQuery(offer);
}

}  // namespace

float as_half(float x) {
  if (std::isnan(x) || std::isinf(x)) return x;
  if (std::fabs(x) >= 65520) return std::copysign(INFINITY, x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const float step = std::ldexp(1.0f, std::max(exponent, -13) - 11);
  return std::nearbyint(x / step) * step;
}

void narrow_inputs(Run& run) {
  run.memory.clear();
  for (const Bound& input : run.inputs) {
    run.memory.emplace_back(input.bytes(), input.tensor.buffer.bytes);
    if (!input.is_float()) continue;
    for (uint64_t i = 0; i < input.count(); ++i) input.set(i, as_half(input.get(i)));
  }
}

void restore_inputs(Run& run) {
  for (size_t i = 0; i < run.memory.size(); ++i)
    std::memcpy(run.inputs[i].bytes(), run.memory[i].data(), run.memory[i].size());
}

}  // namespace backplane::liar

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  using namespace backplane::liar;
  if (kLie.load != nullptr) kLie.load();
  const bp_plugin_t* answer = ask(offer);
  if (answer == nullptr) return nullptr;
  if (answer->version == 0) return kLie.refusal != nullptr ? kLie.refusal(answer) : answer;
  honest = answer;
  plugin = taken(*honest);
  device_api = taken(*honest->device);
  coverage_api = taken(*honest->coverage);
  program_api = taken(*honest->program);
  instance_api = taken(*honest->instance);
  device_api.info = info;
  coverage_api.query = query;
  program_api.compile = compile;
  program_api.destroy = destroy_program;
  instance_api.create = create;
  instance_api.destroy = destroy_instance;
  instance_api.bind = bind;
  instance_api.run = run;
  plugin.id = kLieName;
  plugin.device = &device_api;
  plugin.coverage = &coverage_api;
  plugin.program = &program_api;
  plugin.instance = &instance_api;
  if (kLie.descriptor != nullptr) kLie.descriptor(plugin);
  return &plugin;
}
