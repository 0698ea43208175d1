// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "ir/hash.h"
#include "ir/subgraphs.h"
#include "ops/schema/schema.h"
#include "view/serialize.h"

namespace backplane::model {
namespace {

bp_text_t text(std::string_view view) {
  return {view.data(), view.size()};
}

using Opsets = std::map<std::string, uint32_t>;

// The arrays of one graph. Each subgraph has its own.
class Arrays {
 public:
  struct Shared {
    std::shared_ptr<const Model> model;
    std::vector<bp_symbol_t> symbols;
    std::vector<bp_opset_t> opsets;
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const Opsets*>
        functions;  // the opset imports of each function, by its domain, name and overload
    const KnownOpsets& known;
    const Refit& refit;
    const WholeCalls& calls;
  };

  // If `whole`, the arrays have all values and weights of the graph, with the graph's numbers. Otherwise they have only
  // those that the nodes use. `written` are the opsets for which the graph was written, except the bodies of its calls.
  Arrays(Shared& shared, const Graph& graph, bool whole, const Arrays* parent, const Opsets& written)
      : shared_(shared), graph_(graph), whole_(whole), parent_(parent), written_(written) {
    abi_.size = sizeof abi_;
    abi_.host = this;
    abi_.ir_version =
        shared.known.ir_version ? std::min(shared.known.ir_version, ops::kNewestIrVersion) : ops::kNewestIrVersion;
    abi_.name = text(graph.name);
  }

  void build(std::span<const uint32_t> nodes, std::span<const ValueId> inputs, std::span<const ValueId> outputs) {
    reserve(nodes.size(), whole_ ? graph_.values.size() : std::min(graph_.values.size(), 2 * nodes.size()));
    if (whole_) {
      for (const Weight& weight : graph_.weights) add_weight(weight);
      for (ValueId v = 0; v < graph_.values.size(); ++v) add_value(v);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Call* call = whole_call(nodes.subspan(i));
      const Node& node = call ? call->node : graph_.nodes[nodes[i]];
      add_node(node, {nodes[i], call ? call->count : 1}, written(call ? call->caller : node.call));
      if (call) i += call->count - 1;
    }
    for (const ValueId input : inputs) inputs_.push_back(local(input));
    for (const ValueId output : outputs) outputs_.push_back(local(output));
    if (!whole_) {  // adds the values that the nodes read but do not write
      for (uint32_t v = 0; v < values_.size(); ++v) {
        const bp_value_t& value = values_[v];
        if (value.producer == BP_NONE && value.weight == BP_NONE) inputs_.push_back(v);
      }
    }
    mark_ends();
    list_uses();
    publish();
  }

  const bp_graph_t& abi() const { return abi_; }
  View::Nodes graph_nodes(uint32_t n) const { return nodes_of_[n]; }
  ValueId graph_value(uint32_t v) const { return value_of_[v]; }
  bool too_new(uint32_t n) const { return too_new_.contains(n); }
  std::string why_too_new(uint32_t n) const { return too_new(n) ? too_new_.at(n) : std::string(); }
  const Weight& weight(uint32_t w) const { return *weight_of_[w]; }
  const Model& model() const { return *shared_.model; }

  // The view's index of a graph value. Adds the value if it is new.
  uint32_t local(ValueId value) {
    if (value == BP_NONE || whole_) return value;
    const auto found = local_values_.find(value);
    return found != local_values_.end() ? found->second : add_value(value);
  }

 private:
  void reserve(size_t nodes, size_t values) {
    nodes_.reserve(nodes);
    nodes_of_.reserve(nodes);
    captured_end_.reserve(nodes);
    operands_.reserve(3 * nodes);
    uses_.reserve(values);
    values_.reserve(values);
    value_of_.reserve(values);
    types_.reserve(values);
    dims_.reserve(2 * values);
    if (!whole_) local_values_.reserve(values);
  }

  uint32_t add_dims(std::span<const bp_dim_t> dims) {
    const auto first = static_cast<uint32_t>(dims_.size());
    dims_.insert(dims_.end(), dims.begin(), dims.end());
    return first;
  }

