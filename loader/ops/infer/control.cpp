// SPDX-License-Identifier: Apache-2.0
// Operators with subgraphs. The node determines the types of a subgraph's inputs; then the subgraph is inferred like
// any graph.
#include "base/counted.h"
#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

using model::Graph;
using model::Type;

// Sets the type of a subgraph's input. Keeps the declared type where it is more specific.
Status set_body_input(Context& c, Graph& graph, size_t slot, Type type) {
  Type& declared = graph.values[graph.inputs[slot]].type;
  std::string problem;
  if (!merge_types(type, declared, problem)) {
    return c.fail("input '" + graph.values[graph.inputs[slot]].name +
                  "' of its subgraph does not fit the value that is passed: " + problem);
  }
  declared = std::move(type);
  return {};
}

const Type& result(const Graph& graph, size_t slot) {
  static const Type kUnknown;
  return graph.outputs[slot] == BP_NONE ? kUnknown : graph.values[graph.outputs[slot]].type;
}

Type without_shape(Type type) {
  type.rank = -1;
  type.dims.clear();
  if (type.element) type.element = std::make_shared<Type>(without_shape(*type.element));
  return type;
}

Type scalar_of(bp_dtype_t dtype) {
  Type type;
  type.kind = BP_KIND_TENSOR;
  type.dtype = dtype;
  type.rank = 0;
  return type;
}

Status expect_outputs(Context& c, const Graph& graph, size_t count) {
  if (graph.outputs.size() == count) return {};
  return c.fail("its subgraph '" + graph.name + "' has " + counted(graph.outputs.size(), "result") + " instead of " +
                std::to_string(count));
}

Status expect_inputs(Context& c, const Graph& graph, size_t count) {
  if (graph.inputs.size() == count) return {};
  return c.fail("its subgraph '" + graph.name + "' takes " + std::to_string(graph.inputs.size()) +
                " inputs, but gets " + std::to_string(count));
}

// Whether two shapes contradict each other.
bool exclude_each_other(const Type& a, const Type& b) {
  if (a.rank < 0 || b.rank < 0) return false;
  if (a.rank != b.rank) return true;
  for (size_t i = 0; i < a.dims.size(); ++i) {
    const int64_t x = a.dims[i].extent, y = b.dims[i].extent;
    if (x >= 0 && y >= 0 && x != y) return true;
  }
  return false;
}

// Replaces the nodes of a branch that is never taken with empty tensors of the data types that the other branch
// returns. Returns false if the other branch returns anything but tensors of known data types.
bool empty_branch(Context& c, Graph& graph, const Graph& taken) {
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    if (result(taken, slot).kind != BP_KIND_TENSOR || !result(taken, slot).dtype) return false;
  }
  graph.nodes.clear();
  graph.calls.clear();
  graph.subgraphs.clear();
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    static constexpr int64_t kOffsets[] = {0};  // strings have one offset more than elements
    const bp_dtype_t dtype = result(taken, slot).dtype;
    const uint64_t id = c.new_id(), bytes = dtype == BP_DTYPE_STRING ? sizeof kOffsets : 0;
    graph.outputs[slot] = graph.add_constant("never#" + std::to_string(id), dtype, {0}, kOffsets, bytes, id);
  }
  return true;
}

Status branch(Context& c) {
  Graph *yes = c.subgraph("then_branch"), *no = c.subgraph("else_branch");
  if (!yes || !no) return c.fail(std::string("has no attribute ") + (!yes ? "then_branch" : "else_branch"));
  for (Graph* graph : {yes, no}) {
    BP_TRY(expect_inputs(c, *graph, 0));
    BP_TRY(expect_outputs(c, *graph, c.outputs()));
  }
  const auto condition = c.number(0);  // if the condition is known, only the branch that it selects affects the result
  Graph &first = condition && *condition == 0 ? *no : *yes, &second = &first == yes ? *no : *yes;
  BP_TRY(c.infer_subgraph(first));
  // Exporters guard operators by conditions on shapes: torch, for example, squeezes an axis only if its extent is 1. If
  // the condition is false for the shapes of this model, inference of the branch that is not taken may fail.
  if (Status status = c.infer_subgraph(second); !status.ok() && !(condition && empty_branch(c, second, first)))
    return status;
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    Type type = result(first, slot);
    // Exporters declare the shape of one branch for both branches. torch, for example, declares a scalar where the
    // other branch returns [1].
    if (!condition && exclude_each_other(type, result(*no, slot))) c.forget_declared_shape(slot);
    if (!condition && !join_types(type, result(*no, slot))) {
      return c.fail("its branches return a " + type_text(type) + " and a " + type_text(result(*no, slot)) +
                    " for output " + std::to_string(slot) + ": the types must match");
    }
    c.copy_type(slot, type);
  }
  return {};
}

