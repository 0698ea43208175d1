// SPDX-License-Identifier: Apache-2.0
// A backend without faults, whose behavior a test controls through options (defaults in parentheses):
//   fake.devices  number of devices (1)
//   fake.ops      operators that it claims, separated by commas ("Identity")
//   fake.fails    operators that it claims but fails to compile (none)
//   fake.infer    the output types it reports: "same" as the first input, "none" (unknown operator), "wrong" ("none")
//   fake.compute  compute types that it claims to use, a number (0)
//   fake.grouped  number of atomic groups for each node that it claims; only the groups have the compute types (0)
//   fake.most     the largest extent of the graph's first symbol that it computes (0: any)
//   fake.pci      PCI addresses of its devices, separated by commas (none)
//   fake.uuid     UUIDs of its devices: up to 16 letters each, separated by commas (none)
//   fake.opset    newest operator set of its devices, by coverage.opsets (0: that of the backend, 1000)
//   fake.must     1: output 0 of a program has to be bound to the buffer of input 0 (0)
//   fake.open_ms  milliseconds that opening a device takes (0)
// Its extension "compiled" is a text with one line for each node that it compiled.
// A copy of the plugin file with a name of the form known….so takes its id from that name.
// The backend computes nothing: each node returns its first input, which is correct only for Identity.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backplane/plugin.h"

struct bp_backend_t {
  uint32_t devices = 1;
  std::string ops = "Identity", fails, infer;
  std::vector<std::string> pci, uuid;
  uint32_t compute = 0, grouped = 0, opset = 0, must = 0, open_ms = 0;
  int64_t most = 0;
  std::mutex mutex;
  std::string compiled;
};

struct bp_device_t {
  bp_backend_t* backend;
  bp_opset_t opset{};
};

struct Source {
  uint32_t input = BP_NONE;  // index of a graph input; BP_NONE: a constant
  const void* data = nullptr;
  uint64_t bytes = 0;
  std::vector<int64_t> extents;
};

struct bp_program_t {
  uint32_t inputs;
  std::vector<Source> outputs;
  bool in_place = false;
};

struct bp_instance_t {
  const bp_program_t* program;
  std::map<uint32_t, bp_buffer_t> bound;  // by slot
};

namespace {

std::string_view view(bp_text_t text) {
  return {text.data, text.size};
}

template <size_t kSize>
constexpr bp_text_t text(const char (&literal)[kSize]) {
  return {literal, kSize - 1};
}

std::string option(const bp_host_t* host, bp_text_t name, std::string otherwise) {
  bp_text_t value{};
  return host->option(host, name, &value) == BP_OK ? std::string(view(value)) : std::move(otherwise);
}

bool contains(const std::string& list, std::string_view op) {
  return ("," + list + ",").find("," + std::string(op) + ",") != std::string::npos;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin < list.size(); begin += items.back().size() + 1)
    items.push_back(list.substr(begin, list.find(',', begin) - begin));
  return items;
}

// Describes a node as "my.Scale:wide 'call' alpha=3 2->1": overload, name and integer attributes (if the node has any),
// then the numbers of inputs and outputs.
std::string describe(const bp_graph_t* graph, const bp_node_t& node) {
  std::string words(view(node.domain));
  if (!words.empty()) words += '.';
  words += view(node.op_type);
  if (node.overload.size) words += ":" + std::string(view(node.overload));
  if (node.name.size) words += " '" + std::string(view(node.name)) + "'";
  for (uint32_t i = 0; i < node.attribute_count; ++i) {
    const bp_attribute_t& attribute = *bp_graph_attribute(graph, node.first_attribute + i);
    if (attribute.type != BP_ATTR_INT) continue;
    words +=
        " " + std::string(view(attribute.name)) + "=" + std::to_string(*static_cast<const int64_t*>(attribute.data));
  }
  return words + " " + std::to_string(node.input_count) + "->" + std::to_string(node.output_count) + "\n";
}

char* address(const bp_buffer_t& buffer) {
  return static_cast<char*>(buffer.address) + buffer.offset;
}

