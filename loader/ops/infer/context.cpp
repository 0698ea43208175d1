// SPDX-License-Identifier: Apache-2.0
#include "ops/infer/context.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/counted.h"
#include "base/dtype.h"

namespace backplane::ops {
namespace {

const model::Type kUnknownType;

std::string_view kind_name(uint32_t kind) {
  constexpr std::string_view kNames[] = {"unknown", "tensor", "sparse tensor", "sequence", "optional", "map"};
  return kind < std::size(kNames) ? kNames[kind] : kNames[0];
}

std::string expected_text(const Formal& formal) {
  std::string text;
  auto add = [&](std::string_view word) {
    text += text.empty() ? "" : ", ";
    text += word;
  };
  for (uint32_t dtype = 1; dtype < 64; ++dtype) {
    if (formal.dtypes >> dtype & 1) add(dtype_name(dtype));
  }
  for (uint32_t kind = BP_KIND_SPARSE_TENSOR; kind <= BP_KIND_MAP; ++kind) {
    if (formal.kinds >> kind & 1) add(kind_name(kind));
  }
  return text;
}

const Formal* formal_at(const std::vector<Formal>& formals, size_t slot) {
  if (slot < formals.size()) return &formals[slot];
  return !formals.empty() && formals.back().option == Formal::kVariadic ? &formals.back() : nullptr;
}

template <class T>
KnownData whole_numbers(const model::Weight& weight, size_t count) {
  KnownData known_data(count);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(weight.data) + i * sizeof(T), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      known_data[i] = Scalar::of_real(value);
    } else {
      known_data[i] = static_cast<int64_t>(value);
    }
  }
  return known_data;
}

}  // namespace

std::optional<KnownData> known_data_of_weight(const model::Weight& weight) {
  size_t count = 1;
  for (int64_t extent : weight.dims) {
    if (extent < 0 || static_cast<uint64_t>(extent) > kMaxKnownData) return {};
    count *= static_cast<size_t>(extent);
    if (count > kMaxKnownData) return {};
  }
  if (weight.bytes < (count * dtype_bits(weight.dtype) + 7) / 8 || (!weight.data && count > 0)) return {};
  switch (weight.dtype) {
    case BP_DTYPE_INT64:
      return whole_numbers<int64_t>(weight, count);
    case BP_DTYPE_INT32:
      return whole_numbers<int32_t>(weight, count);
    case BP_DTYPE_UINT8:
    case BP_DTYPE_BOOL:
      return whole_numbers<uint8_t>(weight, count);
    case BP_DTYPE_FLOAT:
      return whole_numbers<float>(weight, count);
    case BP_DTYPE_DOUBLE:
      return whole_numbers<double>(weight, count);
    default:
      return {};
  }
}

bool follows_data_of(bp_dtype_t dtype) {
  constexpr bp_dtype_set_t kFollowed = 1u << BP_DTYPE_INT64 | 1u << BP_DTYPE_INT32 | 1u << BP_DTYPE_UINT8 |
                                       1u << BP_DTYPE_BOOL | 1u << BP_DTYPE_FLOAT | 1u << BP_DTYPE_DOUBLE;
  return dtype < 64 && (kFollowed >> dtype & 1);
}

std::string type_text(const model::Type& type) {
  std::string text(kind_name(type.kind));
  if (type.kind == BP_KIND_TENSOR || type.kind == BP_KIND_SPARSE_TENSOR) {
    return std::string(dtype_name(type.dtype)) + " " + text;
  }
  return type.element ? text + " of " + type_text(*type.element) : text;
}

