// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

// The kinds of inputs for dot products.
struct Inputs {
  const char* name;
  Fill fill;
  bool exact, around_zero;
};
const Inputs kInputs[] = {{"around_zero", Fill::kAroundZero, false, true},
                          {"positive", Fill::kPositive, false, false},
                          {"whole", Fill::kWhole, true, false}};

struct Shapes {
  const char* name;
  Extents a, b;
};
const Shapes kMatMuls[] = {
    {"small", {4, 5}, {5, 3}},           {"odd", {17, 33}, {33, 9}},
    {"vector_vector", {31}, {31}},       {"vector_matrix", {13}, {13, 6}},
    {"matrix_vector", {6, 13}, {13}},    {"batch", {2, 3, 4, 5}, {2, 3, 5, 6}},
    {"batch_shared", {3, 4, 5}, {5, 6}}, {"batch_broadcast", {2, 1, 4, 5}, {3, 5, 2}},
    {"long", {3, 1024}, {1024, 5}},      {"block", {64, 64}, {64, 48}},
    {"row", {1, 128}, {128, 33}},
};

Problem matmul(Random& random, bp_dtype_t dtype, const Shapes& shapes, const Inputs& inputs, bool is_constant) {
  onnx::Tensor a = random_tensor(random, dtype, shapes.a, inputs.fill);
  return {"MatMul", {},           {std::move(a), {random_tensor(random, dtype, shapes.b, inputs.fill), is_constant}},
          1,        inputs.exact, inputs.around_zero};
}

struct GemmRow {
  const char* name;
  bool trans_a, trans_b;
  float alpha, beta;
  std::optional<Extents> c;
};

}  // namespace

void add_dot_cases(OpCases& cases) {
  for (const Shapes& shapes : kMatMuls) {
    for (const Inputs& inputs : kInputs) {
      for (const bool is_constant : {false, true}) {
        const std::string name = std::string(shapes.name) + "_" + inputs.name + (is_constant ? "_constant" : "");
        cases.add_real("MatMul", name, [=](Random& random, bp_dtype_t dtype) {
          return matmul(random, dtype, shapes, inputs, is_constant);
        });
      }
    }
  }
  for (const Shapes& shapes : {Shapes{"no_terms", {3, 0}, {0, 4}}, Shapes{"no_rows", {0, 3}, {3, 4}}}) {
    cases.add_real("MatMul", shapes.name,
                   [=](Random& random, bp_dtype_t dtype) { return matmul(random, dtype, shapes, kInputs[2], false); });
  }

  const GemmRow rows[] = {
      {"plain", false, false, 1, 1, std::nullopt},        {"bias_row", false, false, 1, 1, Extents{7}},
      {"bias_column", false, false, 1, 1, Extents{5, 1}}, {"bias_full", false, false, 1, 1, Extents{5, 7}},
      {"bias_scalar", false, false, 1, 1, Extents{}},     {"trans_a", true, false, 1, 1, Extents{7}},
      {"trans_b", false, true, 1, 1, Extents{7}},         {"trans_both", true, true, 1, 1, std::nullopt},
      {"scaled", false, true, 0.5f, 2, Extents{1, 7}},    {"no_beta", false, false, 2, 0, Extents{7}},
  };
  for (const GemmRow& row : rows) {
    for (const int64_t k : {int64_t{6}, int64_t{65}, int64_t{512}}) {
      for (const Inputs& inputs : kInputs) {
        cases.add_real("Gemm", std::string(row.name) + "_k" + std::to_string(k) + "_" + inputs.name,
                       [=](Random& random, bp_dtype_t dtype) {
                         const auto tensor = [&](const Extents& extents) {
                           return random_tensor(random, dtype, extents, inputs.fill);
                         };
                         Problem problem{"Gemm",
                                         {{"alpha", row.alpha},
                                          {"beta", row.beta},
                                          {"transA", int64_t{row.trans_a}},
                                          {"transB", int64_t{row.trans_b}}},
                                         {}};
                         problem.arguments.emplace_back(tensor(row.trans_a ? Extents{k, 5} : Extents{5, k}));
                         problem.arguments.push_back(constant(tensor(row.trans_b ? Extents{7, k} : Extents{k, 7})));
                         if (row.c) problem.arguments.push_back(constant(tensor(*row.c)));
                         problem.exact_sums = inputs.exact;
                         problem.drawn_around_zero = inputs.around_zero && !row.c;
                         return problem;
                       });
      }
    }
  }
}

}  // namespace backplane::conform