// Returns the graph input or constant that the value is a copy of.
Source trace(const bp_graph_t* graph, uint32_t value) {
  const bp_value_t* v = bp_graph_value(graph, value);
  while (v->producer != BP_NONE) v = bp_graph_value(graph, bp_node_input(graph, bp_graph_node(graph, v->producer), 0));
  Source source;
  if (v->weight == BP_NONE) {
    source.input = v->slot;
    return source;
  }
  const bp_weight_t* weight = bp_graph_weight(graph, v->weight);
  graph->api->weight_map(graph, v->weight, &source.data, nullptr);
  source.bytes = weight->bytes;
  for (uint32_t i = 0; i < weight->rank; ++i) source.extents.push_back(graph->dims[weight->first_dim + i].extent);
  return source;
}

const bp_device_api_t kDeviceApi = {
    .size = sizeof(bp_device_api_t),
    .count = [](bp_backend_t* backend, uint32_t* out_count, bp_error_t*) -> bp_status_t {
      *out_count = backend->devices;
      return BP_OK;
    },
    .info = [](bp_backend_t* backend, uint32_t index, bp_device_info_t* out, bp_error_t*) -> bp_status_t {
      if (index >= backend->devices) return BP_NOT_FOUND;
      bp_device_info_t info{};
      info.size = out->size;
      info.index = index;
      info.kind = BP_DEVICE_OTHER;
      info.flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY | BP_DEVICE_DETERMINISTIC;
      info.name = text("a device that computes nothing");
      info.vendor = text("Backplane tests");
      info.dtypes = ~bp_dtype_set_t{1};
      if (index < backend->pci.size()) info.pci = {backend->pci[index].data(), backend->pci[index].size()};
      if (index < backend->uuid.size())
        std::copy_n(backend->uuid[index].data(), std::min(backend->uuid[index].size(), sizeof info.uuid), info.uuid);
      std::memcpy(out, &info, std::min<size_t>(out->size, sizeof info));
      return BP_OK;
    },
    .open = [](bp_backend_t* backend, uint32_t, const bp_device_open_t*, bp_device_t** out,
               bp_error_t*) -> bp_status_t {
      std::this_thread::sleep_for(std::chrono::milliseconds(backend->open_ms));
      *out = new bp_device_t{backend};
      return BP_OK;
    },
    .close = [](bp_device_t* device) { delete device; },
};

const bp_opset_t kOpsets[] = {{text(""), 1000, 0}};

const bp_coverage_api_t kCoverageApi = {
    .size = sizeof(bp_coverage_api_t),
    .newest_opset_count = 1,
    .newest_opsets = kOpsets,
    .newest_opset_stride = sizeof(bp_opset_t),
    .query = [](bp_device_t* device, const bp_coverage_query_t* query, const bp_coverage_sink_t* sink,
                bp_error_t*) -> bp_status_t {
      const uint32_t count = query->nodes ? query->node_count : query->graph->node_count;
      for (uint32_t i = 0; i < count; ++i) {
        bp_verdict_t verdict{};
        verdict.node = query->nodes ? query->nodes[i] : i;
        const bool yes = contains(device->backend->ops, view(bp_graph_node(query->graph, verdict.node)->op_type));
        verdict.answer = yes ? BP_ANSWER_YES : BP_ANSWER_NO;
        verdict.reason = yes ? BP_REASON_NONE : BP_REASON_OPERATOR;
        verdict.compute_types = yes && device->backend->grouped == 0 ? device->backend->compute : 0;
        const bp_range_t range{0, 0, 0, device->backend->most};
        if (yes && range.max != 0 && query->graph->symbol_count != 0) {
          verdict.answer = BP_ANSWER_CONDITIONAL;
          verdict.ranges = &range;
          verdict.range_count = 1;
        }
        verdict.detail = yes ? bp_text_t{} : text("it is not in the script");
        bp_group_t group{};
        group.nodes = &verdict.node;
        group.node_count = 1;
        group.flags = BP_GROUP_ATOMIC;
        group.compute_types = device->backend->compute;
        for (uint32_t i = 0; yes && i < device->backend->grouped; ++i)
          sink->groups(sink->self, &group, 1, sizeof group);
        sink->verdicts(sink->self, &verdict, 1, sizeof verdict);
      }
      return BP_OK;
    },
    .infer = [](bp_device_t* device, const bp_infer_t* what, const bp_infer_sink_t* sink, bp_error_t*) -> bp_status_t {
      const bp_graph_t* graph = what->graph;
      const std::string& how = device->backend->infer;
      if (how == "none") return BP_UNSUPPORTED;
      const bp_node_t* node = bp_graph_node(graph, what->node);
      const bp_type_t* type = bp_graph_type(graph, bp_graph_value(graph, bp_node_input(graph, node, 0))->type);
      for (uint32_t slot = 0; slot < node->output_count; ++slot)
        sink->output(sink->self, slot, type->dtype, how == "wrong" ? 99 : type->rank, graph->dims + type->first_dim);
      return BP_OK;
    },
    .opsets = [](bp_device_t* device, bp_opsets_t* out, bp_error_t*) -> bp_status_t {
      device->opset = kOpsets[0];
      if (device->backend->opset != 0) device->opset.version = device->backend->opset;
      out->ir_version = 9;
      out->opsets = &device->opset;
      out->opset_count = 1;
      out->opset_stride = sizeof device->opset;
      return BP_OK;
    },
};