bool merge_types(model::Type& type, const model::Type& other, std::string& problem) {
  if (other.kind == 0) return true;
  if (type.kind == 0) {
    type = other;
    return true;
  }
  bool clash = type.kind != other.kind || (type.dtype && other.dtype && type.dtype != other.dtype);
  if (clash) {
    problem = type_text(type) + " and " + type_text(other);
    return false;
  }
  if (!type.dtype) type.dtype = other.dtype;
  if (type.element && other.element) {
    auto element = std::make_shared<model::Type>(*type.element);
    if (!merge_types(*element, *other.element, problem)) return false;
    type.element = std::move(element);
  } else if (!type.element) {
    type.element = other.element;
  }
  if (type.rank < 0) {
    type.rank = other.rank;
    type.dims = other.dims;
  }
  if (other.rank < 0) return true;
  if (type.rank != other.rank) {
    problem = "ranks " + std::to_string(type.rank) + " and " + std::to_string(other.rank);
    return false;
  }
  for (size_t i = 0; i < type.dims.size(); ++i) {
    bp_dim_t& dim = type.dims[i];
    const bp_dim_t& second = other.dims[i];
    if (dim.extent >= 0 && second.extent >= 0 && dim.extent != second.extent) {
      problem = "extents " + std::to_string(dim.extent) + " and " + std::to_string(second.extent) + " of axis " +
                std::to_string(i);
      return false;
    }
    if (dim.extent < 0 && (second.extent >= 0 || dim.symbol == BP_NONE)) dim = second;
  }
  return true;
}

bool join_types(model::Type& type, const model::Type& other) {
  if (type.kind == 0 || other.kind == 0) {
    type = {};
    return true;
  }
  if (type.kind != other.kind || (type.dtype && other.dtype && type.dtype != other.dtype)) return false;
  if (!type.dtype) type.dtype = other.dtype;
  if (type.element && other.element) {
    auto element = std::make_shared<model::Type>(*type.element);
    if (!join_types(*element, *other.element)) return false;
    type.element = std::move(element);
  }
  if (type.rank != other.rank) {
    type.rank = -1;
    type.dims.clear();
  }
  for (size_t i = 0; i < type.dims.size(); ++i) {
    bool same = type.dims[i].extent == other.dims[i].extent && type.dims[i].symbol == other.dims[i].symbol;
    if (!same) type.dims[i] = {-1, BP_NONE, 0};
  }
  return true;
}

Status Context::begin(model::Node& node) {
  node_ = &node;
  bindings_.clear();
  known_data_.clear();
  sources_.clear();
  outputs_.assign(node.outputs.size(), {});
  if (!node.schema) return {};  // there is no schema to check against
  const Schema& schema = *node.schema;
  for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
    if (node.inputs[slot] == BP_NONE) continue;
    const Formal* formal = formal_at(schema.inputs, slot);
    if (!formal) {
      return fail("has " + counted(node.inputs.size(), "input") + ", but " + std::string(schema.name) +
                  " takes at most " + std::to_string(schema.inputs.size()));
    }
    BP_TRY(bind(*formal, input(slot), slot));
  }
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    const Formal* formal = formal_at(schema.outputs, slot);
    if (!formal) {
      return fail("has " + counted(node.outputs.size(), "output") + ", but " + std::string(schema.name) +
                  " has at most " + std::to_string(schema.outputs.size()));
    }
    model::Type& type = outputs_[slot];
    if (formal->option == Formal::kVariadic && !formal->homogeneous) continue;
    auto bound = std::find_if(bindings_.begin(), bindings_.end(), [&](auto& b) { return b.parameter == formal->type; });
    if (bound != bindings_.end()) {
      type.kind = bound->type->kind;
      type.dtype = bound->type->dtype;
      type.element = bound->type->element;
    } else if (formal->kinds == 1u << BP_KIND_TENSOR) {
      type.kind = BP_KIND_TENSOR;
      if ((formal->dtypes & (formal->dtypes - 1)) == 0)
        type.dtype = static_cast<bp_dtype_t>(__builtin_ctzll(formal->dtypes));
    }
  }
  return {};
}

