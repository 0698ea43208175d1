// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan and SequenceMap: nodes that run subgraphs. The code calls a subgraph a body.
#include <algorithm>
#include <limits>

#include "kernels/common/values.h"
#include "kernels/control/stack.h"
#include "runtime/body.h"
#include "runtime/coverage.h"
#include "runtime/planner.h"

namespace backplane::cpu {

namespace {

std::optional<bool> truth(const Value& value) {
  if (value.kind != BP_KIND_TENSOR || value.tensor.dtype != BP_DTYPE_BOOL || value.tensor.shape.elements() != 1)
    return std::nullopt;
  return *value.tensor.as<const uint8_t>() != 0;  // any byte except 0 is true
}

// Returns a scalar for an input of a body, in the declared rank: some models declare [1] instead of a scalar.
template <class T>
Value scalar_for(const Body& body, uint32_t input, bp_dtype_t dtype, T number) {
  const Program& program = body.program();
  return make_scalar(dtype, number, program.type_of(program.inputs()[input]).rank == 1 ? Shape{1} : Shape());
}

const bp_type_t& output_type(const Body& body, uint32_t output) {
  return body.program().type_of(body.program().graph().outputs[output]);
}

// ---- If

Verdict supports_if(const Node& node) {
  if (Verdict verdict = expect_operands(node, 1, 1); !verdict) return verdict;
  if (Verdict verdict = supports_body(node, "then_branch", 0, node.output_count()); !verdict) return verdict;
  return supports_body(node, "else_branch", 0, node.output_count());
}

std::unique_ptr<Kernel> create_if(const Node& node) {
  const Body& then_body = node.body("then_branch");
  const Body& else_body = node.body("else_branch");
  return make_value_kernel([&](Values inputs, Values outputs, const RunContext& context) -> Failed {
    std::optional<bool> condition = truth(inputs[0]);
    if (!condition) return "cond is " + describe_value(inputs[0]) + "; it must be one BOOL";
    Values captured = inputs.subspan(1);
    if (*condition)
      Body::Use(then_body, captured.first(then_body.captures().size())).run({}, outputs, context);
    else
      Body::Use(else_body, captured.last(else_body.captures().size())).run({}, outputs, context);
    return std::nullopt;
  });
}

// ---- Loop: the body takes (iteration, condition, carried...) and returns (condition, carried..., stacked...)

Verdict supports_loop(const Node& node) {
  if (node.input_count() < 2 || node.output_count() + 2 < node.input_count())
    return no(BP_REASON_OPSET, "it has " + std::to_string(node.input_count()) + " inputs and " +
                                   std::to_string(node.output_count()) +
                                   " outputs; it needs two inputs, and an output for each further input");
  for (uint32_t i = 2; i < node.input_count(); ++i) {
    if (!node.has_input(i)) return no(BP_REASON_OPSET, "input " + std::to_string(i) + " is missing");
  }
  return supports_body(node, "body", node.input_count(), node.output_count() + 1);
}

std::unique_ptr<Kernel> create_loop(const Node& node) {
  const Body& body = node.body("body");
  return make_value_kernel([&](Values inputs, Values outputs, const RunContext& context) -> Failed {
    size_t carried = body.input_count() - 2;
    int64_t rounds = std::numeric_limits<int64_t>::max();
    bool goes_on = true;
    if (inputs[0].present()) {
      std::optional<int64_t> given = integer(inputs[0]);
      if (!given) return "the trip count M is " + describe_value(inputs[0]) + "; it must be one INT64";
      rounds = *given;
    }
    if (inputs[1].present()) {
      std::optional<bool> given = truth(inputs[1]);
      if (!given) return "cond is " + describe_value(inputs[1]) + "; it must be one BOOL";
      goes_on = *given;
    }
    Body::Use use(body, inputs.subspan(body.input_count()));
    std::vector<Value> in(body.input_count()), out(body.output_count());
    std::vector<Stack> stacks(outputs.size() - carried);
    for (size_t i = 0; i < carried; ++i) outputs[i] = std::move(inputs[i + 2]);
    for (int64_t round = 0; round < rounds && goes_on; ++round) {
      in[0] = scalar_for(body, 0, BP_DTYPE_INT64, round);
      in[1] = scalar_for(body, 1, BP_DTYPE_BOOL, true);
      for (size_t i = 0; i < carried; ++i) in[i + 2] = std::move(outputs[i]);
      use.run(in, out, context);
      std::optional<bool> condition = truth(out[0]);
      if (!condition) return "the body returned " + describe_value(out[0]) + " as condition; it must be one BOOL";
      goes_on = *condition;
      for (size_t i = 0; i < carried; ++i) outputs[i] = std::move(out[i + 1]);
      for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push(std::move(out[carried + 1 + i]));
    }
    for (size_t i = 0; i < stacks.size(); ++i) {
      const bp_type_t& type = output_type(body, static_cast<uint32_t>(carried + 1 + i));
      outputs[carried + i] = stacks[i].finish(body.program().graph(), type, 0, false);
    }
    return std::nullopt;
  });
}

// The maximum number of iterations over empty slices. Empty slices cost no memory, so the budget does not
// limit the iterations.
constexpr int64_t kMaxEmptyRounds = int64_t{1} << 20;

// ---- Scan: the body takes (states..., slices of the scanned inputs...)
// and returns (states..., slices of the outputs...)

Verdict supports_scan(const Node& node) {
  auto scanned = node.attr("num_scan_inputs", int64_t{0});
  if (scanned < 1 || scanned > node.input_count())
    return no(BP_REASON_ATTRIBUTE, "num_scan_inputs is " + std::to_string(scanned) + "; it must be 1 to " +
                                       std::to_string(node.input_count()) + ", the number of inputs");
  if (const int64_t states = node.input_count() - scanned; node.output_count() < states)
    return no(BP_REASON_ATTRIBUTE, "it has " + std::to_string(states) + " states and " +
                                       std::to_string(node.output_count()) + " outputs; each state needs an output");
  if (Verdict verdict = expect_operands(node, node.input_count(), 0); !verdict) return verdict;
  return supports_body(node, "body", node.input_count(), node.output_count());
}

// Returns entry `i` of an attribute's list, or 0 if the list is shorter.
int64_t entry(const std::vector<int64_t>& list, size_t i) {
  return i < list.size() ? list[i] : 0;
}

std::unique_ptr<Kernel> create_scan(const Node& node) {
  const Body& body = node.body("body");
  size_t states = node.input_count() - static_cast<size_t>(node.attr("num_scan_inputs", int64_t{0}));
  return make_value_kernel(
      [&body, states, input_axes = node.ints("scan_input_axes"), input_directions = node.ints("scan_input_directions"),
       output_axes = node.ints("scan_output_axes"), output_directions = node.ints("scan_output_directions")](
          Values inputs, Values outputs, const RunContext& context) -> Failed {
        size_t scanned = body.input_count() - states;
        std::vector<int> axes(scanned);
        int64_t rounds = 0;
        for (size_t i = 0; i < scanned; ++i) {
          const Shape& shape = inputs[states + i].tensor.shape;
          axes[i] = axis_of(entry(input_axes, i), shape.rank());
          if (axes[i] < 0)
            return "axis " + std::to_string(entry(input_axes, i)) + " is out of range for an input of extents " +
                   to_string(shape);
          if (i == 0) rounds = shape[axes[0]];
          if (shape[axes[i]] != rounds) {
            return "scanned inputs have " + std::to_string(rounds) + " and " + std::to_string(shape[axes[i]]) +
                   " slices; the numbers must be equal";
          }
        }
        const bool empty = std::ranges::all_of(inputs.subspan(states, scanned),
                                               [](const Value& input) { return input.tensor.shape.elements() == 0; });
        if (empty && rounds > kMaxEmptyRounds)
          return "scanned inputs have " + std::to_string(rounds) + " slices without elements; at most " +
                 std::to_string(kMaxEmptyRounds) + " are supported";
        Body::Use use(body, inputs.subspan(body.input_count()));
        std::vector<Value> in(body.input_count()), out(body.output_count());
        std::vector<Stack> stacks(outputs.size() - states);
        for (size_t i = 0; i < states; ++i) outputs[i] = std::move(inputs[i]);
        for (int64_t round = 0; round < rounds; ++round) {
          for (size_t i = 0; i < states; ++i) in[i] = std::move(outputs[i]);
          for (size_t i = 0; i < scanned; ++i) {
            int64_t at = entry(input_directions, i) != 0 ? rounds - 1 - round : round;
            Value part = slice(inputs[states + i], axes[i], at, at + 1);
            Shape shape;
            for (int d = 0; d < part.tensor.shape.rank(); ++d) {
              if (d != axes[i]) shape.push_back(part.tensor.shape[d]);
            }
            in[states + i] = reshaped(std::move(part), shape);
          }
          use.run(in, out, context);
          for (size_t i = 0; i < states; ++i) outputs[i] = std::move(out[i]);
          for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push(std::move(out[states + i]));
        }
        for (size_t i = 0; i < stacks.size(); ++i) {
          const bp_type_t& type = output_type(body, static_cast<uint32_t>(states + i));
          outputs[states + i] =
              stacks[i].finish(body.program().graph(), type, entry(output_axes, i), entry(output_directions, i) != 0);
        }
        return std::nullopt;
      });
}

// ---- SequenceMap: the body takes one element of each sequence, and each other input as a whole

Verdict supports_map(const Node& node) {
  if (Verdict verdict = expect_operands(node, node.input_count(), 1); !verdict) return verdict;
  if (node.input_type(0).kind != BP_KIND_SEQUENCE) return no(BP_REASON_DTYPE, "input 0 is not a sequence");
  return supports_body(node, "body", node.input_count(), node.output_count());
}

std::unique_ptr<Kernel> create_map(const Node& node) {
  const Body& body = node.body("body");
  return make_value_kernel([&](Values inputs, Values outputs, const RunContext& context) -> Failed {
    size_t rounds = inputs[0].elements->values.size();
    for (const Value& input : inputs.first(body.input_count())) {
      if (input.kind == BP_KIND_SEQUENCE && input.elements->values.size() != rounds) {
        return "the sequences have " + std::to_string(rounds) + " and " +
               std::to_string(input.elements->values.size()) + " elements; the numbers must be equal";
      }
    }
    for (Value& output : outputs) output = Value::container(BP_KIND_SEQUENCE);
    Body::Use use(body, inputs.subspan(body.input_count()));
    std::vector<Value> in(body.input_count()), out(body.output_count());
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < in.size(); ++i)
        in[i] = inputs[i].kind == BP_KIND_SEQUENCE ? inputs[i].elements->values[round] : inputs[i];
      use.run(in, out, context);
      for (size_t i = 0; i < out.size(); ++i) outputs[i].elements->values.push_back(own(std::move(out[i])));
    }
    return std::nullopt;
  });
}

constexpr uint32_t kAll = kTexts | kContainers;
}  // namespace

[[gnu::cold]] std::span<const Row> control_rows() {
  static constexpr Row kRows[] = {
      Row{"", "If", 1, supports_if, create_if, kAll}.with(kOmitsOutput0),
      Row{"", "Loop", 1, supports_loop, create_loop, kAll}.with(kOmitsOutput0),
      Row{"", "Scan", 9, supports_scan, create_scan, kAll}.with(kOmitsOutput0),
      Row{"", "SequenceMap", 17, supports_map, create_map, kAll}.with(kOmitsOutput0),
  };
  return kRows;
}

}  // namespace backplane::cpu
