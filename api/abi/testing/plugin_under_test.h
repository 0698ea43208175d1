// SPDX-License-Identifier: Apache-2.0
// For tests that use a plugin only through the C ABI: a small hand-built graph, and a loaded plugin with an open
// device.
#pragma once

#include <dlfcn.h>

#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "backplane/graph.hpp"
#include "backplane/plugin.h"
#include "backplane/sdk/tables.hpp"

namespace backplane::testing {

// A bp_error_t with a text buffer, for one call.
struct Detail {
  bp_error_t error{};
  char buffer[500];
  Detail() {
    error.size = sizeof error;
    error.node = BP_NO_NODE;
    error.text = buffer;
    error.text_capacity = sizeof buffer;
  }
  std::string text() const { return std::string(buffer, std::min<uint64_t>(error.text_size, sizeof buffer)); }
};

// A graph of tensors, built in topological order. An input of BP_NONE is omitted.
class TinyGraph {
 public:
  uint32_t input(const std::string& name, const std::vector<int64_t>& extents, bp_dtype_t dtype = BP_DTYPE_FLOAT) {
    const uint32_t v = value(name, extents, dtype);
    inputs_.push_back(v);
    return v;
  }
  uint32_t weight(const std::string& name, const std::vector<int64_t>& extents, const std::vector<float>& data) {
    return weight(name, extents, BP_DTYPE_FLOAT, data.data(), data.size() * sizeof(float));
  }
  uint32_t integers(const std::string& name, const std::vector<int64_t>& data) {
    return weight(name, {static_cast<int64_t>(data.size())}, BP_DTYPE_INT64, data.data(),
                  data.size() * sizeof(int64_t));
  }
  uint32_t integers32(const std::string& name, const std::vector<int32_t>& data) {
    return weight(name, {static_cast<int64_t>(data.size())}, BP_DTYPE_INT32, data.data(),
                  data.size() * sizeof(int32_t));
  }
  // `bits` are of FLOAT16 or BFLOAT16.
  uint32_t short_float(const std::string& name, bp_dtype_t dtype, uint16_t bits) {
    return weight(name, {}, dtype, &bits, sizeof bits);
  }
  uint32_t node(const std::string& op, uint32_t since, std::vector<uint32_t> inputs,
                const std::vector<int64_t>& extents, bp_dtype_t dtype = BP_DTYPE_FLOAT) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    const uint32_t y = value(op + std::to_string(index), extents, dtype);
    bp_node_t n{};
    n.op_type = keep(op);
    n.name = keep("node" + std::to_string(index));
    n.id = 100 + index;
    n.since_version = since;
    n.first_input = static_cast<uint32_t>(operands_.size());
    n.input_count = static_cast<uint32_t>(inputs.size());
    operands_.insert(operands_.end(), inputs.begin(), inputs.end());
    n.first_output = static_cast<uint32_t>(operands_.size());
    n.output_count = 1;
    operands_.push_back(y);
    values_[y].producer = index;
    values_[y].slot = 0;
    nodes_.push_back(n);
    return y;
  }
  void output(uint32_t v) { outputs_.push_back(v); }
  // Adds an attribute to the latest node.
  void attribute(const std::string& name, int64_t value) { attribute(name, BP_ATTR_INT, ints_.emplace_back(1, value)); }
  void attribute(const std::string& name, const std::vector<int64_t>& values) {
    attribute(name, BP_ATTR_INTS, ints_.emplace_back(values));
  }
  void attribute(const std::string& name, float value) {
    attribute(name, BP_ATTR_FLOAT, floats_.emplace_back(1, value));
  }
  void attribute(const std::string& name, const char* value) {
    attribute(name, BP_ATTR_STRING, strings_.emplace_back(1, keep(value)));
  }