  uint32_t add_type(const Type& type) {
    bp_type_t out{type.kind, type.dtype, type.rank, 0, BP_NONE, 0};
    if (type.element) out.element = add_type(*type.element);
    out.first_dim = add_dims(type.dims);
    types_.push_back(out);
    return static_cast<uint32_t>(types_.size() - 1);
  }

  uint32_t add_weight(const Weight& weight) {
    bp_weight_t out{};
    out.dtype = weight.dtype;
    out.rank = static_cast<uint32_t>(weight.dims.size());
    out.first_dim = static_cast<uint32_t>(dims_.size());
    for (const int64_t extent : weight.dims) dims_.push_back({extent, BP_NONE, 0});
    out.bytes = weight.bytes;
    out.data = weight.data;
    out.file = text(weight.file);
    out.file_offset = weight.file_offset;
    out.id = weight.id;
    if (shared_.refit.possible && !parent_) out.flags = BP_WEIGHT_REFIT;
    weights_.push_back(out);
    weight_of_.push_back(&weight);
    return static_cast<uint32_t>(weights_.size() - 1);
  }

  // The weight, or its replacement. The framework replaces weights by name, and only in the outermost graph.
  const Weight& current(WeightId weight) const {
    const auto replaced = shared_.refit.replaced.find(weight);
    return parent_ || replaced == shared_.refit.replaced.end() ? graph_.weights[weight] : *replaced->second;
  }

  uint32_t local_weight(WeightId weight) {
    if (weight == BP_NONE || whole_) return weight;
    const auto [place, added] = local_weights_.try_emplace(weight, 0);
    if (added) place->second = add_weight(current(weight));
    return place->second;
  }

  uint32_t add_value(ValueId id) {
    const auto index = static_cast<uint32_t>(values_.size());
    const Value& value = graph_.values[id];
    bp_value_t out{};
    out.name = text(value.name);
    out.type = add_type(value.type);
    out.producer = BP_NONE;
    out.slot = BP_NONE;
    out.weight = local_weight(value.weight);
    out.outer = parent_ && value.outer != BP_NONE ? parent_->known(value.outer) : BP_NONE;
    values_.push_back(out);
    value_of_.push_back(id);
    if (!whole_) local_values_.emplace(id, index);
    return index;
  }

  uint32_t known(ValueId value) const {
    if (whole_) return value;
    const auto found = local_values_.find(value);
    return found == local_values_.end() ? BP_NONE : found->second;
  }

  // The outermost call that appears as one node and starts with the first of these nodes; null if there is none.
  const Call* whole_call(std::span<const uint32_t> nodes) const {
    const Call* found = nullptr;
    if (shared_.calls.empty()) return found;
    for (uint32_t c = graph_.nodes[nodes[0]].call; c != BP_NONE; c = graph_.calls[c].caller) {
      const Call& call = graph_.calls[c];
      const bool all = call.first == nodes[0] && call.count > 0 && call.count <= nodes.size() &&
                       nodes[call.count - 1] == call.first + call.count - 1;
      if (all && std::ranges::binary_search(shared_.calls, call.node.id)) found = &call;
    }
    return found;
  }

  // The opsets for which the body of a call was written; BP_NONE: the nodes outside of all calls.
  const Opsets& written(uint32_t in_call) const {
    if (in_call == BP_NONE) return written_;
    const Node& call = graph_.calls[in_call].node;
    const auto function = shared_.functions.find({call.domain, call.op_type, call.overload});
    return function == shared_.functions.end() ? written_ : *function->second;
  }

