// SPDX-License-Identifier: Apache-2.0
// Draws: the same in each run with a seed, others in each run without.
#include <gtest/gtest.h>

#include "testing/graph_builder.h"
#include "testing/plugin_runner.h"

namespace backplane::cpu::testing {
namespace {

using Floats = std::vector<float>;

// Two runs of one program; nothing that is drawn depends on an input.
std::pair<Floats, Floats> draw_twice(Plugin& plugin, const std::string& op_type, Attributes attributes) {
  attributes["shape"] = std::vector<int64_t>{1000};
  GraphBuilder b;
  b.node(op_type, 22, {}, {"y"}, BP_DTYPE_FLOAT, attributes).output("y");
  Compiled program(plugin, b.graph());
  EXPECT_EQ(program.status, BP_OK) << program.text;
  const auto draw = [&] { return program.run({}).outputs.at(0).as<float>(); };
  Floats first = draw();
  return {first, draw()};
}

TEST(Random, IsDrawnAnewInEachRunUnlessThereIsASeed) {
  Plugin plugin;
  for (const char* op_type : {"RandomNormal", "RandomUniform"}) {
    const auto [free_first, free_second] = draw_twice(plugin, op_type, {});
    EXPECT_NE(free_first, free_second) << op_type;
    const auto [first, second] = draw_twice(plugin, op_type, {{"seed", 3.0f}});
    EXPECT_EQ(first, second) << op_type;
    EXPECT_EQ(first, draw_twice(plugin, op_type, {{"seed", 3.0f}}).first) << op_type;
    EXPECT_NE(first, draw_twice(plugin, op_type, {{"seed", 4.0f}}).first) << op_type;
  }
}

}  // namespace
}  // namespace backplane::cpu::testing
