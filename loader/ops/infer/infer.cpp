// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/infer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/dtype.h"
#include "base/names.h"
#include "ops/infer/context.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

using model::Graph;
using model::Node;
using model::Type;
using model::Value;
using model::ValueId;
using model::Weight;
using model::WeightId;

Type weight_type(const Weight& weight) {
  Type type;
  type.kind = BP_KIND_TENSOR;
  type.dtype = weight.dtype;
  type.rank = static_cast<int32_t>(weight.dims.size());
  for (int64_t extent : weight.dims) type.dims.push_back({extent, BP_NONE, 0});
  return type;
}

template <class T>
void write(std::vector<char>& bytes, const KnownData& known_data) {
  for (const Scalar& scalar : known_data) {
    T value = scalar.kind == Scalar::kReal ? static_cast<T>(scalar.real_value) : static_cast<T>(scalar.value);
    bytes.insert(bytes.end(), reinterpret_cast<const char*>(&value), reinterpret_cast<const char*>(&value) + sizeof(T));
  }
}

template <class T>
bool holds(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

// Discards known elements that do not fit the data type exactly, because they would wrap or be rounded. Symbols are
// assumed to fit int32, as extents do, but not smaller types.
void limit(KnownData& known_data, bp_dtype_t dtype) {
  for (Scalar& scalar : known_data) {
    bool whole = scalar.is_number();
    bool fits = true;
    switch (dtype) {
      case BP_DTYPE_INT64:
        fits = scalar.kind != Scalar::kReal;
        break;
      case BP_DTYPE_INT32:
        fits = !whole ? scalar.kind != Scalar::kReal : holds<int32_t>(scalar.value);
        break;
      case BP_DTYPE_UINT8:
        fits = whole && holds<uint8_t>(scalar.value);
        break;
      case BP_DTYPE_BOOL:
        fits = whole && (scalar.value == 0 || scalar.value == 1);
        break;
      case BP_DTYPE_FLOAT:
      case BP_DTYPE_DOUBLE:
        break;
      default:
        fits = false;
    }
    if (!fits) scalar = {};
  }
}

bool any_known(const KnownData& known_data) {
  return std::ranges::any_of(known_data, [](const Scalar& s) { return s.kind != Scalar::kUnknown; });
}

bool known(const KnownData& known_data) {
  return std::all_of(known_data.begin(), known_data.end(),
                     [](const Scalar& s) { return s.kind == Scalar::kNumber || s.kind == Scalar::kReal; });
}

// Whether the node returns its input. Such nodes are not folded: `prune` removes them, and weights that they return
// can still be refitted.
bool returns_input(const Graph& graph, const Node& node) {
  if (!node.schema || !node.domain.empty()) return false;
  if (node.op_type == "Identity") return true;
  if (node.op_type != "Cast" && node.op_type != "CastLike") return false;
  return graph.values[node.inputs[0]].type.dtype == graph.values[node.outputs[0]].type.dtype;
}

Weight make_weight(const Type& type, const KnownData& known_data, uint64_t id) {
  auto bytes = std::make_shared<std::vector<char>>();
  switch (type.dtype) {
    case BP_DTYPE_INT64:
      write<int64_t>(*bytes, known_data);
      break;
    case BP_DTYPE_INT32:
      write<int32_t>(*bytes, known_data);
      break;
    case BP_DTYPE_DOUBLE:
      write<double>(*bytes, known_data);
      break;
    case BP_DTYPE_FLOAT:
      write<float>(*bytes, known_data);
      break;
    default:  // BOOL and UINT8
      write<uint8_t>(*bytes, known_data);
  }
  Weight weight;
  weight.dtype = type.dtype;
  for (const bp_dim_t& dim : type.dims) weight.dims.push_back(dim.extent);
  weight.data = bytes->data();
  weight.bytes = bytes->size();
  weight.owned = std::move(bytes);
  weight.id = id;
  return weight;
}

// Whether a tensor of this type has exactly `count` elements.
bool has_elements(const Type& type, size_t count) {
  if (type.kind != BP_KIND_TENSOR || type.rank < 0) return false;
  size_t product = 1;
  for (const bp_dim_t& dim : type.dims) {
    if (dim.extent < 0 || static_cast<uint64_t>(dim.extent) > kMaxKnownData) return false;
    product *= static_cast<size_t>(dim.extent);
    if (product > kMaxKnownData) return false;
  }
  return product == count;
}

// Models whose extents were edited often keep outdated declarations, so inferred extents replace declared ones. This
// function replaces declared extents where inference has a symbol; `finish` handles numbers that differ.
Type without_stale_numbers(Type declared, const Type& inferred) {
  if (declared.rank != inferred.rank || declared.dims.size() != inferred.dims.size()) return declared;
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    if (inferred.dims[i].extent < 0 && inferred.dims[i].symbol != BP_NONE) declared.dims[i] = inferred.dims[i];
  }
  return declared;
}

bool same_elements(const Type& a, const Type& b) {
  return a.kind == BP_KIND_TENSOR && b.kind == BP_KIND_TENSOR && (!a.dtype || !b.dtype || a.dtype == b.dtype);
}

// The maximum nesting of containers. A chain of nodes could nest them without limit, each putting its input into
// another container.
constexpr int kDeepestType = 32;

