// SPDX-License-Identifier: Apache-2.0
#include "session/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/abi.h"
#include "base/dtype.h"
#include "base/release.h"
#include "import/import.h"
#include "ops/schema/schema.h"

namespace backplane {
namespace {

using json = nlohmann::ordered_json;

// Replaces invalid bytes, because strings from outside need not be UTF-8.
std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string version_text(uint32_t version) {
  return version ? std::to_string(BP_VERSION_MAJOR(version)) + "." + std::to_string(BP_VERSION_MINOR(version))
                 : std::string();
}

std::string_view refusal_name(uint32_t refusal) {
  constexpr std::string_view kNames[] = {"",
                                         "BP_REFUSED_MISSING",
                                         "BP_REFUSED_MANIFEST",
                                         "BP_REFUSED_NOT_A_LIBRARY",
                                         "BP_REFUSED_ARCHITECTURE",
                                         "BP_REFUSED_LINK",
                                         "BP_REFUSED_SYMBOL",
                                         "BP_REFUSED_DESCRIPTOR",
                                         "BP_REFUSED_VERSION",
                                         "BP_REFUSED_SANITIZER",
                                         "BP_REFUSED_BY_PLUGIN",
                                         "BP_REFUSED_ID",
                                         "BP_REFUSED_DUPLICATE",
                                         "BP_REFUSED_DISABLED",
                                         "BP_REFUSED_CRASHED",
                                         "BP_REFUSED_CREATE",
                                         "BP_REFUSED_DEVICES",
                                         "BP_REFUSED_UNTRUSTED",
                                         "BP_REFUSED_UNTRIED"};
  return refusal < std::size(kNames) ? kNames[refusal] : "BP_REFUSED_MISSING";
}

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"unknown", "cpu", "gpu", "npu", "fpga", "other"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

std::string_view value_kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"unknown", "tensor", "sparse_tensor", "sequence", "optional", "map"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

std::string domain_name(const std::string& domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

json dtypes(bp_dtype_set_t set) {
  json names = json::array();
  for (bp_dtype_t dtype = 1; dtype < 64; ++dtype)
    if (set >> dtype & 1) names.push_back(std::string(dtype_name(dtype)));
  return names;
}

json describe(const model::Graph& graph, model::ValueId id) {
  const model::Value& value = graph.values[id];
  const model::Type* type = &value.type;
  json out = {{"name", value.name}, {"kind", value_kind_name(type->kind)}};
  if (type->element) type = type->element.get();
  out["dtype"] = dtype_name(type->dtype);
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
  for (const model::Node& node : graph.nodes)
    ++counts[node.domain.empty() ? node.op_type : node.domain + "::" + node.op_type];
  for (const auto& inner : graph.subgraphs) count_operators(*inner, counts);
}

// A JSON object with keys from a model. A later member replaces an earlier one with the same key, in its position.
// operator[] is not used, because it searches linearly.
class Members {
 public:
  void set(const std::string& key, json value) {
    auto& object = object_.get_ref<json::object_t&>();
    const auto [place, added] = places_.try_emplace(key, object.size());
    if (added)
      object.emplace_back(key, std::move(value));
    else
      object.begin()[static_cast<std::ptrdiff_t>(place->second)].second = std::move(value);
  }
  json take() { return std::move(object_); }

 private:
  json object_ = json::object();
  std::map<std::string, size_t, std::less<>> places_;
};

constexpr std::string_view kAnswers[] = {"no", "yes", "conditional"};

std::string device_name(const Session& session, uint32_t device) {
  return device == BP_NONE ? std::string("host") : session.coverage()[device].device->name();
}

json islands(const Session& session) {
  const std::vector<Island>& placed = session.placement().islands;
  json list = json::array();
  for (uint32_t k = 0; k < placed.size(); ++k) {
    const Program& program = *session.programs()[k];
    list.push_back({{"index", k},
                    {"device", program.device->name()},
                    {"nodes", placed[k].nodes.size()},
                    {"seconds", program.seconds},
                    {"launch_seconds", placed[k].launch_seconds},
                    {"inputs", program.inputs.size()},
                    {"outputs", program.outputs.size()}});
    if (!program.cache.empty()) list.back()["cache"] = program.cache;
    if (!program.cache_reason.empty()) list.back()["cache_reason"] = program.cache_reason;
  }
  return list;
}

// The extents that cost estimates assume for the inputs' named dimensions, where the session leaves them open.
json assumed(const model::Graph& graph) {
  Members extents;
  for (const model::ValueId input : graph.inputs) {
    for (const bp_dim_t& dim : graph.values[input].type.dims) {
      if (dim.extent >= 0 || dim.symbol >= graph.symbols.size()) continue;
      const model::Symbol& symbol = graph.symbols[dim.symbol];
      if (symbol.min != symbol.max) extents.set(symbol.name, expected_extent(graph, dim));
    }
  }
  return extents.take();
}

// Each device's share of a run's arithmetic operations.
json arithmetic(const Session& session) {
  const model::Graph& graph = session.model().graph;
  const Placement& placement = session.placement();
  std::vector<double> done(session.coverage().size());
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (placement.device[i] != BP_NONE && placement.island[i] != BP_NONE)
      done[placement.device[i]] += operations(graph, graph.nodes[i]);
  const double all = std::accumulate(done.begin(), done.end(), 0.0);
  json shares = json::object();
  for (uint32_t d = 0; d < done.size() && all > 0; ++d) shares[device_name(session, d)] = done[d] / all;
  return shares;
}

// The verdict of device d on node i, and the cost of the node there.
json verdict_entry(const Session& session, uint32_t i, uint32_t d) {
  const Placement& placement = session.placement();
  const NodeVerdict verdict = session.verdict(i, d);
  const double seconds = placement.seconds[i * session.coverage().size() + d];
  json entry = {{"device", device_name(session, d)},
                {"answer", verdict.answer < 3 ? kAnswers[verdict.answer] : "no"},
                {"reason", reason_name(verdict.reason)},
                {"detail", verdict.detail}};
  if (verdict.usable() && std::isfinite(seconds)) {
    entry["seconds"] = seconds;
    entry["source"] = source_name(verdict.source);
  }
  return entry;
}

json node_entry(const Session& session, uint32_t i) {
  const model::Graph& graph = session.model().graph;
  const Placement& placement = session.placement();
  const auto& coverage = session.coverage();
  const model::Node& node = graph.nodes[i];
  const uint32_t device = placement.device[i];
  json entry = {{"index", i},
                {"name", node.name},
                {"op_type", node.op_type},
                {"domain", domain_name(node.domain)},
                {"since_version", node.since_version},
                {"device", nullptr},
                {"island", nullptr},
                {"seconds", 0}};
  if (device != BP_NONE) {
    entry["device"] = device_name(session, device);
    if (placement.island[i] != BP_NONE) entry["island"] = placement.island[i];
    entry["seconds"] = placement.seconds[i * coverage.size() + device];
  }
  if (!placement.pin[i].empty()) entry["pin"] = placement.pin[i];
  // The function call, around this node, that the device runs as a whole.
  const uint64_t call = device == BP_NONE ? BP_NO_NODE : coverage[device].nodes[i].call;
  for (uint32_t c = node.call; call != BP_NO_NODE && c != BP_NONE; c = graph.calls[c].caller)
    if (graph.calls[c].node.id == call) entry["call"] = graph.calls[c].node.label();
  entry["verdicts"] = json::array();
  for (uint32_t d = 0; d < coverage.size(); ++d) entry["verdicts"].push_back(verdict_entry(session, i, d));
  return entry;
}

// Lists the copies between devices. Devices that share memory need none.
json copies(const Session& session) {
  json list = json::array();
  for (const Copy& copy : session.placement().copies)
    list.push_back({{"value", session.model().graph.values[copy.value].name},
                    {"from", device_name(session, copy.from)},
                    {"to", device_name(session, copy.to)},
                    {"bytes", static_cast<uint64_t>(std::min(copy.bytes, 0x1p63))},
                    {"seconds", copy.seconds},
                    {"source", source_name(copy.source)}});
  return list;
}

// Lists nodes that another device would compute faster, and by how much the total time would grow if they ran there.
json savings(const Session& session) {
  const Placement& placement = session.placement();
  json list = json::array();
  for (const MissedSpeedup& saving : placement.missed_speedups)
    list.push_back({{"island", saving.island},
                    {"device", device_name(session, placement.islands[saving.island].device)},
                    {"instead_of", device_name(session, saving.instead_of)},
                    {"nodes", saving.nodes},
                    {"seconds", saving.seconds}});
  return list;
}

}  // namespace

std::string report(const Environment& environment) {
  json out;
  out["loader"] = {{"version", kRelease}, {"abi", version_text(BP_ABI_VERSION)}};
  out["searched"] = json::array();
  for (const SearchPath& path : environment.search_paths())
    out["searched"].push_back({{"place", path.found_by}, {"path", path.path.string()}});
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
    out["topology"] = {
        {"cores", topology.core_count}, {"numa_nodes", topology.numa_count}, {"memory_bytes", topology.memory_bytes}};
  else
    out["topology"] = nullptr;
  return dump(out);
}

std::string report(const model::Model& model) {
  json out = {{"origin", model.origin},
              {"ir_version", model.ir_version},
              {"producer", model.producer},
              {"producer_version", model.producer_version}};
  Members opsets, read_as, metadata;
  for (const auto& [domain, version] : model.opsets) opsets.set(domain_name(domain), version);
  out["opsets"] = opsets.take();
  out["canonical_opset"] = model::canonical_opset();
  // The opset to which the nodes of each domain are upgraded. Domains without an entry are not upgraded.
  for (const auto& [domain, version] : model.opsets)
    if (const uint32_t newest = ops::newest_opset(domain)) read_as.set(domain_name(domain), newest);
  out["read_as"] = read_as.take();
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
  for (const auto& [key, value] : model.metadata) metadata.set(key, value);
  out["metadata"] = metadata.take();
  out["problems"] = model.problems;
  return dump(out);
}

std::string report(const Session& session) {
  const Placement& placement = session.placement();
  json out;
  out["devices"] = json::array();
  for (const DeviceCoverage& device : session.coverage()) out["devices"].push_back(device.device->name());
  out["assumed"] = assumed(session.model().graph);
  out["islands"] = islands(session);
  out["arithmetic"] = arithmetic(session);
  out["faults"] = session.faults();
  out["nodes"] = json::array();
  out["uncovered"] = json::array();  // indices in "nodes"
  for (uint32_t i = 0; i < session.model().graph.nodes.size(); ++i) {
    out["nodes"].push_back(node_entry(session, i));
    if (placement.device[i] == BP_NONE) out["uncovered"].push_back(i);
  }
  out["copies"] = copies(session);
  out["savings"] = savings(session);
  double compute = 0;  // seconds, as reported in review or estimated; 0 if the model cannot run
  if (out["uncovered"].empty())
    for (uint32_t k = 0; k < placement.islands.size(); ++k) compute += session.programs()[k]->seconds;
  const double copied = placement.cost.copies, launches = placement.cost.launches;
  out["cost"] = {{"compute", compute}, {"copies", copied}, {"launches", launches}};
  out["seconds"] = compute + copied + launches;
  return dump(out);
}

}  // namespace backplane
