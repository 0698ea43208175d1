// SPDX-License-Identifier: Apache-2.0
#include "import/builder.h"

#include <algorithm>

#include "base/names.h"
#include "import/import.h"
#include "ir/tensor.h"

namespace backplane::model {

Result<std::unique_ptr<Builder>> Builder::create(const std::map<std::string, uint32_t>& opsets) {
  auto model = std::make_shared<Model>();
  model->ir_version = 10;
  model->origin = "<built>";
  for (const auto& [domain, version] : opsets) {
    if (version == 0)
      return Status(BP_INVALID_ARGUMENT,
                    "opset version 0 of " + std::string(domain_name(domain)) + " is invalid: versions start at 1");
    model->opsets[domain == "ai.onnx" ? "" : domain] = version;
  }
  if (!model->opsets.contains("")) return Status(BP_INVALID_ARGUMENT, "the opset of ai.onnx (domain \"\") is missing");
  return std::unique_ptr<Builder>(new Builder(std::move(model), nullptr, nullptr));
}

Builder::Builder(std::shared_ptr<Model> model, std::unique_ptr<Graph> body, Builder* outer)
    : model_(std::move(model)), body_(std::move(body)), outer_(outer), graph_(body_ ? body_.get() : &model_->graph) {}

std::unique_ptr<Builder> Builder::create_body() {
  auto body = std::make_unique<Graph>();
  body->parent = graph_;
  return std::unique_ptr<Builder>(new Builder(model_, std::move(body), this));
}

Status Builder::taken() const {
  if (graph_) return {};
  return Status(BP_BAD_STATE, "the builder is empty: its graph was taken; create another one");
}

Owner& Builder::add_owner() {
  return model_->add_owner();
}

uint32_t Builder::symbol(std::string_view name) {
  if (name.empty() || !model_) return BP_NONE;
  std::vector<Symbol>& symbols = model_->graph.symbols;
  const auto found = std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == name; });
  if (found != symbols.end()) return static_cast<uint32_t>(found - symbols.begin());
  symbols.push_back({std::string(name)});
  return static_cast<uint32_t>(symbols.size() - 1);
}

bool Builder::sees(std::string_view name) const {
  return graph_ && (names_.contains(std::string(name)) || (outer_ && outer_->sees(name)));
}

Result<ValueId> Builder::add_value(std::string_view name, Type type) {
  BP_TRY(taken());
  std::string own(name);
  if (!is_utf8(own))
    return Status(BP_INVALID_ARGUMENT, "a value's name, " + std::to_string(own.size()) + " bytes long, is not UTF-8");
  while (own.empty() || (name.empty() && sees(own))) own = "value#" + std::to_string(model_->next_id++);
  const auto next = static_cast<ValueId>(graph_->values.size());
  if (!names_.emplace(own, next).second) return Status(BP_INVALID_ARGUMENT, "two values are named " + in_quotes(name));
  return graph_->add_value(std::move(own), std::move(type));
}

Result<ValueId> Builder::capture(std::string_view name) {
  const auto found = outer_->names_.find(std::string(name));
  ValueId outer = found == outer_->names_.end() ? BP_NONE : found->second;
  if (outer == BP_NONE) {
    BP_ASSIGN(outer, outer_->capture(name));
  }
  BP_ASSIGN(const ValueId value, add_value(name, outer_->graph_->values[outer].type));
  graph_->values[value].outer = outer;
  return value;
}

Result<ValueId> Builder::add_input(std::string_view name, Type type) {
  BP_TRY(taken());
  if (type.rank > BP_MAX_RANK) {
    return Status(BP_INVALID_ARGUMENT, "input " + in_quotes(name) + " has rank " + std::to_string(type.rank) +
                                           "; the maximum is " + std::to_string(BP_MAX_RANK));
  }
  if (!name.empty() && outer_ && outer_->sees(name)) return capture(name);
  BP_ASSIGN(const ValueId value, add_value(name, std::move(type)));
  graph_->inputs.push_back(value);
  return value;
}