Status Context::bind(const Formal& formal, const model::Type& type, size_t slot) {
  if (type.kind == 0) return {};
  bool tensor = type.kind == BP_KIND_TENSOR;
  bool allowed =
      type.kind < 32 && (formal.kinds >> type.kind & 1) &&
      (!tensor || type.dtype == BP_DTYPE_UNDEFINED || (type.dtype < 64 && (formal.dtypes >> type.dtype & 1)));
  if (!allowed) {
    return fail("input " + std::string(formal.name) + " (" + std::to_string(slot) + ") is a " + type_text(type) +
                ", but it must be one of: " + expected_text(formal));
  }
  if (formal.option == Formal::kVariadic && !formal.homogeneous) return {};
  for (Binding& binding : bindings_) {
    if (binding.parameter != formal.type) continue;
    if (binding.type->kind != type.kind || (binding.type->dtype && type.dtype && binding.type->dtype != type.dtype)) {
      return fail("input " + std::string(formal.name) + " (" + std::to_string(slot) + ") is a " + type_text(type) +
                  ", but another input of type " + std::string(formal.type) + " is a " + type_text(*binding.type) +
                  ": their types must be the same");
    }
    if (!binding.type->dtype) binding.type = &type;
    return {};
  }
  bindings_.push_back({formal.type, &type});
  return {};
}

const model::Type& Context::input(size_t slot) const {
  model::ValueId id = node_->input(slot);
  return id == BP_NONE ? kUnknownType : scope_.graph.values[id].type;
}

Scalar Context::dim(size_t slot, int64_t axis) {
  const model::Type& type = input(slot);
  return axis >= 0 && axis < type.rank ? expressions_.of_dim(type.dims[axis]) : Scalar();
}

Shape Context::shape(size_t slot) {
  const model::Type& type = input(slot);
  Shape shape(std::max(type.rank, 0));
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = expressions_.of_dim(type.dims[i]);
  return shape;
}

const KnownData* Context::known_data(size_t slot) {
  const KnownData* const known = elements(slot);
  if (known) consume(node_->input(slot));
  return known;
}

const KnownData* Context::elements(size_t slot) {
  const model::ValueId value = node_->input(slot);
  const KnownData* const known = value == BP_NONE ? nullptr : known_data_of(scope_, value);
  if (known) sources_.push_back(value);
  return known;
}

void Context::consume(model::ValueId value) {
  std::vector<std::pair<Scope*, model::ValueId>> pending = {{&scope_, value}};
  while (!pending.empty()) {
    const auto [scope, id] = pending.back();
    pending.pop_back();
    const model::Value& next = scope->graph.values[id];
    if (next.weight != BP_NONE) {
      scope->graph.weights[next.weight].consumed = true;
    } else if (next.outer != BP_NONE && scope->parent) {
      pending.emplace_back(scope->parent, next.outer);
    } else if (const auto found = scope->sources.find(id); found != scope->sources.end()) {
      for (const model::ValueId source : found->second) pending.emplace_back(scope, source);
      scope->sources.erase(found);  // each value is visited once
    }
  }
}

const KnownData* Context::known_data_of(Scope& scope, model::ValueId id) {
  const KnownData*& known = scope.known_data[id];
  if (known) return known;
  const model::Value& value = scope.graph.values[id];
  if (value.weight != BP_NONE) {
    if (auto known_data = known_data_of_weight(scope.graph.weights[value.weight])) {
      known = state_.keep(std::move(*known_data));
    }
  } else if (value.outer != BP_NONE && scope.parent) {
    known = known_data_of(*scope.parent, value.outer);
  }
  return known;
}

std::optional<std::vector<int64_t>> Context::numbers(size_t slot) {
  const KnownData* known = known_data(slot);
  if (!known) return {};
  std::vector<int64_t> numbers;
  for (const Scalar& scalar : *known) {
    if (!scalar.is_number()) return {};
    numbers.push_back(scalar.value);
  }
  return numbers;
}

std::optional<int64_t> Context::number(size_t slot) {
  const KnownData* known = known_data(slot);
  return known && known->size() == 1 && (*known)[0].is_number() ? std::optional((*known)[0].value) : std::nullopt;
}

std::optional<int64_t> Context::length(size_t slot) {
  const model::Type& type = input(slot);
  return type.rank == 1 && type.dims[0].extent >= 0 ? std::optional(type.dims[0].extent) : std::nullopt;
}

