// SPDX-License-Identifier: Apache-2.0
// Helpers for the tests of shape inference.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "ops/infer/infer.h"
#include "ops/schema/schema.h"

namespace backplane::ops {

// Builds a model with one graph, call by call. Extents are numbers, symbol names, or "?".
class Builder {
 public:
  model::Model model;
  model::Graph* graph = &model.graph;

  model::Type type(bp_dtype_t dtype, const std::vector<std::string>& dims) {
    model::Type type;
    type.kind = BP_KIND_TENSOR;
    type.dtype = dtype;
    type.rank = static_cast<int32_t>(dims.size());
    for (const std::string& dim : dims) {
      if (dim == "?") {
        type.dims.push_back({-1, BP_NONE, 0});
      } else if (std::isdigit(dim[0])) {
        type.dims.push_back({std::stoll(dim), BP_NONE, 0});
      } else {
        auto& symbols = model.graph.symbols;
        uint32_t at = 0;
        while (at < symbols.size() && symbols[at].name != dim) ++at;
        if (at == symbols.size()) symbols.push_back({dim, 0, INT64_MAX});
        type.dims.push_back({-1, at, 0});
      }
    }
    return type;
  }
  model::ValueId input(std::vector<std::string> dims, bp_dtype_t dtype = BP_DTYPE_FLOAT) {
    model::ValueId id = graph->add_value("in" + std::to_string(graph->values.size()), type(dtype, dims));
    graph->inputs.push_back(id);
    return id;
  }
  model::ValueId ints(std::vector<int64_t> values, bool scalar = false) {
    std::vector<int64_t> dims;
    if (!scalar) dims.push_back(static_cast<int64_t>(values.size()));
    return graph->add_constant("ints", BP_DTYPE_INT64, dims, values.data(), values.size() * 8, model.next_id++);
  }
  model::ValueId floats(std::vector<float> values) {
    return graph->add_constant("floats", BP_DTYPE_FLOAT, {static_cast<int64_t>(values.size())}, values.data(),
                               values.size() * 4, model.next_id++);
  }
  std::vector<model::ValueId> nodes(std::string op, const std::vector<model::ValueId>& inputs, size_t outputs,
                                    std::vector<model::Attribute> attributes = {}, std::string domain = "") {
    model::Node node;
    node.op_type = op;
    node.domain = domain;
    node.name = op;
    node.id = graph->nodes.size();
    node.schema = newest_schema(domain, op);
    node.inputs = inputs;
    for (size_t i = 0; i < outputs; ++i)
      node.outputs.push_back(graph->add_value("v" + std::to_string(graph->values.size())));
    for (model::Attribute& attribute : attributes) node.set(std::move(attribute));
    graph->nodes.push_back(node);
    return {node.outputs.begin(), node.outputs.end()};
  }
  model::ValueId node(std::string op, const std::vector<model::ValueId>& inputs,
                      std::vector<model::Attribute> attributes = {}) {
    return nodes(std::move(op), inputs, 1, std::move(attributes))[0];
  }
  Status run() { return infer(model); }
  void expect_ok() {
    Status status = run();
    ASSERT_TRUE(status.ok()) << status.text();
  }
  // The type as text: "float[2,W,?]", or "int64" if the rank is unknown.
  std::string text(model::ValueId id) { return text(graph->values[id].type); }
  std::string text(const model::Type& type) {
    if (type.kind == 0) return "unknown";
    if (type.kind != BP_KIND_TENSOR) return "container of " + (type.element ? text(*type.element) : "unknown");
    static constexpr const char* kNames[] = {"?",     "float", "uint8", "int8",   "uint16",
                                             "int16", "int32", "int64", "string", "bool"};
    std::string text = type.dtype < 10 ? kNames[type.dtype] : "other";
    if (type.rank < 0) return text;
    text += '[';
    for (size_t i = 0; i < type.dims.size(); ++i) {
      const bp_dim_t& dim = type.dims[i];
      text += i ? "," : "";
      text += dim.extent >= 0         ? std::to_string(dim.extent)
              : dim.symbol == BP_NONE ? "?"
                                      : model.graph.symbols[dim.symbol].name;
    }
    return text + "]";
  }
  std::vector<int64_t> constant(model::ValueId id) {
    const model::Weight* weight = graph->weight_of(id);
    if (!weight) return {};
    auto* data = static_cast<const int64_t*>(weight->data);
    return {data, data + weight->bytes / 8};
  }
};

}  // namespace backplane::ops