  void add_node(const Node& node, View::Nodes stands_for, const Opsets& written) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    bp_node_t out{};
    // Plugins compare these strings often. The schemas' strings are few and stay in the cache, while the nodes' strings
    // are scattered in memory.
    out.op_type = node.schema ? text(node.schema->name) : text(node.op_type);
    out.domain = node.schema ? text(node.schema->domain) : text(node.domain);
    out.overload = text(node.overload);
    out.name = text(node.name);
    out.id = node.id;
    out.since_version = node.since_version;
    const ops::Schema* form = node.schema;
    std::string refusal;
    if (const auto newest = shared_.known.opsets.find(node.domain); form && newest != shared_.known.opsets.end()) {
      const auto opset = written.find(node.domain);
      OlderForm fitting = older_form({graph_, node, shared_.refit.replaced}, newest->second,
                                     opset == written.end() ? UINT32_MAX : opset->second);
      if (fitting.schema) form = fitting.schema;
      if (!fitting.schema)
        refusal = fitting.refusal + "; this device knows opset " + std::to_string(newest->second) +
                  (node.domain.empty() ? "" : " of " + node.domain);
      out.since_version = form->since_version;
    }
    out.first_input = static_cast<uint32_t>(operands_.size());
    out.input_count = static_cast<uint32_t>(node.inputs.size());
    for (const ValueId input : node.inputs) operands_.push_back(count_read(local(input)));
    const auto captured_first = static_cast<uint32_t>(captured_.size());
    for (const ValueId value : captures(graph_, node)) captured_.push_back(count_read(local(value)));
    captured_end_.push_back({captured_first, static_cast<uint32_t>(captured_.size())});
    out.first_output = static_cast<uint32_t>(operands_.size());
    out.output_count = static_cast<uint32_t>(node.outputs.size());
    for (uint32_t slot = 0; slot < node.outputs.size(); ++slot) {
      const uint32_t value = local(node.outputs[slot]);
      operands_.push_back(value);
      if (value == BP_NONE) continue;
      values_[value].producer = index;
      values_[value].slot = slot;
    }
    out.first_attribute = static_cast<uint32_t>(attributes_.size());
    for (const Attribute& attribute : node.attributes) {
      if (form != node.schema && !form->attribute(attribute.name))
        continue;  // the older form lacks this attribute, which has its default
      std::string in_body = add_attribute(attribute, written);
      if (refusal.empty()) refusal = std::move(in_body);
    }
    out.attribute_count = static_cast<uint32_t>(attributes_.size()) - out.first_attribute;
    nodes_.push_back(out);
    nodes_of_.push_back(stands_for);
    if (!refusal.empty()) too_new_.emplace(index, std::move(refusal));
  }

  uint32_t count_read(uint32_t value) {
    if (value != BP_NONE) ++values_[value].use_count;
    return value;
  }

  // Adds an attribute. Returns why a node in one of its subgraphs is too new for the plugin; empty if none is.
  std::string add_attribute(const Attribute& attribute, const Opsets& written) {
    std::string refusal;
    bp_attribute_t out{text(attribute.name), attribute.type, 0, nullptr};
    const auto refer = [&out](const auto& elements) {
      out.count = static_cast<uint32_t>(elements.size());
      out.data = elements.data();
    };
    switch (attribute.type) {
      case BP_ATTR_INT:
      case BP_ATTR_INTS:
        refer(attribute.ints());
        break;
      case BP_ATTR_FLOAT:
      case BP_ATTR_FLOATS:
        refer(attribute.floats());
        break;
      case BP_ATTR_STRING:
      case BP_ATTR_STRINGS: {
        std::vector<bp_text_t>& list = text_lists_.emplace_back();
        for (const std::string& string : attribute.strings()) list.push_back(text(string));
        refer(list);
        break;
      }
      default: {
        std::vector<uint32_t>& list = index_lists_.emplace_back(attribute.indices());
        for (size_t k = 0; k < list.size(); ++k) {
          uint32_t& index = list[k];
          if (attribute.type == BP_ATTR_GRAPH || attribute.type == BP_ATTR_GRAPHS) {
            index = add_body(*graph_.subgraphs[index], written);
            if (refusal.empty()) refusal = bodies_.back()->first_refusal();
          } else if (attribute.refers_to_type(k)) {
            index = add_type(graph_.attribute_types[index]);
          } else {
            index = local_weight(index);
          }
        }
        refer(list);
        if (attribute.type == BP_ATTR_SPARSE_TENSOR || attribute.type == BP_ATTR_SPARSE_TENSORS) out.count /= 3;
      }
    }
    attributes_.push_back(out);
    return refusal;
  }