// The body maps (iteration, condition, carried...) to (condition, carried..., scanned...). The shapes of carried values
// may change from one iteration to the next.
Status loop(Context& c) {
  Graph* body = c.subgraph("body");
  if (!body) return c.fail("has no attribute body");
  if (c.inputs() < 2) return c.fail("has " + counted(c.inputs(), "input") + ", but it needs at least 2: M and cond");
  size_t carried = c.inputs() - 2;
  if (c.outputs() < carried)
    return c.fail("has " + counted(c.outputs(), "output") + ", but it must have one for each of " +
                  counted(carried, "carried value"));
  BP_TRY(expect_inputs(c, *body, carried + 2));
  BP_TRY(expect_outputs(c, *body, c.outputs() + 1));
  BP_TRY(set_body_input(c, *body, 0, without_shape(scalar_of(BP_DTYPE_INT64))));
  BP_TRY(set_body_input(c, *body, 1, without_shape(scalar_of(BP_DTYPE_BOOL))));
  for (size_t i = 0; i < carried; ++i) {
    // Some exporters pass an initial value of another shape, which the first iteration replaces without reading it.
    Type& declared = body->values[body->inputs[i + 2]].type;
    if (exclude_each_other(declared, c.input(i + 2))) declared = without_shape(declared);
    BP_TRY(set_body_input(c, *body, i + 2, without_shape(c.input(i + 2))));
  }
  BP_TRY(c.infer_subgraph(*body));
  for (size_t i = 0; i < carried; ++i) {
    Type type = result(*body, i + 1);
    const Type& initial = c.input(i + 2);
    // An optional may start empty and be filled by the body.
    bool filled = initial.kind == BP_KIND_OPTIONAL && type.kind != BP_KIND_OPTIONAL;
    if (initial.kind && !filled && !join_types(type, initial)) {
      return c.fail("carries a " + type_text(initial) + " in, but its body returns a " + type_text(type));
    }
    c.copy_type(i, type);
  }
  for (size_t slot = carried; slot < c.outputs(); ++slot) {
    Type type = result(*body, slot + 1);
    if (type.rank >= 0 && type.rank < BP_MAX_RANK) {
      // The number of iterations is unknown, because the body may end the loop in any of them.
      type.dims.insert(type.dims.begin(), {-1, BP_NONE, 0});
      ++type.rank;
    } else {
      type = without_shape(type);
    }
    c.copy_type(slot, type);
  }
  return {};
}

// The body maps (states..., a slice of each scanned input...) to (states..., a slice of each scanned output...).
Status scan(Context& c) {
  Graph* body = c.subgraph("body");
  int64_t scanned = c.integer("num_scan_inputs");
  if (!body) return c.fail("has no attribute body");
  if (scanned < 1 || scanned > static_cast<int64_t>(c.inputs())) {
    return c.fail("num_scan_inputs is " + std::to_string(scanned) +
                  ", but it must be from 1 to the number of inputs, " + std::to_string(c.inputs()));
  }
  size_t states = c.inputs() - static_cast<size_t>(scanned);
  if (c.outputs() < states)
    return c.fail("has " + counted(c.outputs(), "output") + ", but it must have one for each of " +
                  counted(states, "state"));
  BP_TRY(expect_inputs(c, *body, c.inputs()));
  BP_TRY(expect_outputs(c, *body, c.outputs()));
  const auto &in_axes = c.integers("scan_input_axes"), &out_axes = c.integers("scan_output_axes");
  Scalar length;
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    Type type = c.input(slot);
    if (slot >= states && type.rank >= 0) {
      size_t k = slot - states;
      int64_t axis;
      BP_TRY(c.axis(k < in_axes.size() ? in_axes[k] : 0, type.rank, axis));
      BP_TRY(c.merge(length, c.dim(slot, axis), length, "the lengths of scanned inputs"));
      type.dims.erase(type.dims.begin() + axis);
      --type.rank;
    }
    BP_TRY(set_body_input(c, *body, slot, std::move(type)));
  }
  BP_TRY(c.infer_subgraph(*body));
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    Type type = result(*body, slot);
    if (slot < states) {
      std::string problem;
      if (!merge_types(type, c.input(slot), problem))
        return c.fail("its body changes the type of state " + std::to_string(slot) + ": " + problem);
    } else if (type.rank >= 0 && type.rank < BP_MAX_RANK) {
      size_t k = slot - states;
      int64_t axis;
      BP_TRY(c.axis(k < out_axes.size() ? out_axes[k] : 0, type.rank + 1, axis));
      type.dims.insert(type.dims.begin() + axis, c.math().to_dim(length));
      ++type.rank;
    } else {
      type = without_shape(type);
    }
    c.copy_type(slot, type);
  }
  return {};
}

// The body maps one element of each sequence, and the other inputs unchanged, to one element of each result.
Status map_sequence(Context& c) {
  Graph* body = c.subgraph("body");
  if (!body) return c.fail("has no attribute body");
  BP_TRY(expect_inputs(c, *body, c.inputs()));
  BP_TRY(expect_outputs(c, *body, c.outputs()));
  for (size_t slot = 0; slot < c.inputs(); ++slot) {
    const Type& type = c.input(slot);
    bool sequence = type.kind == BP_KIND_SEQUENCE;
    BP_TRY(set_body_input(c, *body, slot, !sequence ? type : type.element ? *type.element : Type()));
  }
  BP_TRY(c.infer_subgraph(*body));
  for (size_t slot = 0; slot < c.outputs(); ++slot) {
    Type type;
    type.kind = BP_KIND_SEQUENCE;
    if (result(*body, slot).kind) type.element = std::make_shared<Type>(result(*body, slot));
    c.copy_type(slot, type);
  }
  return {};
}

}  // namespace

std::span<const RuleRow> control_rules() {
  static constexpr RuleRow kRows[] = {
      {"", "If", branch},
      {"", "Loop", loop},
      {"", "Scan", scan},
      {"", "SequenceMap", map_sequence},
  };
  return kRows;
}

}  // namespace backplane::ops
