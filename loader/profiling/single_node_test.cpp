// SPDX-License-Identifier: Apache-2.0
#include "profiling/single_node.h"

#include <gtest/gtest.h>

#include <string>

#include "import/import.h"
#include "testing/onnx_writer.h"

namespace backplane {
namespace {

using namespace testing::onnx;
using Opsets = std::map<std::string, uint32_t>;

// A function imports other opsets than the model, and domains that the model does not import.
TEST(SingleNode, HasTheOpsetsForWhichTheNodeWasWritten) {
  const std::string file = model_bytes(
      {{"", 17}, {"my", 1}},
      graph({node("Relu", {"x"}, {"r"}), node("F", {"r"}, {"y"}, {}, "my")}, {tensor_value("x", BP_DTYPE_FLOAT, {2})},
            {tensor_value("y", BP_DTYPE_FLOAT, {2})}),
      {function("my", "F", {"v"}, {"w"}, {node("Neg", {"v"}, {"n"}), node("Op", {"n"}, {"w"}, {}, "com.example")},
                {{"", 12}, {"com.example", 3}})});
  model::Source source;
  source.bytes = file.data();
  source.size = file.size();
  const auto imported = model::import(source);
  ASSERT_TRUE(imported.ok()) << imported.status().text();
  const model::Model& model = **imported;
  ASSERT_EQ(model.graph.nodes.size(), 3u);
  for (const model::Node& node : model.graph.nodes) {
    const auto single = SingleNode::of(model, node);
    ASSERT_TRUE(single.ok()) << node.op_type << ": " << single.status().text();
    const Opsets expected = node.op_type == "Relu" ? Opsets{{"", 17}, {"my", 1}} : Opsets{{"", 12}, {"com.example", 3}};
    EXPECT_EQ(single->model()->opsets, expected) << node.op_type;
  }
}

}  // namespace
}  // namespace backplane
