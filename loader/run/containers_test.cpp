// SPDX-License-Identifier: Apache-2.0
// Sequences as inputs and outputs of an exec, and other sequences in later runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/onnx_writer.h"
#include "testing/partial.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing::onnx;

struct Destroy {
  void operator()(bp_container_t* container) const { api().container_destroy(container); }
};

// A sequence of tensors with one element each.
class Sequence {
 public:
  explicit Sequence(const std::vector<float>& values = {}) {
    bp_container_t* container = nullptr;
    detail::call(api().container_create, uint32_t{BP_KIND_SEQUENCE}, &container);
    container_.reset(container);
    for (const float value : values) {
      const Tensor element = Tensor::of<float>({1}, {value});
      const bp_tensor_t tensor = element.abi();
      EXPECT_EQ(api().container_api()->append(container, {}, &tensor), BP_OK);
    }
  }
  bp_container_t* get() const { return container_.get(); }
  std::vector<float> values() const { return values_of(get()); }

  static std::vector<float> values_of(const bp_container_t* container) {
    std::vector<float> values;
    for (uint64_t i = 0; i < api().container_api()->count(container); ++i) {
      bp_tensor_t tensor{};
      tensor.size = sizeof tensor;
      EXPECT_EQ(api().container_api()->tensor(container, i, &tensor), BP_OK);
      values.push_back(*static_cast<const float*>(tensor.buffer.address));
    }
    return values;
  }

 private:
  std::unique_ptr<bp_container_t, Destroy> container_;
};

std::string sequence_value(std::string_view name) {
  std::string tensor, element, sequence, type, out = value(name);
  Writer(tensor).add_int32(field::tensor_type::kElemType, BP_DTYPE_FLOAT);
  Writer(element).add_message(field::type::kTensor, tensor);
  Writer(sequence).add_message(field::container_type::kElemType, element);
  Writer(type).add_message(field::type::kSequence, sequence);
  Writer(out).add_message(field::value_info::kType, type);
  return out;
}

Model open(const Environment& env, const std::string& graph) {
  return env.parse(model_bytes({{"", 17}}, graph));
}

// t is s with x at its end.
Model growing(const Environment& env) {
  return open(env, graph({node("SequenceInsert", {"s", "x"}, {"t"})},
                         {sequence_value("s"), tensor_value("x", BP_DTYPE_FLOAT, {1})}, {sequence_value("t")}));
}

void bind(Exec& exec, uint32_t slot, const Sequence& sequence) {
  detail::call(api().exec_bind_container, exec.get(), slot, sequence.get());
}

bp_container_t* result(Exec& exec, uint32_t output) {
  bp_container_t* container = nullptr;
  detail::call(api().exec_output_container, exec.get(), output, &container);
  return container;
}

// The result of each run is the input of the next.
TEST(Containers, AreExchangedBetweenRuns) {
  const Environment env = partial_environment({});
  const Session session = env.compile(growing(env), pinned({{"*", "partial"}}));
  Exec exec = session.exec();
  const Tensor x = Tensor::of<float>({1}, {7});
  exec.bind("x", x);
  const Sequence one({1}), other;
  for (int i = 0; i < 4; ++i) {
    bind(exec, 0, i % 2 == 0 ? one : other);
    bind(exec, BP_SLOT_OUTPUT, i % 2 == 0 ? other : one);
    exec.run();
  }
  EXPECT_THAT(other.values(), ElementsAre(1, 7, 7, 7));
  EXPECT_THAT(one.values(), ElementsAre(1, 7, 7, 7, 7));
}

TEST(Containers, OfAnotherKindAreRefused) {
  const Environment env = partial_environment({});
  Exec exec = env.compile(growing(env)).exec();
  for (const uint32_t kind : {BP_KIND_OPTIONAL, BP_KIND_MAP}) {
    bp_container_t* container = nullptr;
    detail::call(api().container_create, kind, &container);
    for (const uint32_t slot : {0u, BP_SLOT_OUTPUT}) {
      const Error error = failure([&] { detail::call(api().exec_bind_container, exec.get(), slot, container); });
      EXPECT_EQ(error.status(), BP_TYPE_MISMATCH);
      EXPECT_THAT(error.text(), HasSubstr(slot == 0 ? "input 's' is a sequence" : "output 't' is a sequence"));
      EXPECT_THAT(error.text(), HasSubstr(kind == BP_KIND_MAP ? "is a map" : "is an optional"));
    }
    api().container_destroy(container);
  }
  const Sequence s({1});
  bind(exec, 0, s);
}