const model::Attribute* Context::attribute(std::string_view name) const {
  if (const model::Attribute* own = node_->find(name)) return own;
  const AttributeRule* rule = node_->schema ? node_->schema->attribute(name) : nullptr;
  return rule && rule->has_default ? &rule->fallback : nullptr;
}

int64_t Context::integer(std::string_view name) const {
  const auto& values = integers(name);
  return values.empty() ? 0 : values[0];
}

std::string_view Context::text(std::string_view name) const {
  const auto& values = texts(name);
  return values.empty() ? std::string_view() : std::string_view(values[0]);
}

const std::vector<int64_t>& Context::integers(std::string_view name) const {
  static const std::vector<int64_t> kNone;
  const model::Attribute* found = attribute(name);
  const auto* values = found ? std::get_if<std::vector<int64_t>>(&found->data) : nullptr;
  return values ? *values : kNone;
}

const std::vector<std::string>& Context::texts(std::string_view name) const {
  static const std::vector<std::string> kNone;
  const model::Attribute* found = attribute(name);
  const auto* values = found ? std::get_if<std::vector<std::string>>(&found->data) : nullptr;
  return values ? *values : kNone;
}

size_t Context::count(std::string_view name) const {
  const model::Attribute* found = attribute(name);
  return found ? std::visit([](const auto& values) { return values.size(); }, found->data) : 0;
}

const model::Weight* Context::tensor(std::string_view name) const {
  const model::Attribute* found = node_->find(name);
  const auto* indices = found ? std::get_if<std::vector<uint32_t>>(&found->data) : nullptr;
  bool valid = indices && !indices->empty() &&
               (found->type == BP_ATTR_TENSOR || found->type == BP_ATTR_SPARSE_TENSOR) &&
               indices->front() < scope_.graph.weights.size();
  return valid ? &scope_.graph.weights[indices->front()] : nullptr;
}

model::Graph* Context::subgraph(std::string_view name) const {
  const model::Attribute* found = node_->find(name);
  const auto* indices = found ? std::get_if<std::vector<uint32_t>>(&found->data) : nullptr;
  bool valid =
      indices && !indices->empty() && found->type == BP_ATTR_GRAPH && indices->front() < scope_.graph.subgraphs.size();
  return valid ? scope_.graph.subgraphs[indices->front()].get() : nullptr;
}

model::Type& Context::output(size_t slot) {
  return slot < outputs_.size() ? outputs_[slot] : spare_;
}

void Context::set_dtype(size_t slot, bp_dtype_t dtype) {
  output(slot).kind = BP_KIND_TENSOR;
  output(slot).dtype = dtype;
}

Status Context::set_dtype_number(size_t slot, int64_t dtype) {
  const Formal* formal = formal_at(node_->schema->outputs, slot);
  if (dtype <= 0 || dtype >= 64 || !formal || !(formal->dtypes >> dtype & 1)) {
    return fail("requests data type " + std::to_string(dtype) +
                ", but its output must be one of: " + (formal ? expected_text(*formal) : std::string()));
  }
  set_dtype(slot, static_cast<bp_dtype_t>(dtype));
  return {};
}

Status Context::set_shape(size_t slot, const Shape& shape) {
  model::Type& type = output(slot);
  type.kind = type.kind ? type.kind : BP_KIND_TENSOR;
  if (shape.size() > BP_MAX_RANK) {
    return fail("output " + std::to_string(slot) + " would have rank " + std::to_string(shape.size()) +
                "; the maximum is " + std::to_string(BP_MAX_RANK));
  }
  type.rank = static_cast<int32_t>(shape.size());
  type.dims.resize(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_number() && shape[i].value < 0) {
      return fail("output " + std::to_string(slot) + " would have shape " + describe(shape) +
                  ": extents cannot be negative");
    }
    type.dims[i] = expressions_.to_dim(shape[i]);
  }
  return {};
}

void Context::copy_shape(size_t slot, size_t input_slot) {
  const model::Type& from = input(input_slot);
  model::Type& type = output(slot);
  type.kind = type.kind ? type.kind : BP_KIND_TENSOR;
  type.rank = from.rank;
  type.dims = from.dims;
}