  const bp_graph_t* get() {
    static const bp_graph_api_t kApi = [] {
      bp_graph_api_t a{};
      a.size = sizeof a;
      a.weight_consumed = [](const bp_graph_t*, uint32_t) {};
      return a;
    }();
    graph_ = {};
    graph_.size = sizeof graph_;
    graph_.api = &kApi;
    graph_.id = 1;
    set(nodes_, graph_.nodes, graph_.node_count, graph_.node_stride);
    set(values_, graph_.values, graph_.value_count, graph_.value_stride);
    set(types_, graph_.types, graph_.type_count, graph_.type_stride);
    set(weights_, graph_.weights, graph_.weight_count, graph_.weight_stride);
    set(attributes_, graph_.attributes, graph_.attribute_count, graph_.attribute_stride);
    graph_.dims = dims_.data();
    graph_.dim_count = static_cast<uint32_t>(dims_.size());
    graph_.operands = operands_.data();
    graph_.operand_count = static_cast<uint32_t>(operands_.size());
    graph_.inputs = inputs_.data();
    graph_.input_count = static_cast<uint32_t>(inputs_.size());
    graph_.outputs = outputs_.data();
    graph_.output_count = static_cast<uint32_t>(outputs_.size());
    return &graph_;
  }

 private:
  // Copies the data to an unaligned address, because weights in a mapped file may be unaligned too.
  uint32_t weight(const std::string& name, const std::vector<int64_t>& extents, bp_dtype_t dtype, const void* data,
                  uint64_t size) {
    const uint32_t v = value(name, extents, dtype);
    std::string& bytes = texts_.emplace_back(" " + std::string(static_cast<const char*>(data), size));
    bp_weight_t w{};
    w.dtype = dtype;
    w.rank = static_cast<uint32_t>(extents.size());
    w.first_dim = types_[values_[v].type].first_dim;
    w.bytes = size;
    w.data = bytes.data() + 1;
    values_[v].weight = static_cast<uint32_t>(weights_.size());
    weights_.push_back(w);
    return v;
  }
  template <class T>
  void attribute(const std::string& name, uint32_t type, const std::vector<T>& data) {
    bp_node_t& node = nodes_.back();
    if (node.attribute_count++ == 0) node.first_attribute = static_cast<uint32_t>(attributes_.size());
    attributes_.push_back({keep(name), type, static_cast<uint32_t>(data.size()), data.data()});
  }
  bp_text_t keep(const std::string& s) { return view::text(texts_.emplace_back(s)); }
  uint32_t value(const std::string& name, const std::vector<int64_t>& extents, bp_dtype_t dtype) {
    types_.push_back(
        {BP_KIND_TENSOR, dtype, static_cast<int32_t>(extents.size()), static_cast<uint32_t>(dims_.size()), BP_NONE, 0});
    for (const int64_t e : extents) dims_.push_back({e, BP_NONE, 0});
    bp_value_t v{};
    v.name = keep(name);
    v.type = static_cast<uint32_t>(types_.size() - 1);
    v.producer = v.slot = v.weight = v.outer = BP_NONE;
    values_.push_back(v);
    return static_cast<uint32_t>(values_.size() - 1);
  }
  template <class T>
  static void set(const std::vector<T>& from, const T*& data, uint32_t& count, uint32_t& stride) {
    data = from.data();
    count = static_cast<uint32_t>(from.size());
    stride = sizeof(T);
  }

  std::deque<std::string> texts_;
  std::vector<bp_node_t> nodes_;
  std::vector<bp_value_t> values_;
  std::vector<bp_type_t> types_;
  std::vector<bp_weight_t> weights_;
  std::vector<bp_attribute_t> attributes_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<bp_text_t>> strings_;
  std::vector<bp_dim_t> dims_;
  std::vector<uint32_t> operands_, inputs_, outputs_;
  bp_graph_t graph_{};
};

