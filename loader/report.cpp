// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <map>
#include <nlohmann/json.hpp>

#include "abi.h"
#include "model/import.h"
#include "ops/dtype.h"
#include "release.h"

namespace backplane {
namespace {

using json = nlohmann::ordered_json;

// Text from outside may be no UTF-8; it is shown with the broken bytes replaced.
std::string dump(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace); }

std::string version_text(uint32_t version) {
  return version ? std::to_string(BP_VERSION_MAJOR(version)) + "." + std::to_string(BP_VERSION_MINOR(version)) : std::string();
}

std::string_view refusal_name(uint32_t refusal) {
  constexpr std::string_view names[] = {
      "",                     "BP_REFUSED_MISSING",   "BP_REFUSED_MANIFEST", "BP_REFUSED_NOT_A_LIBRARY", "BP_REFUSED_ARCHITECTURE",
      "BP_REFUSED_LINK",      "BP_REFUSED_SYMBOL",    "BP_REFUSED_DESCRIPTOR", "BP_REFUSED_VERSION",     "BP_REFUSED_SANITIZER",
      "BP_REFUSED_BY_PLUGIN", "BP_REFUSED_ID",        "BP_REFUSED_DUPLICATE", "BP_REFUSED_DISABLED",     "BP_REFUSED_CRASHED",
      "BP_REFUSED_CREATE",    "BP_REFUSED_DEVICES"};
  return refusal < std::size(names) ? names[refusal] : "BP_REFUSED_MISSING";
}

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view names[] = {"unknown", "cpu", "gpu", "npu", "fpga", "other"};
  return kind < std::size(names) ? names[kind] : "unknown";
}

std::string_view value_kind_name(uint32_t kind) {
  constexpr std::string_view names[] = {"unknown", "tensor", "sparse_tensor", "sequence", "optional", "map"};
  return kind < std::size(names) ? names[kind] : "unknown";
}

std::string domain_name(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

json dtypes(bp_dtype_set_t set) {
  json names = json::array();
  for (bp_dtype_t dtype = 1; dtype < 64; ++dtype)
    if (set >> dtype & 1) names.push_back(std::string(ops::dtype_name(dtype)));
  return names;
}

json describe(const model::Graph& graph, model::ValueId id) {
  const model::Value& value = graph.values[id];
  const model::Type* type = &value.type;
  json out = {{"name", value.name}, {"kind", value_kind_name(type->kind)}};
  if (type->element) type = type->element.get();
  out["dtype"] = ops::dtype_name(type->dtype);
  if (type->rank < 0) {
    out["dims"] = nullptr;
    return out;
  }
  out["dims"] = json::array();
  for (const bp_dim_t& dim : type->dims) {
    if (dim.extent >= 0)
      out["dims"].push_back(dim.extent);
    else if (dim.symbol < graph.symbols.size())
      out["dims"].push_back(graph.symbols[dim.symbol].name);
    else
      out["dims"].push_back(nullptr);
  }
  return out;
}

json describe(const model::Graph& graph, const std::vector<model::ValueId>& values) {
  json list = json::array();
  for (model::ValueId value : values) list.push_back(describe(graph, value));
  return list;
}

void count_operators(const model::Graph& graph, std::map<std::string, uint64_t>& counts) {
  for (const model::Node& node : graph.nodes) ++counts[node.domain.empty() ? node.op_type : node.domain + "::" + node.op_type];
  for (const auto& inner : graph.subgraphs) count_operators(*inner, counts);
}

constexpr std::string_view answers[] = {"no", "yes", "conditional"};

}  // namespace

std::string report(const Environment& environment) {
  json out;
  out["loader"] = {{"version", release}, {"abi", version_text(BP_ABI_VERSION)}};
  out["candidates"] = json::array();
  for (const Candidate& c : environment.candidates())
    out["candidates"].push_back({{"id", c.id},
                                 {"library", c.library},
                                 {"manifest", c.manifest},
                                 {"found_by", c.found_by},
                                 {"accepted", c.refusal == BP_REFUSED_NONE},
                                 {"reason", refusal_name(c.refusal)},
                                 {"text", c.text},
                                 {"abi", version_text(c.version)},
                                 {"devices", c.device_count}});
  out["devices"] = json::array();
  for (const auto& device : environment.devices()) {
    const bp_device_info_t& info = device->info();
    out["devices"].push_back({{"index", device->index()},
                              {"name", device->name()},
                              {"backend", device->backend().id},
                              {"kind", kind_name(info.kind)},
                              {"description", abi::view(info.name)},
                              {"vendor", abi::view(info.vendor)},
                              {"driver", abi::view(info.driver)},
                              {"arch", abi::view(info.arch)},
                              {"memory_bytes", info.memory_bytes},
                              {"dtypes", dtypes(info.dtypes)}});
  }
  bp_topology_t topology{};
  topology.size = sizeof topology;
  if (environment.services().topology(topology).ok())
    out["topology"] = {{"cores", topology.core_count}, {"numa_nodes", topology.numa_count}, {"memory_bytes", topology.memory_bytes}};
  else
    out["topology"] = nullptr;
  return dump(out);
}

