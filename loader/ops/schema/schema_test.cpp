// SPDX-License-Identifier: Apache-2.0
#include "ops/schema/schema.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace backplane::ops {
namespace {

TEST(Schema, EveryLineOfTheTableIsRead) {
  std::set<std::string_view> domains;
  const Schema* last = nullptr;
  EXPECT_GT(all_schemas().size(), 600u);
  for (const Schema& form : all_schemas()) {
    domains.insert(form.domain);
    SCOPED_TRACE(std::string(form.name) + " " + std::to_string(form.since_version));
    EXPECT_GT(form.since_version, 0u);
    EXPECT_LE(form.min_inputs, form.max_inputs);
    EXPECT_LE(form.min_outputs, form.max_outputs);
    for (auto* formals : {&form.inputs, &form.outputs}) {
      for (const Formal& formal : *formals) {
        EXPECT_NE(formal.kinds, 0u) << formal.name;
        EXPECT_EQ(formal.kinds & 1, 0u) << formal.name << ": a type of it has no known name";
        EXPECT_EQ(formal.dtypes != 0, (formal.kinds & 1u << BP_KIND_TENSOR) != 0) << formal.name;
      }
    }
    std::string_view name;
    for (const AttributeRule& rule : form.attributes) {
      EXPECT_GE(rule.type, BP_ATTR_FLOAT) << rule.name;
      EXPECT_LT(name, rule.name);
      name = rule.name;
      EXPECT_EQ(form.attribute(rule.name), &rule);
    }
    if (last && last->domain == form.domain && last->name == form.name) {
      EXPECT_EQ(form.older, last);
      EXPECT_EQ(last->newer, &form);
      EXPECT_LT(last->since_version, form.since_version);
    } else {
      EXPECT_EQ(form.older, nullptr);
      if (last && last->domain == form.domain) {
        EXPECT_LT(last->name, form.name);
      }
    }
    last = &form;
  }
  EXPECT_EQ(domains, (std::set<std::string_view>{"", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"}));
}

TEST(Schema, FindsTheFormInForce) {
  EXPECT_EQ(find_schema("", "Softmax", 27)->since_version, 13u);
  EXPECT_EQ(find_schema("", "Softmax", 12)->since_version, 11u);
  EXPECT_EQ(find_schema("", "Softmax", 10)->since_version, 1u);
  EXPECT_EQ(find_schema("", "Gelu", 19), nullptr);
  EXPECT_EQ(find_schema("", "Gelu", 20), newest_schema("", "Gelu"));
  EXPECT_EQ(find_schema("com.example", "Gelu", 20), nullptr);
  EXPECT_EQ(newest_schema("", "NoSuchOperator"), nullptr);
  EXPECT_TRUE(newest_schema("", "Upsample")->deprecated);
  EXPECT_EQ(newest_opset(""), 28u);
  EXPECT_EQ(newest_opset("ai.onnx.ml"), 5u);
  EXPECT_EQ(newest_opset("com.example"), 0u);
}

TEST(Schema, KnowsInputsOutputsAndAttributes) {
  const Schema* conv = newest_schema("", "Conv");
  ASSERT_EQ(conv->inputs.size(), 3u);
  EXPECT_EQ(conv->min_inputs, 2u);
  EXPECT_EQ(conv->max_inputs, 3u);
  EXPECT_EQ(conv->inputs[2].name, "B");
  EXPECT_EQ(conv->inputs[2].type, "T");
  EXPECT_EQ(conv->inputs[2].option, Formal::kOptional);
  EXPECT_EQ(std::popcount(conv->inputs[0].dtypes), 4);
  EXPECT_EQ(conv->attribute("group")->fallback.ints(), std::vector<int64_t>{1});
  EXPECT_EQ(conv->attribute("auto_pad")->fallback.strings(), std::vector<std::string>{"NOTSET"});
  EXPECT_FALSE(conv->attribute("kernel_shape")->has_default);
  EXPECT_EQ(conv->attribute("axis"), nullptr);

  const Schema* loop = newest_schema("", "Loop");
  EXPECT_EQ(loop->max_inputs, UINT32_MAX);
  EXPECT_FALSE(loop->inputs[2].homogeneous);
  EXPECT_TRUE(loop->inputs[2].kinds & 1u << BP_KIND_SEQUENCE);
  EXPECT_TRUE(loop->attribute("body")->required);
  EXPECT_EQ(loop->attribute("body")->type, BP_ATTR_GRAPH);

  EXPECT_FALSE(newest_schema("", "RandomNormal")->deterministic);
  EXPECT_TRUE(newest_schema("", "Range")->deterministic);
  EXPECT_TRUE(newest_schema("", "LayerNormalization")->function);
  EXPECT_FLOAT_EQ(newest_schema("", "LayerNormalization")->attribute("epsilon")->fallback.floats()[0], 1e-5f);
  EXPECT_EQ(newest_schema("", "Shape")->outputs[0].dtypes, uint64_t{1} << BP_DTYPE_INT64);
}

}  // namespace
}  // namespace backplane::ops
