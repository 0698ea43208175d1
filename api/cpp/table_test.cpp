// SPDX-License-Identifier: Apache-2.0
// The operator table: which row applies to a node, and what the row's functions receive.
#include "backplane/sdk/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "abi/testing/plugin_under_test.h"

namespace {

using namespace backplane::sdk;
using backplane::testing::TinyGraph;
using ::testing::HasSubstr;

struct Caps {
  bool half;
};
struct Kernel {
  int form;
};

Verdict always(const Node&, const Query<Caps>&) {
  return yes(1e-6);
}
Verdict where_half(const Node&, const Query<Caps>& query) {
  if (!query.caps.half) return no(BP_REASON_DTYPE, "the device has no fp16");
  if ((query.compute_types & BP_COMPUTE_FP16) == 0) return no(BP_REASON_PRECISION, "the session does not allow fp16");
  return yes(query.options.get("slow") ? 2 : 1);
}
template <int kForm>
std::unique_ptr<Kernel> make(const Node&) {
  return std::make_unique<Kernel>(Kernel{kForm});
}

constexpr bp_opset_t kNewest[] = {{{"", 0}, 20, 0}};
// Not sorted by version: the order of rows must not matter.
constexpr Op<Kernel, Caps> kRows[] = {
    {"", "Clip", 12, always, make<12>},
    {"", "Clip", 6, always, make<6>},
    {"vendor", "Clip", 1, always, make<1>},
    {"", "Gelu", 20, where_half, make<20>},
};

class Table : public ::testing::Test {
 protected:
  Node node(const char* op, uint32_t since) {
    graph.node(op, since, {x}, {2});
    return {graph.get(), count++};
  }
  int form(uint32_t since) { return table.create(node("Clip", since), {caps})->form; }

  const OpTable<Kernel, Caps> table{kRows, kNewest};
  Caps caps{true};
  TinyGraph graph;
  uint32_t x = graph.input("x", {2}), count = 0;
};

TEST_F(Table, ARowHoldsFromItsVersionOnUpToTheNext) {
  EXPECT_EQ(form(6), 6);
  EXPECT_EQ(form(11), 6);
  EXPECT_EQ(form(12), 12);
  EXPECT_EQ(form(20), 12);
}

TEST_F(Table, NoRowAppliesBeforeTheFirstOrAfterTheNewestOpset) {
  for (const uint32_t version : {1u, 5u, 21u}) {
    const Verdict verdict = table.ask(node("Clip", version), {caps});
    EXPECT_EQ(verdict.reason, BP_REASON_OPSET) << version;
    EXPECT_THAT(verdict.detail, HasSubstr("opset " + std::to_string(version) + "; known forms: 6, 12 and later"));
  }
  const OpTable<Kernel, Caps> open(kRows);
  EXPECT_EQ(open.create(node("Clip", 99), {caps})->form, 12);
}

TEST_F(Table, AnOperatorOfAnotherNameOrDomainIsUnknown) {
  EXPECT_EQ(table.ask(node("Clop", 6), {caps}).reason, BP_REASON_OPERATOR);
  EXPECT_EQ(table.find(node("Clop", 6)), nullptr);
}

TEST_F(Table, RowsSeeTheDeviceAndTheSession) {
  const Node gelu = node("Gelu", 20);
  caps.half = false;
  EXPECT_EQ(table.ask(gelu, {caps, BP_COMPUTE_FP16}).reason, BP_REASON_DTYPE);
  caps.half = true;
  EXPECT_EQ(table.ask(gelu, {caps}).reason, BP_REASON_PRECISION);
  EXPECT_EQ(table.ask(gelu, {caps, BP_COMPUTE_FP16}).seconds, 1);
  const bp_option_t slow{{"slow", 4}, {"1", 1}};
  EXPECT_EQ(table.ask(gelu, {caps, BP_COMPUTE_FP16, Options(&slow, 1, sizeof slow)}).seconds, 2);
}

TEST_F(Table, RefusesToCreateWhatItDoesNotSupport) {
  const Node gelu = node("Gelu", 20);
  try {
    table.create(gelu, {caps});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status, BP_UNSUPPORTED);
    EXPECT_EQ(error.node, gelu.id());
    EXPECT_THAT(error.text, HasSubstr("Gelu 'node0': the session does not allow fp16"));
  }
}

TEST(RowTable, TakesRowsFromSeveralFamilies) {
  static constexpr Op<Kernel> kMore[] = {{"", "Neg", 6, [](const Node&) { return yes(); }, make<6>}};
  static const std::vector<Op<Kernel>> kFew = {{"", "Abs", 13, [](const Node&) { return yes(); }, make<13>}};
  const RowTable<Op<Kernel>> table({kMore, kFew});
  TinyGraph graph;
  const uint32_t x = graph.input("x", {2});
  graph.node("Neg", 13, {x}, {2});
  graph.node("Abs", 6, {x}, {2});
  EXPECT_EQ(table.find({graph.get(), 0}), &kMore[0]);
  EXPECT_EQ(table.find({graph.get(), 1}), nullptr);
}

}  // namespace
