// SPDX-License-Identifier: Apache-2.0
// The oracle refuses invalid calls and graphs, and computes valid ones completely.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>

#include "backplane/graph.hpp"
#include "cases/cases.h"
#include "cases/graph_spec_builder.h"
#include "cases/network_case.h"
#include "judge/error_propagation.h"

namespace backplane::conform {
namespace {

Problem plain(std::string_view op) {
  Random random(1, op);
  return plain_case(op).make(random);
}

// A tensor with random bytes, or with no bytes if the shape is large or invalid.
onnx::Tensor tensor_of(Random& random, bp_dtype_t dtype, Extents extents) {
  onnx::Tensor tensor{dtype, std::move(extents), {}};
  try {
    const uint64_t bytes = onnx::dense_bytes(tensor.dtype, tensor.extents);
    if (bytes < 1 << 16) tensor.bytes.resize(bytes);
  } catch (const onnx::Malformed&) {  // invalid extents: no bytes
  }
  for (std::byte& byte : tensor.bytes) byte = static_cast<std::byte>(random.integer(0, 255));
  return tensor;
}

int64_t odd_number(Random& random) {
  constexpr int64_t kNumbers[] = {
      0, 1, -1, 2, 3, -7, 17, 64, 300, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
  return kNumbers[random.integer(0, std::size(kNumbers) - 1)];
}

void mutate(Random& random, Argument& argument) {
  if (!argument.tensor || random.integer(0, 5) == 0) {
    argument.tensor.reset();
    return;
  }
  onnx::Tensor& tensor = *argument.tensor;
  Extents extents = tensor.extents;
  const auto axis =
      static_cast<size_t>(random.integer(0, extents.empty() ? 0 : static_cast<int64_t>(extents.size()) - 1));
  switch (random.integer(0, 5)) {
    case 0:
      extents.insert(extents.begin() + static_cast<int64_t>(extents.empty() ? 0 : axis), 1);
      tensor.extents = std::move(extents);
      break;
    case 1:
      if (!extents.empty()) extents.erase(extents.begin() + static_cast<int64_t>(axis));
      tensor = tensor_of(random, tensor.dtype, extents);
      break;
    case 2:
      if (!extents.empty()) extents[axis] = odd_number(random);
      tensor = tensor_of(random, tensor.dtype, extents);
      break;
    case 3:
      tensor = tensor_of(random, static_cast<bp_dtype_t>(random.integer(0, BP_DTYPE_INT2 + 2)), extents);
      break;
    case 4:
      if (!tensor.bytes.empty()) tensor.bytes.pop_back();
      break;
    default:
      if (tensor.dtype == BP_DTYPE_INT64) {
        for (size_t i = 0; i + 8 <= tensor.bytes.size(); i += 8) {
          const int64_t number = odd_number(random);
          std::memcpy(tensor.bytes.data() + i, &number, sizeof number);
        }
      } else {
        tensor = tensor_of(random, tensor.dtype, extents);
      }
  }
}

void mutate(Random& random, Attribute& attribute) {
  switch (random.integer(0, 3)) {
    case 0:
      attribute.value = odd_number(random);
      return;
    case 1:
      attribute.value = std::string("nonsense");
      return;
    case 2:
      attribute.name = "unknown";
      return;
    default:
      if (auto* numbers = std::get_if<Extents>(&attribute.value); numbers != nullptr && !numbers->empty()) {
        const auto at = static_cast<size_t>(random.integer(0, static_cast<int64_t>(numbers->size()) - 1));
        if (random.integer(0, 1) == 0)
          (*numbers)[at] = odd_number(random);
        else
          numbers->resize(at);
      } else {
        attribute.value = Extents(static_cast<size_t>(random.integer(0, 4)), odd_number(random));
      }
  }
}

void mutate(Random& random, Problem& problem) {
  const int64_t what = random.integer(0, 9);
  if (what < 6 && !problem.arguments.empty()) {
    mutate(
        random,
        problem.arguments[static_cast<size_t>(random.integer(0, static_cast<int64_t>(problem.arguments.size()) - 1))]);
  } else if (what < 8 && !problem.attributes.empty()) {
    mutate(random, problem.attributes[static_cast<size_t>(
                       random.integer(0, static_cast<int64_t>(problem.attributes.size()) - 1))]);
  } else if (what == 8) {
    problem.arguments.resize(
        static_cast<size_t>(random.integer(0, static_cast<int64_t>(problem.arguments.size()) + 1)));
  } else {
    problem.outputs = static_cast<uint32_t>(random.integer(0, 4));
  }
}

bool is_whole(const Array& array) {
  return array.count() == count_of(array.extents);
}

// Expects an estimate for every output element when the problem is a node of a graph with inexact inputs.
void expect_whole_estimates(const Problem& problem) {
  std::vector<Estimate> inputs;
  for (const Argument& argument : problem.arguments) {
    inputs.push_back(argument.tensor ? exact_estimate(*argument.tensor) : Estimate());
    if (argument.tensor && is_float(inputs.back().value.dtype))
      inputs.back().error.assign(inputs.back().error.size(), 1e-6);
  }
  std::vector<const Estimate*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) pointers.push_back(problem.arguments[i].tensor ? &inputs[i] : nullptr);
  NodeSpec node{
      .op_type = problem.op, .outputs = std::vector<uint32_t>(problem.outputs), .attributes = problem.attributes};
  for (const Estimate& output : estimate(node, pointers, false)) {
    EXPECT_TRUE(is_whole(output.value));
    EXPECT_EQ(output.error.size(), output.value.values.size());
    EXPECT_EQ(output.typical.size(), output.value.values.size());
  }
}

// How often each case is mutated. With the address sanitizer, each takes twenty times as long.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kMutations = 2;
#elif defined(__has_feature)
constexpr int kMutations = __has_feature(address_sanitizer) ? 2 : 6;
#else
constexpr int kMutations = 6;
#endif

// Any exception other than std::invalid_argument fails the test. The address sanitizer detects accesses out of bounds.
TEST(MutatedCalls, AreRefusedOrComputedCompletely) {
  int refused = 0, answered = 0;
  for (const OpCase& one : op_cases()) {
    if (one.once) continue;
    for (int i = 0; i < kMutations; ++i) {
      const std::string name = one.name + "/" + std::to_string(i);
      SCOPED_TRACE(name);
      Random random(7, name);
      Problem problem = one.make(random);
      for (int64_t left = random.integer(1, 2); left > 0; --left) mutate(random, problem);
      try {
        for (const Reference& result : reference(problem)) {
          EXPECT_TRUE(is_whole(result.value));
          EXPECT_TRUE(result.scale.empty() || result.scale.size() == result.value.values.size());
        }
        if (find_error_propagation(problem.op) != nullptr) expect_whole_estimates(problem);
        ++answered;
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    }
  }
  std::printf("%d refused, %d answered\n", refused, answered);
  EXPECT_GT(refused, answered / 2);
  EXPECT_GT(answered, 1000);
}

TEST(MutatedCalls, MissingInputsAreRefused) {
  for (const Operator* op : all_operators()) {
    SCOPED_TRACE(std::string(op->name));
    Problem missing = plain(op->name);
    missing.arguments[0] = Argument();
    EXPECT_THROW(reference(missing), std::invalid_argument);
    missing.arguments.clear();
    EXPECT_THROW(reference(missing), std::invalid_argument);
    Problem texts = plain(op->name);
    texts.arguments[0] = onnx::Tensor::of_texts({2}, {"a", "b"});
    EXPECT_THROW(reference(texts), std::invalid_argument);
    Problem outputs = plain(op->name);
    outputs.outputs = 50;
    if (op->name != "Split") {
      EXPECT_THROW(reference(outputs), std::invalid_argument);
    }
    for (Attribute& attribute : plain(op->name).attributes) {
      if (attribute.name != "axis") continue;
      for (const int64_t axis : {int64_t{9}, int64_t{-9}, std::numeric_limits<int64_t>::min()}) {
        Problem outside = plain(op->name);
        for (Attribute& one : outside.attributes) {
          if (one.name == "axis") one.value = axis;
        }
        const bool is_read =
            op->name != "QuantizeLinear" && op->name != "DequantizeLinear";  // with a single scale, they ignore `axis`
        if (is_read) {
          EXPECT_THROW(reference(outside), std::invalid_argument) << axis;
        }
      }
    }
  }
}

struct Wrong {
  const char* op;
  const char* attribute;
  decltype(Attribute::value) value;
};
class WrongAttribute : public testing::TestWithParam<Wrong> {};
TEST_P(WrongAttribute, IsRefused) {
  const Wrong& wrong = GetParam();
  Problem problem = plain(wrong.op);
  EXPECT_NO_THROW(reference(problem));
  std::erase_if(problem.attributes, [&](const Attribute& one) { return one.name == wrong.attribute; });
  problem.attributes.push_back({wrong.attribute, wrong.value});
  EXPECT_THROW(reference(problem), std::invalid_argument);
}
INSTANTIATE_TEST_SUITE_P(
    Oracle, WrongAttribute,
    testing::Values(Wrong{"Conv", "group", int64_t{0}}, Wrong{"Conv", "strides", Extents{0, 0}},
                    Wrong{"Conv", "dilations", Extents{-1, 1}}, Wrong{"Conv", "pads", Extents{1}},
                    Wrong{"Conv", "kernel_shape", Extents{1 << 30, 1 << 30}},
                    Wrong{"MaxPool", "kernel_shape", Extents{}}, Wrong{"MaxPool", "pads", Extents{0, 2, 0, 0}},
                    Wrong{"AveragePool", "strides", Extents{0, 1}}, Wrong{"AveragePool", "pads", Extents{0, 0, 2, 0}},
                    Wrong{"ConvTranspose", "group", int64_t{-1}}, Wrong{"ConvTranspose", "output_padding", Extents{1}},
                    Wrong{"Transpose", "perm", Extents{0, 0, 1}}, Wrong{"DepthToSpace", "blocksize", int64_t{0}},
                    Wrong{"SpaceToDepth", "blocksize", int64_t{7}}, Wrong{"Pad", "mode", std::string("mirror")},
                    Wrong{"Resize", "mode", std::string("quintic")}, Wrong{"Cast", "to", int64_t{BP_DTYPE_STRING}},
                    Wrong{"Cast", "to", int64_t{4000}}, Wrong{"QuantizeLinear", "output_dtype", int64_t{BP_DTYPE_INT4}},
                    Wrong{"LeakyRelu", "alpha", std::string("0.1")}, Wrong{"Softmax", "axis", Extents{1}}),
    [](const auto& info) {
      return std::string(info.param.op) + "_" + info.param.attribute + std::to_string(info.index);
    });

TEST(Pads, ThatAddWhatOthersMayHaveRemovedAreRefused) {
  Problem problem = plain("Pad");
  const auto with = [&](const char* mode, const std::vector<int64_t>& pads) {
    problem.attributes = {{"mode", std::string(mode)}};
    problem.arguments = {constant(reals(BP_DTYPE_FLOAT, {3}, {1, 2, 3})), constant(integers(pads))};
    return reference(problem)[0].value.values;
  };
  EXPECT_EQ(with("constant", {-1, 2}), (std::vector<double>{2, 3, 0, 0}));
  EXPECT_EQ(with("wrap", {-1, 0}), (std::vector<double>{2, 3}));
  EXPECT_EQ(with("wrap", {1, 1}), (std::vector<double>{3, 1, 2, 3, 1}));
  EXPECT_THROW(with("wrap", {-1, 2}), std::invalid_argument);
  EXPECT_THROW(with("reflect", {2, -1}), std::invalid_argument);
}

void mutate(Random& random, GraphSpec& graph) {
  const auto any = [&](size_t count) {
    return static_cast<size_t>(random.integer(0, static_cast<int64_t>(count) - 1));
  };
  const auto value = [&] {
    return random.integer(0, 3) == 0 ? BP_NONE : static_cast<uint32_t>(any(graph.values.size() + 2));
  };
  NodeSpec& node = graph.nodes[any(graph.nodes.size())];
  const int64_t what = random.integer(0, 9);
  if (what == 0) graph.inputs.assign(graph.inputs.size() + any(2), value());
  if (what == 1) graph.outputs.assign(any(4), value());
  if (what == 2 && !node.inputs.empty()) node.inputs[any(node.inputs.size())] = value();
  if (what == 3) node.inputs.resize(any(node.inputs.size() + 2), BP_NONE);
  if (what == 4) node.outputs.assign(any(4), value());
  if (what == 5) graph.values[any(graph.values.size())].outer = value();
  if (what == 6)
    graph.values[any(graph.values.size())].weight = tensor_of(random, BP_DTYPE_INT64, {odd_number(random)});
  if (what < 7 || node.attributes.empty()) return;
  Attribute& attribute = node.attributes[any(node.attributes.size())];
  if (const auto* body = std::get_if<std::shared_ptr<const GraphSpec>>(&attribute.value); body != nullptr && what > 7) {
    GraphSpec changed = **body;
    mutate(random, changed);
    attribute.value = std::make_shared<const GraphSpec>(std::move(changed));
  } else {
    mutate(random, attribute);
  }
}

TEST(MutatedGraphs, AreRefusedOrComputedCompletely) {
  int refused = 0, answered = 0;
  for (const auto networks : {control_networks(), dynamic_networks()}) {
    for (const NetworkCase& one : networks) {
      for (int i = 0; i < 100; ++i) {
        SCOPED_TRACE(one.name + "/" + std::to_string(i));
        Random random(7, one.name + "/" + std::to_string(i));
        NetworkCase::Runs runs = one.make(random, 28);
        EXPECT_NO_THROW(estimate(runs.spec, runs.inputs[0], false));
        mutate(random, runs.spec);
        try {
          for (const Estimate& value : estimate(runs.spec, runs.inputs[0], false)) {
            if (value.is_computed()) {
              EXPECT_TRUE(is_whole(value.value));
            }
          }
          ++answered;
        } catch (const std::invalid_argument&) {
          ++refused;
        }
      }
    }
  }
  std::printf("%d refused, %d answered\n", refused, answered);
  EXPECT_GT(refused, answered / 4);
}

}  // namespace
}  // namespace backplane::conform
