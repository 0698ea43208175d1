// SPDX-License-Identifier: Apache-2.0
#include "ops/upgrade/rewrite.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"

namespace backplane::ops {
namespace {

template <class T>
ValueId add(Rewrite& r, bp_dtype_t dtype, std::vector<int64_t> dims, const T* values, size_t count) {
  const uint64_t id = r.model.next_id++;
  return r.graph.add_constant("const#" + std::to_string(id), dtype, std::move(dims), values, count * sizeof(T), id);
}

}  // namespace

ValueId Rewrite::constant(const std::vector<int64_t>& values) {
  return add(*this, BP_DTYPE_INT64, {static_cast<int64_t>(values.size())}, values.data(), values.size());
}

ValueId Rewrite::constant(const std::vector<float>& values) {
  return add(*this, BP_DTYPE_FLOAT, {static_cast<int64_t>(values.size())}, values.data(), values.size());
}

ValueId Rewrite::scalar(int64_t value) {
  return add(*this, BP_DTYPE_INT64, {}, &value, 1);
}

ValueId Rewrite::like(double value, ValueId x) {
  const auto single = static_cast<float>(value);
  const bool fits = std::abs(value) <= INT32_MAX;
  const auto half = fits ? static_cast<int32_t>(value) : 0;
  const auto whole = int64_t{half};
  const bp_dtype_t type = dtype(x);
  if (type == BP_DTYPE_FLOAT) return add(*this, type, {}, &single, 1);
  if (type == BP_DTYPE_DOUBLE) return add(*this, type, {}, &value, 1);
  if (type == BP_DTYPE_INT64 && fits) return add(*this, type, {}, &whole, 1);
  if (type == BP_DTYPE_INT32 && fits) return add(*this, type, {}, &half, 1);
  return emit("CastLike", {add(*this, BP_DTYPE_FLOAT, {}, &single, 1), x});
}

Node Rewrite::make(std::string_view op, model::Operands inputs, std::vector<Attribute> attributes) {
  Node made;
  made.op_type = op;
  made.id = model.next_id++;
  made.call = node.call;
  made.name = (node.name.empty() ? node.op_type : node.name) + "/" + made.op_type;
  made.schema = newest_schema("", op);
  made.since_version = made.schema->since_version;
  made.inputs = std::move(inputs);
  for (Attribute& attribute : attributes) made.set(std::move(attribute));
  return made;
}

ValueId Rewrite::emit(std::string_view op, model::Operands inputs, std::vector<Attribute> attributes) {
  Node made = make(op, std::move(inputs), std::move(attributes));
  const ValueId output = graph.add_value(made.name + "#" + std::to_string(made.id));
  made.outputs = {output};
  out_.push_back(std::move(made));
  return output;
}

void Rewrite::emit_after(size_t slot, std::string_view op, const std::vector<ValueId>& more,
                         std::vector<Attribute> attributes) {
  Node made = make(op, {}, std::move(attributes));
  const ValueId wanted = node.outputs[slot];
  node.outputs[slot] = graph.add_value(made.name + "#" + std::to_string(made.id));
  made.inputs = {node.outputs[slot]};
  for (const ValueId value : more) made.inputs.push_back(value);
  made.outputs = {wanted};
  after_.insert(after_.begin(), std::move(made));
}

void Rewrite::set_input(size_t slot, ValueId value) {
  if (node.inputs.size() <= slot) node.inputs.resize(slot + 1, BP_NONE);
  node.inputs[slot] = value;
}

void Rewrite::to_input(std::string_view name, size_t slot) {
  const Attribute* attribute = node.find(name);
  if (!attribute) return;
  set_input(slot, constant(attribute->ints()));
  node.erase(name);
}

void Rewrite::become(std::string_view op, uint32_t opset) {
  node.op_type = op;
  node.schema = find_schema(node.domain, op, opset);
}

bp_dtype_t Rewrite::dtype(ValueId value) const {
  return value == BP_NONE ? BP_DTYPE_UNDEFINED : graph.values[value].type.dtype;
}

int32_t Rewrite::rank(ValueId value) const {
  const model::Type& type = graph.values[value].type;
  return type.kind == BP_KIND_TENSOR ? type.rank : -1;
}

ValueId Rewrite::rank_of(ValueId value) {
  if (const int32_t known = rank(value); known >= 0) return scalar(known);
  return emit("Size", {emit("Shape", {value})});
}

ValueId Rewrite::unsqueeze(ValueId value, const std::vector<int64_t>& axes) {
  if (axes.empty()) return value;
  if (const model::Weight* weight = graph.weight_of(value)) {  // a constant can share its bytes under the new shape
    graph.weights[graph.values[value].weight].consumed = true;
    model::Weight copy = *weight;
    for (const int64_t axis : axes) copy.dims.insert(copy.dims.begin() + axis, 1);
    copy.id = model.next_id++;
    const std::string name = graph.values[value].name + "#" + std::to_string(copy.id);
    return graph.add_constant(name, std::move(copy));
  }
  return emit("Unsqueeze", {value, constant(axes)});
}

bool Rewrite::is_read(size_t output) const {
  const ValueId value = node.output(output);
  return value != BP_NONE && value < read_.size() && read_[value];
}

void Rewrite::note(std::string problem) {
  model.note(std::move(problem));
}

Status Rewrite::unsupported(std::string_view why) const {
  return Status(BP_UNSUPPORTED, node.label() + " cannot be upgraded from its form of opset " +
                                    std::to_string(node.schema->since_version) + ": " + std::string(why))
      .with_node(node.id);
}

Status Rewrite::invalid(std::string_view why) const {
  return Status(BP_INVALID_MODEL, node.label() + ": " + std::string(why)).with_node(node.id);
}

}  // namespace backplane::ops
