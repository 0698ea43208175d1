// SPDX-License-Identifier: Apache-2.0
// What the loader makes of devices' answers, through the public face: partial devices (testing/partial_backend) beside
// the CPU backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/client.hpp"
#include "testing/face.h"

namespace backplane {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string cpu = BACKPLANE_BUILD_DIR "/lib/backplane/libbackplane_cpu.so";
const std::string partial_file = BACKPLANE_BUILD_DIR "/tests/plugins/partial.so";

bp_builder_t* make_builder() {
  const bp_opset_t opset{{"", 0}, 24, 0};
  bp_builder_t* builder = nullptr;
  detail::call(api().builder_create, static_cast<bp_env_t*>(nullptr), &opset, 1u, static_cast<uint32_t>(sizeof opset),
               &builder);
  return builder;
}

uint32_t add_input(bp_builder_t* builder, const char* name, bp_dtype_t dtype, std::vector<int64_t> extents) {
  uint32_t value = 0;
  detail::call(api().builder_input, builder, view::text(std::string_view(name)), dtype,
               static_cast<uint32_t>(extents.size()), static_cast<const int64_t*>(extents.data()),
               static_cast<const bp_text_t*>(nullptr), &value);
  return value;
}

uint32_t add_node(bp_builder_t* builder, const char* op, std::vector<uint32_t> inputs,
                  std::vector<bp_attribute_t> attributes = {}) {
  bp_node_desc_t desc{};
  desc.size = sizeof desc;
  desc.op_type = desc.name = view::text(std::string_view(op));
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.output_count = 1;
  desc.attributes = attributes.data();
  desc.attribute_count = static_cast<uint32_t>(attributes.size());
  desc.attribute_stride = sizeof(bp_attribute_t);
  uint32_t value = 0;
  detail::call(api().builder_node, builder, &desc, &value);
  return value;
}

// A body whose one node reads `x` of the graph around it; `deeper` puts that into an If within.
bp_builder_t* make_body(bp_builder_t* outer, const char* op, bool deeper = false);

uint32_t add_if(bp_builder_t* builder, uint32_t condition, const char* then_op, const char* else_op, bool deeper) {
  bp_builder_t* bodies[] = {make_body(builder, then_op, deeper), make_body(builder, else_op)};
  std::vector<bp_attribute_t> attributes(2);
  attributes[0].name = view::text(std::string_view("then_branch"));
  attributes[1].name = view::text(std::string_view("else_branch"));
  for (size_t i = 0; i < 2; ++i) {
    attributes[i].type = BP_ATTR_GRAPH;
    attributes[i].count = 1;
    attributes[i].data = &bodies[i];
  }
  const uint32_t value = add_node(builder, "If", {condition}, attributes);
  for (bp_builder_t* body : bodies) api().builder_destroy(body);
  return value;
}

bp_builder_t* make_body(bp_builder_t* outer, const char* op, bool deeper) {
  bp_builder_t* body = nullptr;
  detail::call(api().builder_create_body, outer, &body);
  const uint32_t x = add_input(body, "x", BP_DTYPE_FLOAT, {2});
  const uint32_t result = deeper ? add_if(body, add_input(body, "condition", BP_DTYPE_BOOL, {}), op, "Neg", false)
                                 : add_node(body, op, {x});
  detail::call(api().builder_output, body, result);
  return body;
}

// y = |condition ? then_op(x) : -x|
Model branches(const char* then_op, bool deeper) {
  bp_builder_t* builder = make_builder();
  add_input(builder, "x", BP_DTYPE_FLOAT, {2});
  const uint32_t condition = add_input(builder, "condition", BP_DTYPE_BOOL, {});
  const uint32_t y = add_node(builder, "Abs", {add_if(builder, condition, then_op, "Neg", deeper)});
  detail::call(api().builder_output, builder, y);
  bp_model_t* model = nullptr;
  detail::call(api().builder_finish, builder, &model);
  api().builder_destroy(builder);
  return Model(model, nullptr);
}

std::vector<float> run(const Session& session) {
  Exec exec = session.exec();
  exec.bind("x", Tensor::of<float>({2}, {-3, 4}));
  const uint8_t yes = 1;
  exec.bind("condition", Tensor(BP_DTYPE_BOOL, {}, &yes));
  exec.run();
  return exec.output(0u).values<float>();
}

TEST(Coverage, ADeviceTakesANodeWithBodiesIfItTakesAllOfThem) {
  const Environment env = environment({cpu, partial_file}, {{"partial.ops", "!Exp"}, {"partial.seconds", "1e-9"}});
  SessionOptions how;
  how.devices = {"partial", "cpu"};
  how.options = {{"loader.costs", "told"}};
  for (const bool deeper : {false, true}) {
    const Session fits = env.compile(branches("Relu", deeper), how);
    EXPECT_EQ(env.devices()[fits.node(0).device - 1].name, "partial") << fits.report();
    EXPECT_THAT(run(fits), ElementsAre(0, 4));

    const Session other = env.compile(branches("Exp", deeper), how);
    EXPECT_EQ(env.devices()[other.node(0).device - 1].name, "cpu") << other.report();
    EXPECT_THAT(other.report(), HasSubstr(R"("reason":"subgraph","detail":"in its body Exp 'Exp' (operator): )"));
    EXPECT_NEAR(run(other)[1], std::exp(4.0f), 1e-3);
  }
}

}  // namespace
}  // namespace backplane