std::string report(const model::Model& model) {
  json out = {{"origin", model.origin},
              {"ir_version", model.ir_version},
              {"producer", model.producer},
              {"producer_version", model.producer_version}};
  out["opsets"] = json::object();
  for (const auto& [domain, version] : model.opsets) out["opsets"][domain_name(domain)] = version;
  out["canonical_opset"] = model::canonical_opset();
  out["inputs"] = describe(model.graph, model.graph.inputs);
  out["outputs"] = describe(model.graph, model.graph.outputs);
  std::map<std::string, uint64_t> counts;
  count_operators(model.graph, counts);
  out["operators"] = counts;
  out["nodes"] = model.graph.nodes.size();
  uint64_t bytes = 0, used = 0;
  for (const model::Value& value : model.graph.values) {
    if (value.weight == BP_NONE) continue;
    ++used;
    bytes += model.graph.weights[value.weight].bytes;
  }
  out["weights"] = {{"count", used}, {"bytes", bytes}};
  out["metadata"] = json::object();
  for (const auto& [key, value] : model.metadata) out["metadata"][key] = value;
  out["problems"] = model.problems;
  return dump(out);
}

std::string report(const Session& session) {
  const model::Graph& graph = session.model().graph;
  const Placement& placement = session.placement();
  const auto& coverage = session.coverage();
  json out;
  out["devices"] = json::array();
  for (const DeviceCoverage& device : coverage) out["devices"].push_back(device.device->name());
  double total = 0;
  out["islands"] = json::array();
  std::vector<uint32_t> maker(graph.values.size(), BP_NONE);
  for (uint32_t k = 0; k < placement.islands.size(); ++k) {
    const Program& program = *session.programs()[k];
    total += program.seconds;
    for (model::ValueId value : program.outputs) maker[value] = k;
    out["islands"].push_back({{"index", k},
                              {"device", program.device->name()},
                              {"nodes", placement.islands[k].nodes.size()},
                              {"seconds", program.seconds},
                              {"inputs", program.inputs.size()},
                              {"outputs", program.outputs.size()}});
  }
  out["nodes"] = json::array();
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    json entry = {{"index", i},
                  {"name", node.name},
                  {"op_type", node.op_type},
                  {"domain", domain_name(node.domain)},
                  {"device", coverage[placement.device[i]].device->name()},
                  {"island", placement.island[i]},
                  {"seconds", coverage[placement.device[i]].nodes[i].seconds}};
    if (!placement.pin[i].empty()) entry["pin"] = placement.pin[i];
    entry["verdicts"] = json::array();
    for (const DeviceCoverage& device : coverage) {
      const NodeVerdict& verdict = device.nodes[i];
      entry["verdicts"].push_back({{"device", device.device->name()},
                                   {"answer", verdict.answer < 3 ? answers[verdict.answer] : "no"},
                                   {"reason", reason_name(verdict.reason)},
                                   {"detail", verdict.detail}});
    }
    out["nodes"].push_back(std::move(entry));
  }
  // Values that pass from a device to another.
  out["copies"] = json::array();
  for (const auto& program : session.programs())
    for (model::ValueId value : program->inputs) {
      if (maker[value] == BP_NONE) continue;
      const Program& from = *session.programs()[maker[value]];
      if (from.device == program->device) continue;
      json dims = describe(graph, value)["dims"];
      uint64_t bytes = ops::dtype_bits(graph.values[value].type.dtype) / 8;
      for (const json& dim : dims) bytes = dim.is_number() ? bytes * dim.get<uint64_t>() : 0;
      out["copies"].push_back({{"value", graph.values[value].name},
                               {"from", from.device->name()},
                               {"to", program->device->name()},
                               {"bytes", dims.is_null() ? 0 : bytes}});
    }
  out["seconds"] = total;
  return dump(out);
}

}  // namespace backplane