  // Names the first node of this body that is too new, and says why. Empty if no node is too new.
  std::string first_refusal() const {
    if (too_new_.empty()) return {};
    const auto& [n, why] = *too_new_.begin();
    const std::string op(nodes_[n].op_type.data, nodes_[n].op_type.size),
        name(nodes_[n].name.data, nodes_[n].name.size);
    return "in its body " + op + (name.empty() ? "" : " '" + name + "'") + ": " + why;
  }

  uint32_t add_body(const Graph& body, const Opsets& written) {
    auto arrays = std::make_unique<Arrays>(shared_, body, true, this, written);
    std::vector<uint32_t> nodes(body.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    arrays->build(nodes, body.inputs, body.outputs);
    arrays->abi_.parent = &abi_;
    bodies_.push_back(std::move(arrays));
    return static_cast<uint32_t>(bodies_.size() - 1);
  }

  void mark_ends() {
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      values_[inputs_[i]].flags |= BP_VALUE_INPUT;
      values_[inputs_[i]].slot = i;
    }
    for (const uint32_t output : outputs_) values_[output].flags |= BP_VALUE_OUTPUT;
  }

  void list_uses() {
    std::vector<uint32_t> next;
    next.reserve(values_.size());
    uint32_t first = 0;
    for (bp_value_t& value : values_) {
      next.push_back(value.first_use = first);
      first += value.use_count;
    }
    uses_.resize(first);
    for (uint32_t n = 0; n < nodes_.size(); ++n) {
      for (uint32_t slot = 0; slot < nodes_[n].input_count; ++slot) {
        const uint32_t value = operands_[nodes_[n].first_input + slot];
        if (value != BP_NONE) uses_[next[value]++] = {n, slot};
      }
      for (uint32_t c = captured_end_[n].first; c < captured_end_[n].second; ++c)
        uses_[next[captured_[c]]++] = {n, BP_NONE};
    }
  }

  void publish();

