// SPDX-License-Identifier: Apache-2.0
#include "checks/wire.h"

#include <gtest/gtest.h>

#include "checks/remote.h"

namespace backplane::conform {
namespace {

GraphSpec graph() {
  GraphSpec body;
  body.values = {{BP_DTYPE_BOOL, {}, {}, 3, {}}, {BP_DTYPE_FLOAT, {-1, 2}, {}, BP_NONE, {"rows", ""}}};
  body.nodes = {{"Not", "", 1, {0}, {1}, {}}};
  body.outputs = {1};
  GraphSpec spec;
  spec.opset = 21;
  spec.values = {{BP_DTYPE_FLOAT, {2, 3}, {}, BP_NONE, {}},
                 {BP_DTYPE_INT4, {3}, onnx::Tensor{BP_DTYPE_INT4, {3}, {std::byte{0x21}, std::byte{3}}}, BP_NONE, {}}};
  spec.nodes = {{"If",
                 "org.example",
                 11,
                 {0, BP_NONE},
                 {1},
                 {{"i", int64_t{-1}},
                  {"f", 0.5f},
                  {"s", std::string("text\0with a zero", 16)},
                  {"is", std::vector<int64_t>{1, -2}},
                  {"fs", std::vector<float>{}},
                  {"body", std::make_shared<const GraphSpec>(body)},
                  {"none", std::shared_ptr<const GraphSpec>()}}}};
  spec.inputs = {0};
  spec.outputs = {1};
  return spec;
}

std::string bytes_of(const GraphSpec& spec) {
  return Writer().graph(spec).take();
}

TEST(Wire, GraphsArriveAsTheyWere) {
  const std::string bytes = bytes_of(graph());
  Reader reader(bytes);
  const GraphSpec seen = reader.graph();
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(bytes_of(seen), bytes);
  ASSERT_EQ(seen.nodes.size(), 1u);
  EXPECT_EQ(seen.nodes[0].attributes[2].name, "s");
  EXPECT_EQ(std::get<std::string>(seen.nodes[0].attributes[2].value).size(), 16u);
  EXPECT_EQ(std::get<5>(seen.nodes[0].attributes[5].value)->values[1].symbols[0], "rows");
  EXPECT_EQ(std::get<5>(seen.nodes[0].attributes[6].value), nullptr);
  EXPECT_EQ(seen.values[1].weight->bytes.size(), 2u);
}

TEST(Wire, TruncatedMessagesAreRefused) {
  const std::string bytes = bytes_of(graph());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_THROW(Reader(cut).graph(), std::runtime_error) << size;
  }
}

TEST(Wire, CountsBeyondTheMessageAreRefused) {
  const std::string many = Writer().number(UINT64_MAX).take();
  EXPECT_THROW(Reader(many).text(), std::runtime_error);
  EXPECT_THROW(Reader(many).numbers<int64_t>(), std::runtime_error);
  EXPECT_THROW(Reader(many).count(), std::runtime_error);
}

// A reply to a run with one output of four floats.
struct Reply {
  uint64_t runs = 1, bytes = 16;
  uint32_t status = BP_OK;
  uint8_t stage = static_cast<uint8_t>(Stage::kRun), outcome = 0;

  std::string text() const {
    Writer writer;
    writer.number(outcome);
    if (outcome != 0) return writer.text("why").take();
    writer.number(status).number(stage).text("").number<uint64_t>(0).text("").number(runs);
    return writer.numbers(std::vector<std::byte>(bytes)).take();
  }
};

Answer compute(const Reply& reply, std::vector<onnx::Tensor>& outputs) {
  RemoteDevice device([&](const std::string&, uint64_t) { return reply.text(); }, 1);
  GraphSpec spec;
  spec.values = {{BP_DTYPE_FLOAT, {4}, {}, BP_NONE, {}}};
  spec.outputs = {0};
  return device.compute(spec, {}, outputs);
}

TEST(RemoteDevice, RefusesAnOutputOfAnotherSize) {
  std::vector<onnx::Tensor> outputs;
  EXPECT_TRUE(compute({}, outputs).ok());
  EXPECT_EQ(outputs.at(0).bytes.size(), 16u);
  for (const Reply& reply : {Reply{.bytes = 0}, Reply{.bytes = 12}, Reply{.bytes = 20}, Reply{.runs = 0},
                             Reply{.runs = 2}, Reply{.runs = UINT64_MAX}, Reply{.stage = 200}, Reply{.outcome = 2}})
    EXPECT_THROW(compute(reply, outputs), std::runtime_error);
  EXPECT_THROW(compute({.outcome = 1}, outputs), Breach);
  EXPECT_FALSE(compute({.runs = 0, .status = BP_INTERNAL}, outputs).ok());
}

}  // namespace
}  // namespace backplane::conform