const bp_program_api_t kProgramApi = {
    .size = sizeof(bp_program_api_t),
    .compile = [](bp_device_t* device, const bp_compile_t* what, bp_program_t** out, bp_error_t* error) -> bp_status_t {
      bp_backend_t& backend = *device->backend;
      const std::lock_guard lock(backend.mutex);
      for (uint32_t i = 0; i < what->graph->node_count; ++i) {
        const bp_node_t& node = *bp_graph_node(what->graph, i);
        if (contains(backend.fails, view(node.op_type))) {
          error->node = node.id;
          return BP_UNSUPPORTED;
        }
        backend.compiled += describe(what->graph, node);
      }
      auto* program = new bp_program_t{what->graph->input_count, {}, backend.must != 0};
      for (uint32_t i = 0; i < what->graph->output_count; ++i)
        program->outputs.push_back(trace(what->graph, what->graph->outputs[i]));
      *out = program;
      return BP_OK;
    },
    .destroy = [](bp_program_t* program) { delete program; },
    .info = [](const bp_program_t* program, bp_program_info_t* out, bp_error_t*) -> bp_status_t {
      bp_program_info_t info{};
      info.size = out->size;
      info.input_count = program->inputs;
      info.output_count = static_cast<uint32_t>(program->outputs.size());
      info.shapes = BP_SHAPES_COMPUTED;
      static constexpr bp_inplace_t kPair = {0, 0, BP_DONATE_MUST, 0};
      if (program->in_place) info.inplace = &kPair, info.inplace_count = 1;
      std::memcpy(out, &info, std::min<size_t>(out->size, sizeof info));
      return BP_OK;
    },
    .output_extents = [](const bp_program_t* program, const bp_shape_query_t* query, bp_shape_t* out_shapes,
                         bp_error_t*) -> bp_status_t {
      for (size_t i = 0; i < program->outputs.size(); ++i) {
        const Source& source = program->outputs[i];
        auto& shape = *reinterpret_cast<bp_shape_t*>(reinterpret_cast<char*>(out_shapes) + i * query->output_stride);
        const int64_t* extents = source.extents.data();
        shape.rank = static_cast<uint32_t>(source.extents.size());
        if (source.input != BP_NONE) {
          const auto* input = reinterpret_cast<const bp_tensor_t*>(reinterpret_cast<const char*>(query->inputs) +
                                                                   size_t{source.input} * query->input_stride);
          extents = input->extents;
          shape.rank = input->rank;
        }
        std::copy_n(extents, shape.rank, shape.extents);
      }
      return BP_OK;
    },
};