  Shared& shared_;
  const Graph& graph_;
  const bool whole_;
  const Arrays* parent_;
  const Opsets& written_;
  bp_graph_t abi_{};
  std::vector<bp_node_t> nodes_;
  std::vector<bp_value_t> values_;
  std::vector<bp_type_t> types_;
  std::vector<bp_attribute_t> attributes_;
  std::vector<bp_weight_t> weights_;
  std::vector<bp_use_t> uses_;
  std::vector<bp_dim_t> dims_;
  std::vector<uint32_t> operands_, inputs_, outputs_;
  std::vector<uint32_t> captured_;                           // values that nodes' subgraphs read
  std::vector<std::pair<uint32_t, uint32_t>> captured_end_;  // by node: its range in captured_
  std::deque<std::vector<bp_text_t>> text_lists_;            // attributes point into these lists and into index_lists_
  std::deque<std::vector<uint32_t>> index_lists_;
  std::vector<std::unique_ptr<Arrays>> bodies_;
  std::vector<const bp_graph_t*> body_graphs_;
  std::vector<View::Nodes> nodes_of_;
  std::vector<ValueId> value_of_;
  std::vector<const Weight*> weight_of_;
  std::map<uint32_t, std::string> too_new_;  // why, by node
  std::unordered_map<ValueId, uint32_t> local_values_;
  std::unordered_map<WeightId, uint32_t> local_weights_;
};

Arrays& arrays_of(const bp_graph_t* graph) {
  return *static_cast<Arrays*>(graph->host);
}

Status check_weight(const bp_graph_t* graph, uint32_t weight, const void* out, const char* out_name) {
  if (!graph) return {BP_INVALID_ARGUMENT, "graph is NULL"};
  if (!out) return {BP_INVALID_ARGUMENT, std::string(out_name) + " is NULL"};
  if (weight < graph->weight_count) return {};
  return {BP_INVALID_ARGUMENT,
          "there is no weight " + std::to_string(weight) + ": the graph has " + std::to_string(graph->weight_count)};
}

bp_status_t BP_CALL weight_map(const bp_graph_t* graph, uint32_t weight, const void** out_data, bp_error_t* error) {
  if (Status wrong = check_weight(graph, weight, out_data, "out_data"); !wrong.ok()) return wrong.write(error);
  *out_data = arrays_of(graph).weight(weight).data;
  return BP_OK;
}

// Releases the pages that lie completely within a mapped weight. The system reads them again on access.
void BP_CALL weight_consumed(const bp_graph_t* graph, uint32_t index) {
  if (!graph || index >= graph->weight_count) return;
  const Weight& weight = arrays_of(graph).weight(index);
  if (weight.file.empty()) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(weight.data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(weight.data) + weight.bytes) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

bp_status_t BP_CALL weight_hash(const bp_graph_t* graph, uint32_t index, uint64_t out_hash[2], bp_error_t* error) {
  if (Status wrong = check_weight(graph, index, out_hash, "out_hash"); !wrong.ok()) return wrong.write(error);
  const Arrays& arrays = arrays_of(graph);
  const Hash hash = arrays.model().hashes->of(arrays.weight(index));
  out_hash[0] = hash[0];
  out_hash[1] = hash[1];
  return BP_OK;
}

bp_status_t BP_CALL serialize_graph(const bp_graph_t* graph, uint64_t external_above, bp_text_sink_t sink,
                                    void* context, bp_error_t* error) {
  if (!graph || !sink) return Status(BP_INVALID_ARGUMENT, graph ? "sink is NULL" : "graph is NULL").write(error);
  return serialize(*graph, external_above, sink, context).write(error);
}

constexpr bp_graph_api_t kApi = {sizeof(bp_graph_api_t), 0, weight_map, weight_consumed, weight_hash, serialize_graph};

void Arrays::publish() {
  static std::atomic<uint64_t> next_id{1};
  for (const auto& body : bodies_) body_graphs_.push_back(&body->abi_);
  const auto count = [](const auto& array) { return static_cast<uint32_t>(array.size()); };
  abi_.api = &kApi;
  abi_.id = next_id++;
  abi_.nodes = nodes_.data();
  abi_.node_count = count(nodes_);
  abi_.node_stride = sizeof(bp_node_t);
  abi_.values = values_.data();
  abi_.value_count = count(values_);
  abi_.value_stride = sizeof(bp_value_t);
  abi_.types = types_.data();
  abi_.type_count = count(types_);
  abi_.type_stride = sizeof(bp_type_t);
  abi_.attributes = attributes_.data();
  abi_.attribute_count = count(attributes_);
  abi_.attribute_stride = sizeof(bp_attribute_t);
  abi_.weights = weights_.data();
  abi_.weight_count = count(weights_);
  abi_.weight_stride = sizeof(bp_weight_t);
  abi_.symbols = shared_.symbols.data();
  abi_.symbol_count = count(shared_.symbols);
  abi_.symbol_stride = sizeof(bp_symbol_t);
  abi_.opsets = shared_.opsets.data();
  abi_.opset_count = count(shared_.opsets);
  abi_.opset_stride = sizeof(bp_opset_t);
  abi_.uses = uses_.data();
  abi_.dims = dims_.data();
  abi_.operands = operands_.data();
  abi_.inputs = inputs_.data();
  abi_.outputs = outputs_.data();
  abi_.use_count = count(uses_);
  abi_.dim_count = count(dims_);
  abi_.operand_count = count(operands_);
  abi_.input_count = count(inputs_);
  abi_.output_count = count(outputs_);
  abi_.subgraph_count = count(body_graphs_);
  abi_.subgraphs = body_graphs_.data();
}

// The opsets of the view. For a domain that the loader knows, this is the newest version, to which the import has
// upgraded the nodes, or an older one if the plugin supports no newer.
std::vector<bp_opset_t> opsets_of(const Model& model, const KnownOpsets& known) {
  std::map<std::string_view, uint32_t> versions;
  const auto add = [&](const std::map<std::string, uint32_t>& opsets) {
    for (const auto& [domain, version] : opsets) versions.emplace(domain, version);
  };
  add(model.opsets);
  for (const Function& function : model.functions) add(function.opsets);
  versions.emplace("", 0);  // upgrades may have added operators of this domain
  std::vector<bp_opset_t> out;
  for (auto& [domain, version] : versions) {
    if (const uint32_t newest = ops::newest_opset(domain)) version = newest;
    if (const auto limit = known.opsets.find(domain); limit != known.opsets.end())
      version = std::min(version, limit->second);
    out.push_back({text(domain), version, 0});
  }
  return out;
}

}  // namespace

struct View::Impl {
  KnownOpsets known;
  Refit refit;
  WholeCalls calls;
  Arrays::Shared shared;
  Arrays arrays;