Result<Weight> borrow_weight(Model& model, std::string_view label, bp_dtype_t dtype, std::span<const int64_t> dims,
                             const void* data, uint64_t bytes) {
  const std::string name = "constant " + in_quotes(label);
  if (dims.size() > BP_MAX_RANK)
    return Status(BP_INVALID_ARGUMENT, name + " has rank " + std::to_string(dims.size()) + "; the maximum is " +
                                           std::to_string(BP_MAX_RANK));
  const std::optional<uint64_t> count = element_count(dims);
  if (!count)
    return Status(BP_INVALID_ARGUMENT,
                  name + " has impossible extents: one is negative, or their product is too large");
  if (bytes > 0 && !data) return Status(BP_INVALID_ARGUMENT, name + " has no data: the pointer to it is NULL");
  Weight weight;
  weight.dtype = dtype;
  weight.dims.assign(dims.begin(), dims.end());
  weight.data = data;
  weight.bytes = bytes;
  weight.id = model.next_id++;
  if (dtype == BP_DTYPE_STRING) {
    if (!strings_fit(weight)) return Status(BP_INVALID_ARGUMENT, name + ": its string offsets do not fit its bytes");
    return weight;
  }
  const std::optional<uint64_t> need = tensor_bytes(dtype, dims);
  if (!need)
    return Status(BP_INVALID_ARGUMENT,
                  name + " has data type " + std::to_string(dtype) + ", which this build does not know");
  if (bytes != *need) {
    return Status(BP_INVALID_ARGUMENT,
                  name + " needs " + std::to_string(*need) + " bytes and has " + std::to_string(bytes));
  }
  return weight;
}

Result<ValueId> Builder::add_weight(std::string_view name, bp_dtype_t dtype, std::span<const int64_t> dims,
                                    const void* data, uint64_t bytes) {
  BP_TRY(taken());
  BP_ASSIGN(Weight weight, borrow_weight(*model_, name, dtype, dims, data, bytes));
  BP_ASSIGN(const ValueId value, add_value(name, type_of(weight)));
  graph_->values[value].weight = static_cast<WeightId>(graph_->weights.size());
  graph_->weights.push_back(std::move(weight));
  return value;
}

Result<uint32_t> Builder::add_attribute_tensor(bp_dtype_t dtype, std::span<const int64_t> dims, const void* data,
                                               uint64_t bytes) {
  BP_TRY(taken());
  BP_ASSIGN(Weight weight, borrow_weight(*model_, "(value of an attribute)", dtype, dims, data, bytes));
  graph_->weights.push_back(std::move(weight));
  return static_cast<uint32_t>(graph_->weights.size() - 1);
}

Result<uint32_t> Builder::add_attribute_body(Builder& body) {
  BP_TRY(taken());
  BP_TRY(body.taken());
  if (body.outer_ != this) return Status(BP_INVALID_ARGUMENT, "the subgraph's builder was created for another graph");
  graph_->subgraphs.push_back(std::move(body.body_));
  body.graph_ = nullptr;
  return static_cast<uint32_t>(graph_->subgraphs.size() - 1);
}

Result<ValueId> Builder::add_node(Node node, size_t outputs, std::span<const std::string_view> names) {
  BP_TRY(taken());
  if (node.domain == "ai.onnx") node.domain.clear();
  node.id = model_->next_id++;
  for (const ValueId input : node.inputs) {
    if (input != BP_NONE && input >= graph_->values.size()) {
      return Status(BP_INVALID_ARGUMENT, node.label() + " reads value " + std::to_string(input) + ", but only " +
                                             std::to_string(graph_->values.size()) + " values were created");
    }
  }
  for (const std::string* word : {&node.op_type, &node.domain, &node.name, &node.overload}) {
    if (!is_utf8(*word)) return Status(BP_INVALID_ARGUMENT, "a node's operator, domain or name is not UTF-8");
  }
  const auto first = static_cast<ValueId>(graph_->values.size());
  for (size_t i = 0; i < outputs; ++i) {
    BP_ASSIGN(const ValueId output, add_value(i < names.size() ? names[i] : std::string_view(), {}));
    node.outputs.push_back(output);
  }
  graph_->nodes.push_back(std::move(node));
  return first;
}

Status Builder::add_output(ValueId value) {
  BP_TRY(taken());
  if (value >= graph_->values.size()) {
    return Status(BP_INVALID_ARGUMENT, "output " + std::to_string(value) + " is not one of the " +
                                           std::to_string(graph_->values.size()) + " values that were created");
  }
  graph_->outputs.push_back(value);
  return {};
}

Result<std::shared_ptr<Model>> Builder::finish() {
  BP_TRY(taken());
  if (outer_)
    return Status(BP_BAD_STATE, "this builder builds a subgraph: pass it to a node, and finish the outermost builder");
  graph_ = nullptr;
  const std::shared_ptr<Model> model = std::move(model_);
  BP_TRY(canonicalize(*model));
  return model;
}

}  // namespace backplane::model