const bp_instance_api_t kInstanceApi = {
    .size = sizeof(bp_instance_api_t),
    .create = [](const bp_program_t* program, const bp_instance_create_t*, bp_instance_t** out,
                 bp_error_t*) -> bp_status_t {
      *out = new bp_instance_t{program, {}};
      return BP_OK;
    },
    .destroy = [](bp_instance_t* instance) { delete instance; },
    .bind = [](bp_instance_t* instance, const bp_binding_t* binding, bp_error_t*) -> bp_status_t {
      if (!binding->tensor) return BP_UNSUPPORTED;
      instance->bound[binding->slot] = binding->tensor->buffer;
      return BP_OK;
    },
    .extents = [](bp_instance_t*, const bp_slot_extents_t*, uint32_t, uint32_t, bp_error_t*) -> bp_status_t {
      return BP_OK;
    },
    .run = [](bp_instance_t* instance, const bp_run_t*, bp_error_t*) -> bp_status_t {
      if (instance->program->in_place && address(instance->bound[0]) != address(instance->bound[BP_SLOT_OUTPUT]))
        return BP_INVALID_ARGUMENT;
      for (uint32_t i = 0; i < instance->program->outputs.size(); ++i) {
        const Source& source = instance->program->outputs[i];
        const auto to = instance->bound.find(BP_SLOT_OUTPUT + i);
        const auto from = instance->bound.find(source.input);
        if (to == instance->bound.end() || (source.input != BP_NONE && from == instance->bound.end()))
          return BP_BAD_STATE;
        const void* data = source.input == BP_NONE ? source.data : address(from->second);
        const uint64_t bytes = source.input == BP_NONE ? source.bytes : from->second.bytes;
        std::memmove(address(to->second), data, std::min(bytes, to->second.bytes));
      }
      return BP_OK;
    },
};

const bp_plugin_t kPlugin = {
    .size = sizeof(bp_plugin_t),
    .version = BP_ABI_VERSION,
    .version_min = BP_ABI_VERSION_MIN,
    .version_max = BP_ABI_VERSION,
#if defined(__SANITIZE_ADDRESS__)
    .sanitizer = BP_SANITIZER_ADDRESS,
#elif defined(__SANITIZE_THREAD__)
    .sanitizer = BP_SANITIZER_THREAD,
#endif
    .id = text("fake"),
    .name = text("a backend for tests"),
    .vendor = text("Backplane tests"),
    .release = text("1"),
    .create = [](const bp_backend_create_t* how, bp_backend_t** out, bp_error_t*) -> bp_status_t {
      auto* backend = new bp_backend_t;
      backend->devices = static_cast<uint32_t>(std::atoi(option(how->host, text("devices"), "1").c_str()));
      backend->ops = option(how->host, text("ops"), "Identity");
      backend->fails = option(how->host, text("fails"), "");
      backend->most = std::atoi(option(how->host, text("most"), "0").c_str());
      backend->pci = split(option(how->host, text("pci"), ""));
      backend->uuid = split(option(how->host, text("uuid"), ""));
      backend->infer = option(how->host, text("infer"), "none");
      backend->compute = static_cast<uint32_t>(std::atoi(option(how->host, text("compute"), "0").c_str()));
      backend->grouped = static_cast<uint32_t>(std::atoi(option(how->host, text("grouped"), "0").c_str()));
      backend->must = static_cast<uint32_t>(std::atoi(option(how->host, text("must"), "0").c_str()));
      backend->open_ms = static_cast<uint32_t>(std::atoi(option(how->host, text("open_ms"), "0").c_str()));
      backend->opset = static_cast<uint32_t>(std::atoi(option(how->host, text("opset"), "0").c_str()));
      *out = backend;
      return BP_OK;
    },
    .destroy = [](bp_backend_t* backend) { delete backend; },
    .get_extension = [](bp_backend_t* backend, bp_text_t name, uint32_t version) -> const void* {
      return view(name) == "compiled" && version == 1 ? backend->compiled.c_str() : nullptr;
    },
    .device = &kDeviceApi,
    .coverage = &kCoverageApi,
    .program = &kProgramApi,
    .instance = &kInstanceApi,
};

}  // namespace

// Lets a test have many backends: a copy of the plugin file with a name of the form known….so takes its id from that
// name.
bp_plugin_t plugin_of_this_file() {
  bp_plugin_t plugin = kPlugin;
  Dl_info info{};
  if (dladdr(&kPlugin, &info) == 0) return plugin;
  static std::string stem;
  stem = info.dli_fname;
  stem = stem.substr(stem.rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  if (stem.starts_with("known")) plugin.id = {stem.data(), stem.size()};
  return plugin;
}

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t*) {
  static const bp_plugin_t kOfThisFile = plugin_of_this_file();
  return &kOfThisFile;
}