  Impl(const std::shared_ptr<const Model>& model, const Graph& graph, bool whole, const KnownOpsets& newest,
       const Refit& weights, const WholeCalls& whole_calls)
      : known(newest),
        refit(weights),
        calls(whole_calls),
        shared{model, {}, opsets_of(*model, known), {}, known, refit, calls},
        arrays(shared, graph, whole, nullptr, model->opsets) {
    for (const Function& f : model->functions) shared.functions.try_emplace({f.domain, f.name, f.overload}, &f.opsets);
    for (const Symbol& symbol : model->graph.symbols)
      shared.symbols.push_back({text(symbol.name), symbol.min, symbol.max});
  }
};

WholeCalls all_calls(const Model& model) {
  WholeCalls ids;
  const auto add = [&ids](const auto& self, const Graph& graph) -> void {
    for (const Call& call : graph.calls) {
      if (call.count > 0) ids.push_back(call.node.id);
    }
    for (const auto& body : graph.subgraphs) self(self, *body);
  };
  add(add, model.graph);
  std::ranges::sort(ids);
  return ids;
}

std::shared_ptr<const View> View::whole(const std::shared_ptr<const Model>& model, const KnownOpsets& known,
                                        const WholeCalls& calls) {
  auto impl = std::make_unique<Impl>(model, model->graph, true, known, Refit{}, calls);
  std::vector<uint32_t> nodes(model->graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  impl->arrays.build(nodes, model->graph.inputs, model->graph.outputs);
  return std::shared_ptr<const View>(new View(std::move(impl)));
}

std::shared_ptr<const View> View::island(const std::shared_ptr<const Model>& model, std::span<const uint32_t> nodes,
                                         std::span<const ValueId> outputs, const KnownOpsets& known, const Refit& refit,
                                         const WholeCalls& calls) {
  auto impl = std::make_unique<Impl>(model, model->graph, false, known, refit, calls);
  impl->arrays.build(nodes, {}, outputs);
  return std::shared_ptr<const View>(new View(std::move(impl)));
}

std::shared_ptr<const View> View::node(const std::shared_ptr<const Model>& model, const Graph& graph, uint32_t node,
                                       const KnownOpsets& known) {
  auto impl = std::make_unique<Impl>(model, graph, false, known, Refit{}, WholeCalls{});
  std::vector<ValueId> outputs;
  for (const ValueId output : graph.nodes[node].outputs) {
    if (output != BP_NONE) outputs.push_back(output);
  }
  impl->arrays.build({&node, 1}, {}, outputs);
  return std::shared_ptr<const View>(new View(std::move(impl)));
}

View::View(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
View::~View() = default;

const bp_graph_t* View::abi() const {
  return &impl_->arrays.abi();
}
View::Nodes View::graph_nodes(uint32_t view_node) const {
  return impl_->arrays.graph_nodes(view_node);
}
ValueId View::graph_value(uint32_t view_value) const {
  return impl_->arrays.graph_value(view_value);
}
bool View::too_new(uint32_t view_node) const {
  return impl_->arrays.too_new(view_node);
}
std::string View::why_too_new(uint32_t view_node) const {
  return impl_->arrays.why_too_new(view_node);
}

}  // namespace backplane::model