Status Context::set_rank(size_t slot, int64_t rank) {
  if (rank < 0 || rank > BP_MAX_RANK) {
    return fail("output " + std::to_string(slot) + " would have rank " + std::to_string(rank) + "; the maximum is " +
                std::to_string(BP_MAX_RANK));
  }
  return set_shape(slot, Shape(static_cast<size_t>(rank)));
}

void Context::set_known_data(size_t slot, KnownData known_data) {
  if (slot >= outputs_.size() || known_data.size() > kMaxKnownData) return;
  known_data_.resize(outputs_.size());
  known_data_[slot] = std::move(known_data);
}

void Context::copy_type(size_t slot, const model::Type& type) {
  output(slot) = type;
}

void Context::forget_declared_shape(size_t slot) {
  if (node_->output(slot) == BP_NONE) return;
  model::Type& declared = scope_.graph.values[node_->output(slot)].type;
  declared.rank = -1;
  declared.dims.clear();
}

Status Context::broadcast(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what) {
  if (a.is(1) || a.same(b)) {
    out = b;
  } else if (b.is(1)) {
    out = a;
  } else if (a.is_number() && b.is_number()) {
    return fail(std::string(what) + " " + std::to_string(a.value) + " and " + std::to_string(b.value) +
                " do not broadcast: they must be equal, or one of them 1");
  } else {
    out = a.is_number() ? a : b.is_number() ? b : Scalar();
  }
  return {};
}

Status Context::broadcast(const Shape& a, const Shape& b, Shape& out) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t offset = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    if (Status status = broadcast(longer[offset + i], shorter[i], result[offset + i]); !status.ok()) {
      return fail("shapes " + describe(a) + " and " + describe(b) +
                  " do not broadcast: extents, counted from the back, must be equal or 1");
    }
  }
  out = std::move(result);
  return {};
}

Status Context::merge(const Scalar& a, const Scalar& b, Scalar& out, std::string_view what) {
  if (a.is_number() && b.is_number() && a.value != b.value) {
    return fail(std::string(what) + " differ: " + std::to_string(a.value) + " and " + std::to_string(b.value));
  }
  out = a.is_number() ? a : b.is_number() ? b : a.kind == Scalar::kUnknown ? b : a;
  return {};
}

Status Context::axis(int64_t value, int64_t rank, int64_t& out) {
  if (value < -rank || value >= rank) {
    return fail("axis " + std::to_string(value) + " is outside of rank " + std::to_string(rank));
  }
  out = value < 0 ? value + rank : value;
  return {};
}

Status Context::axes(const std::vector<int64_t>& values, int64_t rank, std::vector<int64_t>& out) {
  out.clear();
  uint64_t seen = 0;
  for (int64_t value : values) {
    int64_t one;
    BP_TRY(axis(value, rank, one));
    if (one < 64 && (seen >> one & 1)) return fail("names axis " + std::to_string(value) + " twice");
    seen |= one < 64 ? uint64_t{1} << one : 0;
    out.push_back(one);
  }
  return {};
}

Status Context::expect_rank(size_t slot, int64_t least, int64_t most) {
  if (!ranked(slot) || (rank(slot) >= least && rank(slot) <= most)) return {};
  std::string wanted = least == most         ? std::to_string(least)
                       : most >= BP_MAX_RANK ? "at least " + std::to_string(least)
                                             : std::to_string(least) + " to " + std::to_string(most);
  const Formal* formal = node_->schema == nullptr ? nullptr : formal_at(node_->schema->inputs, slot);
  return fail("input " + std::string(formal ? formal->name : "") + " (" + std::to_string(slot) + ") has rank " +
              std::to_string(rank(slot)) + ", but it must be " + wanted);
}

Status Context::fail(std::string words) const {
  return Status(BP_INVALID_MODEL, node_->label() + ": " + std::move(words)).with_node(node_->id);
}

std::string Context::describe(const Shape& shape) const {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + expressions_.text(shape[i]);
  return text + "]";
}

}  // namespace backplane::ops