// A loaded plugin with its backend and its first device, opened. `device` is NULL if the backend has no device. The
// host provides only the given slots.
class PluginUnderTest {
 public:
  explicit PluginUnderTest(const std::string& path, const bp_host_t& slots = {}) : host_(slots) {
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) throw std::runtime_error(dlerror());
    query = reinterpret_cast<bp_plugin_query_t>(dlsym(library_, BP_PLUGIN_SYMBOL));
    if (query == nullptr) throw std::runtime_error(path + " lacks " BP_PLUGIN_SYMBOL);
    bp_host_offer_t offer{};
    offer.size = sizeof offer;
    offer.version_min = BP_ABI_VERSION_MIN;
    offer.version_max = BP_ABI_VERSION;
    offer.sanitizer = sdk::kSanitizer;
    plugin = query(&offer);
    host_.size = sizeof host_;
    host_.version = plugin->version;
    bp_backend_create_t how{};
    how.size = sizeof how;
    how.host = &host_;
    Detail d;
    if (plugin->create(&how, &backend, &d.error) != BP_OK) throw std::runtime_error(d.text());
    uint32_t count = 0;
    if (plugin->device->count(backend, &count, &d.error) != BP_OK) throw std::runtime_error(d.text());
    if (count == 0) return;
    if (plugin->device->open(backend, 0, nullptr, &device, &d.error) != BP_OK) throw std::runtime_error(d.text());
  }
  ~PluginUnderTest() {
    plugin->device->close(device);
    plugin->destroy(backend);
    dlclose(library_);
  }
  PluginUnderTest(const PluginUnderTest&) = delete;
  PluginUnderTest& operator=(const PluginUnderTest&) = delete;

  struct Answer {
    uint32_t answer;
    uint32_t reason;
    std::string detail;
  };
  std::map<uint32_t, Answer> coverage(const bp_graph_t* graph) {
    std::map<uint32_t, Answer> answers;
    bp_coverage_query_t query{};
    query.size = sizeof query;
    query.graph = graph;
    bp_coverage_sink_t sink{};
    sink.size = sizeof sink;
    sink.self = &answers;
    sink.verdicts = [](void* self, const bp_verdict_t* v, uint32_t count, uint32_t stride) {
      for (uint32_t i = 0; i < count; ++i) {
        const auto& verdict =
            *reinterpret_cast<const bp_verdict_t*>(reinterpret_cast<const char*>(v) + uint64_t{i} * stride);
        (*static_cast<std::map<uint32_t, Answer>*>(self))[verdict.node] = {verdict.answer, verdict.reason,
                                                                           std::string(view::text(verdict.detail))};
      }
    };
    sink.groups = [](void*, const bp_group_t*, uint32_t, uint32_t) {};
    Detail d;
    if (plugin->coverage->query(device, &query, &sink, &d.error) != BP_OK) throw std::runtime_error(d.text());
    return answers;
  }
  bp_status_t compile(const bp_graph_t* graph, bp_program_t** out, Detail& detail) {
    bp_compile_t what{};
    what.size = sizeof what;
    what.graph = graph;
    return plugin->program->compile(device, &what, out, &detail.error);
  }
  bp_status_t bind(bp_instance_t* instance, uint32_t slot, std::vector<int64_t> extents, std::vector<float>& data,
                   Detail& detail) {
    bp_tensor_t tensor{};
    tensor.size = sizeof tensor;
    tensor.dtype = BP_DTYPE_FLOAT;
    tensor.rank = static_cast<uint32_t>(extents.size());
    tensor.extents = extents.data();
    tensor.buffer.address = data.data();
    tensor.buffer.bytes = data.size() * sizeof(float);
    bp_binding_t binding{};
    binding.size = sizeof binding;
    binding.slot = slot;
    binding.tensor = &tensor;
    return plugin->instance->bind(instance, &binding, &detail.error);
  }
  bp_status_t run(bp_instance_t* instance, Detail& detail) {
    bp_run_t run{};
    run.size = sizeof run;
    return plugin->instance->run(instance, &run, &detail.error);
  }

  bp_plugin_query_t query = nullptr;
  const bp_plugin_t* plugin = nullptr;
  bp_backend_t* backend = nullptr;
  bp_device_t* device = nullptr;

 private:
  void* library_ = nullptr;
  bp_host_t host_;
};

}  // namespace backplane::testing
