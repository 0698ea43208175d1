// SPDX-License-Identifier: Apache-2.0
#include "coverage/types.h"

#include <algorithm>

#include "base/abi.h"
#include "base/callback.h"
#include "ops/infer/infer.h"

namespace backplane {
namespace {

using model::Graph;
using model::Model;
using model::Type;

// Counts the known parts of a type. Each new piece of information raises the count.
uint64_t knowledge(const Type& type) {
  if (type.kind == 0) return 0;
  uint64_t known = 1 + (type.dtype != BP_DTYPE_UNDEFINED) + (type.rank >= 0);
  for (const bp_dim_t& dim : type.dims) known += dim.extent >= 0 ? 2 : dim.symbol != BP_NONE;
  return known;
}

// Implements bp_infer_sink_t.
struct InferSink {
  std::vector<Type>& outputs;
  size_t symbols;
  std::string problem;
  CallbackGuard callbacks = {};

  void output(uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims) {
    if (slot >= outputs.size()) {
      problem = "there is no output " + std::to_string(slot);
    } else if (dtype > BP_DTYPE_INT2) {
      problem = "output " + std::to_string(slot) + " has data type " + std::to_string(dtype) + ", which is unknown";
    } else if (rank < -1 || rank > BP_MAX_RANK || (rank > 0 && !dims)) {
      problem = "output " + std::to_string(slot) + " has rank " + std::to_string(rank) +
                (rank > 0 && !dims ? " and no extents" : ", out of range");
    } else {
      Type type{BP_KIND_TENSOR, dtype, rank, {}, nullptr};
      for (int32_t i = 0; i < rank; ++i) {
        const bool number = dims[i].extent >= 0;
        const bool symbol = !number && dims[i].symbol < symbols;
        type.dims.push_back({number ? dims[i].extent : -1, symbol ? dims[i].symbol : BP_NONE, 0});
      }
      outputs[slot] = std::move(type);
    }
  }
};

// Queries the device for the types of a node's outputs. Types that the device cannot infer stay unknown.
Status query_types(const DeviceCoverage& device, const std::shared_ptr<const Model>& model, const Graph& graph,
                   uint32_t n, std::vector<Type>& outputs) {
  if (device.device->given_up()) return device.device->lost();
  const auto view = model::View::node(model, graph, n, device.device->newest());
  InferSink reported{outputs, model->graph.symbols.size(), {}, {}};
  bp_infer_sink_t sink{};
  sink.size = sizeof sink;
  sink.self = &reported;
  sink.output = [](void* self, uint32_t slot, bp_dtype_t dtype, int32_t rank, const bp_dim_t* dims) {
    InferSink& sink = *static_cast<InferSink*>(self);
    sink.callbacks.run([&] { sink.output(slot, dtype, rank, dims); });
  };
  PluginError error;
  bp_infer_t what{};
  what.size = sizeof what;
  what.graph = view->abi();
  what.option_stride = sizeof(bp_option_t);
  const bp_status_t code = device.device->backend().plugin->coverage->infer(device.handle, &what, &sink, error.get());
  reported.callbacks.rethrow();
  if (code == BP_UNSUPPORTED) {
    outputs.assign(outputs.size(), {});
    return {};
  }
  const std::string where = graph.nodes[n].label() + ": device '" + device.device->name() + "'";
  BP_TRY(error.status(code, where));
  if (!reported.problem.empty()) return {BP_INTERNAL, where + " reported impossible output types: " + reported.problem};
  return {};
}

}  // namespace

Result<bool> learn_types(std::shared_ptr<const Model>& model, const std::vector<DeviceCoverage>& coverage) {
  const auto can_tell = [](const DeviceCoverage& device) {
    return !device.foreign.empty() && device.device->backend().plugin->coverage->infer;
  };
  if (std::ranges::none_of(coverage, can_tell)) return false;

  const std::shared_ptr<Model> typed = model::copy(*model);
  std::vector<std::pair<const Type*, uint64_t>> asked;  // each type, and knowledge() of it before the query
  ops::Inference how;
  how.fold = false;
  how.foreign = [&](const Graph& graph, uint32_t n, std::vector<Type>& outputs) -> Status {
    const model::Node& node = graph.nodes[n];
    const auto device = std::ranges::find_if(
        coverage, [&](const DeviceCoverage& one) { return can_tell(one) && one.foreign.contains(node.id); });
    if (device == coverage.end()) return {};
    for (const model::ValueId output : node.outputs)
      if (output != BP_NONE) asked.emplace_back(&graph.values[output].type, knowledge(graph.values[output].type));
    return query_types(*device, typed, graph, n, outputs);
  };
  BP_TRY(ops::infer(*typed, how));
  if (std::ranges::none_of(asked, [](const auto& one) { return knowledge(*one.first) > one.second; })) return false;
  model = typed;
  return true;
}

}  // namespace backplane