// The framework may destroy the container of the last result as soon as another one is bound.
TEST(Containers, AnOutputHasNoResultAfterAnotherIsBound) {
  const Environment env = partial_environment({});
  const Session session = env.compile(growing(env));
  Exec exec = session.exec();
  const Tensor x = Tensor::of<float>({1}, {7});
  exec.bind("x", x);
  const Sequence s({1}), second;
  bind(exec, 0, s);
  {
    const Sequence first;
    bind(exec, BP_SLOT_OUTPUT, first);
    exec.run();
    EXPECT_EQ(result(exec, 0), first.get());
    bind(exec, BP_SLOT_OUTPUT, second);
  }
  EXPECT_EQ(failure([&] { result(exec, 0); }).status(), BP_BAD_STATE);
  exec.run();
  EXPECT_EQ(result(exec, 0), second.get());
  EXPECT_THAT(second.values(), ElementsAre(1, 7));
}

// Refused whichever device runs first, because one writes the container that the other reads.
TEST(Containers, OneIsNotBothAnInputAndAnOutput) {
  const Environment env = partial_environment({});
  const Model model =
      open(env, graph({node("SequenceInsert", {"s", "x"}, {"t"}, {}, "", "insert"),
                       node("SequenceLength", {"q"}, {"n"}, {}, "", "length")},
                      {sequence_value("s"), tensor_value("x", BP_DTYPE_FLOAT, {1}), sequence_value("q")},
                      {sequence_value("t"), tensor_value("n", BP_DTYPE_INT64, {})}));
  const Session session = env.compile(model, pinned({{"insert", "partial"}, {"length", "cpu"}}));
  Exec exec = session.exec();
  const Tensor x = Tensor::of<float>({1}, {7});
  exec.bind("x", x);
  const Sequence s({1}), q({2, 3}), t;
  bind(exec, 0, s);
  bind(exec, 2, q);
  for (const Sequence* const both : {&s, &q}) {
    bind(exec, BP_SLOT_OUTPUT, *both);
    const Error error = failure([&] { exec.run(); });
    EXPECT_EQ(error.status(), BP_UNSUPPORTED);
    EXPECT_THAT(error.text(), HasSubstr(both == &s ? "input 's' and output 't'" : "input 'q' and output 't'"));
    EXPECT_THAT(s.values(), ElementsAre(1));
    EXPECT_THAT(q.values(), ElementsAre(2, 3));
  }
  bind(exec, BP_SLOT_OUTPUT, t);
  exec.run();
  EXPECT_THAT(t.values(), ElementsAre(1, 7));
  EXPECT_THAT(exec.output(1u).values<int64_t>(), ElementsAre(2));
}

// Outputs are copies of the inputs, and are written one after the other.
TEST(Containers, InputsThatOutputsCopyAreNotOverwritten) {
  const Environment env = partial_environment({});
  const Model model =
      open(env, graph({node("Neg", {"x"}, {"y"})},
                      {sequence_value("s"), tensor_value("x", BP_DTYPE_FLOAT, {1}), sequence_value("q")},
                      {tensor_value("y", BP_DTYPE_FLOAT, {1}), sequence_value("s"), sequence_value("q")}));
  const Session session = env.compile(model);
  Exec exec = session.exec();
  const Tensor x = Tensor::of<float>({1}, {7});
  exec.bind("x", x);
  const Sequence s({1}), q({2, 3});
  bind(exec, 0, s);
  bind(exec, 2, q);
  bind(exec, BP_SLOT_OUTPUT + 1, q);
  bind(exec, BP_SLOT_OUTPUT + 2, s);
  EXPECT_EQ(failure([&] { exec.run(); }).status(), BP_UNSUPPORTED);
  bind(exec, BP_SLOT_OUTPUT + 1, s);
  bind(exec, BP_SLOT_OUTPUT + 2, q);
  exec.run();
  EXPECT_THAT(s.values(), ElementsAre(1));
  EXPECT_THAT(q.values(), ElementsAre(2, 3));
}

}  // namespace
}  // namespace backplane