bool is_too_deep(const Type& type) {
  int depth = 0;
  for (const Type* inner = &type; inner->element; inner = inner->element.get()) {
    if (++depth > kDeepestType) return true;
  }
  return false;
}

// Writes the results of the node's rule into the graph.
Status finish(InferenceState& state, Scope& scope, Context& context, Node& node) {
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    ValueId id = node.outputs[slot];
    if (id == BP_NONE) continue;
    Value& value = scope.graph.values[id];
    const Type inferred = std::move(context.output(slot));
    if (is_too_deep(inferred))
      return context.fail("the type of its output is nested deeper than " + std::to_string(kDeepestType));
    Type type = inferred;
    std::string problem;
    if (!merge_types(type, without_stale_numbers(value.type, inferred), problem)) {
      const Status contradiction =
          context.fail("output " + in_quotes(value.name) +
                       " contradicts what the model declares of it: inferred and declared are " + problem);
      if (state.how.exact) return Status(BP_TYPE_MISMATCH, std::string(contradiction.text())).with_node(node.id);
      if (!node.schema || !same_elements(inferred, value.type)) return contradiction;
      if (state.contradictions++ == 0) state.contradiction = contradiction.text();
      type = inferred;
    }
    value.type = std::move(type);
    if (value.weight != BP_NONE) continue;
    if (slot >= context.result_known_data().size()) continue;
    KnownData known_data = context.result_known_data()[slot];
    if (!has_elements(value.type, known_data.size())) continue;
    limit(known_data, value.type.dtype);
    if (state.how.fold && known(known_data) && follows_data_of(value.type.dtype) && !scope.is_output[id] &&
        !returns_input(scope.graph, node)) {
      for (const ValueId source : context.sources()) context.consume(source);
      value.weight = static_cast<WeightId>(scope.graph.weights.size());
      // This constant stays in the model, so its charge is never released.
      state.model.charge(sizeof(Weight) + known_data.size() * sizeof(int64_t), "folding constants");
      scope.graph.weights.push_back(make_weight(value.type, known_data, state.model.next_id++));
      node.outputs[slot] = BP_NONE;
    } else if (!context.sources().empty() && any_known(known_data)) {
      state.charge(sizeof(model::Operands));
      scope.sources[id] = context.sources();
    }
    scope.known_data[id] = state.keep(std::move(known_data));
  }
  return {};
}

Status infer_graph(InferenceState& state, Scope& scope) {
  Graph& graph = scope.graph;
  if (scope.depth > model::kDeepestGraph) {
    return Status(BP_INVALID_MODEL, "graph " + in_quotes(graph.name) + " is nested deeper than " +
                                        std::to_string(model::kDeepestGraph) + " levels");
  }
  scope.known_data.assign(graph.values.size(), nullptr);
  scope.is_output.assign(graph.values.size(), false);
  for (ValueId id : graph.outputs) {
    if (id != BP_NONE) scope.is_output[id] = true;
  }
  for (Value& value : graph.values) {
    if (value.weight != BP_NONE) {
      value.type = weight_type(graph.weights[value.weight]);
    } else if (value.outer != BP_NONE && scope.parent) {
      value.type = scope.parent->graph.values[value.outer].type;
    }
  }
  Context context(state, scope);
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    state.charge(0);
    Rule rule = node.schema ? rule_of(*node.schema) : foreign_rule(node.domain, node.op_type);
    const bool is_foreign = !node.schema && !rule;
    if (is_foreign && !state.how.foreign) continue;  // only the device that runs the node can infer its types
    BP_TRY(context.begin(node));
    if (rule) BP_TRY(rule(context));
    if (is_foreign) {
      std::vector<Type> outputs(node.outputs.size());
      BP_TRY(state.how.foreign(graph, n, outputs));
      for (size_t slot = 0; slot < outputs.size(); ++slot) context.output(slot) = std::move(outputs[slot]);
    }
    BP_TRY(finish(state, scope, context, node));
  }
  return {};
}

// Names the unnamed extents of inputs, so that extents computed from them can be compared.
void name_extents(Graph& graph) {
  for (ValueId id : graph.inputs) {
    Value& value = graph.values[id];
    for (size_t i = 0; i < value.type.dims.size(); ++i) {
      bp_dim_t& dim = value.type.dims[i];
      if (dim.extent >= 0 || dim.symbol != BP_NONE) continue;
      dim.symbol = static_cast<uint32_t>(graph.symbols.size());
      graph.symbols.push_back({value.name + "." + std::to_string(i), 0, INT64_MAX});
    }
  }
}

}  // namespace

Status Context::infer_subgraph(Graph& graph) {
  Scope inner{graph, &scope_, scope_.depth + 1, {}, {}};
  return infer_graph(state_, inner);
}

Status infer(model::Model& model, const Inference& how) try {
  name_extents(model.graph);
  InferenceState state(model, how);
  Scope scope{model.graph, nullptr, 0, {}, {}};
  BP_TRY(infer_graph(state, scope));
  state.expressions.keep_formulas(model.graph);
  model::set_expected_extents(model.graph);
  if (state.contradictions == 0) return {};
  std::string note = state.contradiction;
  if (const size_t more = state.contradictions - 1; more != 0) note += ", and so do " + std::to_string(more) + " more";
  note += "; the inferred extents are used";
  model.note(std::move(note));
  return {};
} catch (Budget::Exhausted& stop) {
  return std::move(stop.status);
}

}  // namespace backplane::ops
