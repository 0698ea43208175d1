// SPDX-License-Identifier: Apache-2.0
// Imports a model: one call for each stage from bytes to the canonical graph.
#include "import/import.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/names.h"
#include "import/builder.h"
#include "import/parse.h"
#include "ir/hash.h"
#include "ops/infer/context.h"
#include "ops/infer/infer.h"
#include "ops/schema/schema.h"
#include "ops/upgrade/upgrade.h"
#include "passes/gradient.h"
#include "passes/passes.h"

namespace backplane::model {

namespace {

// Adds each of `source.weights` as a constant, which replaces the model's initializer or graph input of the same name.
Status add_weights(Model& model, const Source& source) {
  Graph& graph = model.graph;
  for (const auto& [name, tensor] : source.weights) {
    const std::string called = "weight " + in_quotes(name);
    const auto value = std::ranges::find(graph.values, name, &Value::name);
    const ValueId id = static_cast<ValueId>(value - graph.values.begin());
    const auto input = std::ranges::find(graph.inputs, id);
    if (value == graph.values.end() || (value->weight == BP_NONE && input == graph.inputs.end()))
      return {BP_NOT_FOUND, called + ": the model has neither an initializer nor an input of that name"};
    if (tensor.layout != BP_LAYOUT_DENSE || tensor.buffer.memory)
      return {BP_UNSUPPORTED, called + " must be dense and in host memory"};
    if (tensor.rank && !tensor.extents)
      return {BP_INVALID_ARGUMENT,
              called + " has rank " + std::to_string(tensor.rank) + ", but its pointer to extents is NULL"};
    const char* const bytes = static_cast<const char*>(tensor.buffer.address);
    BP_ASSIGN(Weight weight, borrow_weight(model, name, tensor.dtype, {tensor.extents, tensor.rank},
                                           bytes ? bytes + tensor.buffer.offset : nullptr, tensor.buffer.bytes));
    Type given = type_of(weight);
    std::string problem;
    if (!ops::merge_types(given, value->type, problem))
      return {BP_TYPE_MISMATCH, called + " and what the model declares differ: " + problem};
    if (value->weight == BP_NONE) {
      graph.inputs.erase(input);
      value->weight = static_cast<WeightId>(graph.weights.size());
      value->type = type_of(weight);
      graph.weights.push_back(std::move(weight));
    } else {
      graph.weights[value->weight] = std::move(weight);
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Model>> import(const Source& source) {
  auto parsed = parse(source);
  if (!parsed.ok()) {
    const bool is_named = source.path.empty() || parsed.status().text().find(source.path) != std::string_view::npos;
    return is_named ? parsed.take_status() : parsed.take_status().context("model " + in_quotes(source.path));
  }
  std::shared_ptr<Model> model = parsed.take();
  BP_TRY(add_weights(*model, source));
  if (Status status = canonicalize(*model, source.exact); !status.ok())
    return std::move(status).context("model " + in_quotes(model->origin));
  return model;
}

Status canonicalize(Model& model, bool exact) try {
  model.hashes = std::make_shared<WeightHashes>();
  BP_TRY(check(model));
  BP_TRY(inline_functions(model));
  BP_TRY(lift_constants(model));
  share_carried(model);
  BP_TRY(ops::upgrade(model));
  BP_TRY(differentiate(model));
  BP_TRY(ops::infer(model, {.exact = exact}));
  select_branches(model);
  merge_legacy_softmax(model);
  prune(model);
  find_function_calls(model);
  return {};
} catch (Budget::Exhausted& stop) {
  return std::move(stop.status);
} catch (const std::bad_alloc&) {
  return Status(BP_RESOURCE_EXHAUSTED, "no memory left for the model");
}

uint32_t canonical_opset() {
  return ops::newest_opset("");
}

}  // namespace backplane::model
