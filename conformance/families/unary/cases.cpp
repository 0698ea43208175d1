// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

struct Row {
  const char* op;
  Fill fill;     // covers the domain of the operator
  bool special;  // IEEE 754 or ONNX defines the results for special values
  Attributes attributes = {};
  std::vector<bp_dtype_t> others = {};  // non-floating-point types
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kTable = {
      {"Abs", Fill::kMagnitudes, true, {}, {BP_DTYPE_INT32, BP_DTYPE_INT64}},
      {"Neg", Fill::kMagnitudes, true, {}, {BP_DTYPE_INT32, BP_DTYPE_INT64}},
      {"Sign", Fill::kMagnitudes, false},
      {"Floor", Fill::kWide, true},
      {"Ceil", Fill::kWide, true},
      {"Round", Fill::kWide, true},
      {"IsNaN", Fill::kSpecial, true},
      {"Relu", Fill::kWide, true},
      {"LeakyRelu", Fill::kWide, true, {{"alpha", 0.125f}}},
      {"Sqrt", Fill::kPositive, true},
      {"Reciprocal", Fill::kMagnitudes, true},
      {"Erf", Fill::kWide, true},
      {"Exp", Fill::kWide, true},
      {"Sigmoid", Fill::kWide, true},
      {"Log", Fill::kPositive, true},
      {"Sin", Fill::kWide, false},
      {"Cos", Fill::kWide, false},
      {"Tanh", Fill::kWide, true},
      {"Elu", Fill::kWide, false, {{"alpha", 1.5f}}},
      {"Selu", Fill::kWide, false, {{"alpha", 1.67326319f}, {"gamma", 1.05070102f}}},
      {"HardSigmoid", Fill::kWide, false, {{"alpha", 0.2f}, {"beta", 0.5f}}},
      {"HardSwish", Fill::kWide, false},
      {"Softplus", Fill::kWide, false},
      {"Softsign", Fill::kWide, false},
      {"Mish", Fill::kWide, false},
      {"Gelu", Fill::kWide, false, {{"approximate", std::string("none")}}},
  };
  return kTable;
}

void add(OpCases& cases, const Row& row, bp_dtype_t dtype, const char* variant, const std::vector<int64_t>& extents,
         Fill fill) {
  cases.add(row.op, dtype, variant, [=](Random& random) {
    return Problem{row.op, row.attributes, {random_tensor(random, dtype, extents, fill)}};
  });
}

}  // namespace

void add_unary_cases(OpCases& cases) {
  for (const Row& row : rows()) {
    std::vector<bp_dtype_t> types(real_types().begin(), real_types().end());
    types.insert(types.end(), row.others.begin(), row.others.end());
    for (const bp_dtype_t dtype : types) {
      add(cases, row, dtype, "block", {2, 3, 16}, row.fill);
      add(cases, row, dtype, "odd", {7, 13}, row.fill);
      add(cases, row, dtype, "scalar", {}, row.fill);
      add(cases, row, dtype, "one", {1, 1, 1}, row.fill);
      add(cases, row, dtype, "empty", {3, 0}, row.fill);
      add(cases, row, dtype, "long", {1, 4099}, row.fill);
      if (dtype == BP_DTYPE_FLOAT) add(cases, row, dtype, "dense", {64, 521}, row.fill);
    }
    for (const bp_dtype_t dtype : real_types()) {
      if (row.special) add(cases, row, dtype, "special", {3, 29}, Fill::kSpecial);
      if (dtype == BP_DTYPE_FLOAT) continue;
      add(cases, row, dtype, "every_value", {256, 256}, row.special ? Fill::kEvery : Fill::kEveryFinite);
      cases.mark_once();
    }
  }
  cases.add_real("Gelu", "tanh", [](Random& random, bp_dtype_t dtype) {
    return Problem{
        "Gelu", {{"approximate", std::string("tanh")}}, {random_tensor(random, dtype, {5, 33}, Fill::kWide)}};
  });
  for (const std::vector<int64_t>& extents : {std::vector<int64_t>{2, 9}, {}, {0}, {1031}}) {
    cases.add("Not", BP_DTYPE_BOOL, "rank" + std::to_string(extents.size()) + "_" + std::to_string(count_of(extents)),
              [=](Random& random) {
                return Problem{"Not", {}, {random_tensor(random, BP_DTYPE_BOOL, extents, Fill::kWide)}};
              });
  }
}

}  // namespace backplane::conform
