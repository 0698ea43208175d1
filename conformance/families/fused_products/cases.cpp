// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

constexpr bp_dtype_t kBytes[] = {BP_DTYPE_UINT8, BP_DTYPE_INT8};

struct MatMul {
  const char* variant;
  Extents a, b;
  bool trans_a = false, trans_b = false;
  float alpha = 1;
  bool known = false;
};
const MatMul kMatMuls[] = {
    {"plain", {4, 5}, {5, 3}},
    {"known", {17, 33}, {33, 9}, false, false, 1, true},
    {"trans_a", {33, 17}, {33, 9}, true},
    {"trans_b", {17, 33}, {9, 33}, false, true, 1, true},
    {"trans_both", {33, 17}, {9, 33}, true, true},
    {"scaled", {6, 13}, {13, 6}, false, false, 0.25f},
    {"scaled_trans_b", {6, 13}, {7, 13}, false, true, -2},
    {"batch", {2, 3, 5, 4}, {2, 3, 6, 5}, true, true, 0.5f},
    {"batch_broadcast", {2, 1, 4, 5}, {3, 2, 5}, false, true},
    {"batch_shared", {3, 5, 4}, {5, 6}, true},
    {"heads", {2, 4, 9, 16}, {2, 4, 9, 16}, false, true, 0.125f},
    {"long", {3, 1024}, {5, 1024}, false, true},
    {"row", {1, 128}, {128, 33}, false, false, 1, true},
    {"no_rows", {0, 3}, {4, 3}, false, true},
};

Problem make(const MatMul& row, Random& random, bp_dtype_t dtype, Fill fill) {
  Problem problem{"FusedMatMul",
                  {{"alpha", row.alpha},
                   {"transA", int64_t{row.trans_a}},
                   {"transB", int64_t{row.trans_b}},
                   {"transBatchA", int64_t{0}},
                   {"transBatchB", int64_t{0}}},
                  {}};
  problem.arguments = {random_tensor(random, dtype, row.a, fill),
                       {random_tensor(random, dtype, row.b, fill), row.known}};
  problem.exact_sums = fill == Fill::kWhole;
  problem.drawn_around_zero = fill == Fill::kAroundZero;
  return problem;
}

struct Activation {
  const char* name;
  std::vector<float> parameters;
  bool exact;  // integers have exact results
};

struct Gemm {
  const char* variant;
  bool trans_a, trans_b;
  float alpha, beta;
  std::optional<Extents> c;
  Activation activation;
};
const Gemm kGemms[] = {
    {"relu", false, false, 1, 1, Extents{7}, {"Relu", {}, true}},
    {"relu_without_c", false, true, 1, 1, std::nullopt, {"Relu", {}, true}},
    {"relu_scaled", true, false, 0.5f, 2, Extents{5, 1}, {"Relu", {}, true}},
    {"leaky_relu", false, true, 1, 1, Extents{1, 7}, {"LeakyRelu", {0.25f}, true}},
    {"leaky_relu_small", true, true, 1, 1, Extents{5, 7}, {"LeakyRelu", {0.0625f}, true}},
    {"tanh", false, false, 0.25f, 1, Extents{}, {"Tanh", {}, false}},
    {"sigmoid", false, true, 0.25f, 0.5f, Extents{7}, {"Sigmoid", {}, false}},
    {"hard_sigmoid", false, false, 0.25f, 1, Extents{7}, {"HardSigmoid", {0.125f, 0.25f}, true}},
    {"hard_sigmoid_steep", false, false, 0.25f, 1, Extents{7}, {"HardSigmoid", {0.5f, 0.5f}, true}},
};

Problem make(const Gemm& row, Random& random, int64_t k, Fill fill) {
  const auto tensor = [&](const Extents& extents) { return random_tensor(random, BP_DTYPE_FLOAT, extents, fill); };
  Problem problem{"FusedGemm",
                  {{"activation", std::string(row.activation.name)},
                   {"alpha", row.alpha},
                   {"beta", row.beta},
                   {"transA", int64_t{row.trans_a}},
                   {"transB", int64_t{row.trans_b}}},
                  {tensor(row.trans_a ? Extents{k, 5} : Extents{5, k}),
                   constant(tensor(row.trans_b ? Extents{7, k} : Extents{k, 7}))}};
  const std::vector<float>& parameters = row.activation.parameters;
  if (!parameters.empty()) problem.attributes.push_back({"activation_alpha", parameters[0]});
  if (parameters.size() > 1) problem.attributes.push_back({"activation_beta", parameters[1]});
  if (row.c) problem.arguments.push_back(constant(tensor(*row.c)));
  problem.exact_sums = fill == Fill::kWhole;
  return problem;
}

struct Conv {
  const char* variant;
  Extents x, w;
  Activation activation;
  bool bias = true, z = false;
  Extents pads = {1, 1, 1, 1}, strides = {1, 1}, dilations = {1, 1};
  int64_t group = 1;
  const char* auto_pad = "NOTSET";
};
const Conv kConvs[] = {
    {"plain", {1, 3, 9, 9}, {4, 3, 3, 3}, {"Relu", {}, true}},
    {"no_pads", {2, 3, 8, 7}, {5, 3, 3, 3}, {"Relu", {}, true}, true, false, {0, 0, 0, 0}},
    {"strides", {2, 8, 9, 8}, {16, 8, 3, 3}, {"Relu", {}, true}, true, false, {1, 0, 1, 2}, {2, 3}},
    {"pointwise", {1, 16, 6, 6}, {8, 16, 1, 1}, {"Relu", {}, true}, false, false, {0, 0, 0, 0}},
    {"sum", {1, 8, 7, 7}, {8, 8, 3, 3}, {"Relu", {}, true}, true, true},
    {"sum_without_bias", {1, 8, 7, 7}, {8, 8, 3, 3}, {"Relu", {}, true}, false, true},
    {"leaky_relu", {1, 4, 8, 8}, {5, 4, 3, 3}, {"LeakyRelu", {0.25f}, true}},
    {"leaky_relu_small", {1, 4, 8, 8}, {5, 4, 3, 3}, {"LeakyRelu", {0.0625f}, true}, true, true},
    {"clip", {1, 4, 8, 8}, {5, 4, 3, 3}, {"Clip", {-0.5f, 1.5f}, true}},
    {"hard_sigmoid", {1, 4, 8, 8}, {5, 4, 3, 3}, {"HardSigmoid", {0.25f, 0.5f}, true}},
    {"tanh", {1, 4, 8, 8}, {5, 4, 3, 3}, {"Tanh", {}, false}},
    {"sigmoid", {1, 4, 8, 8}, {5, 4, 3, 3}, {"Sigmoid", {}, false}, false},
    {"groups", {1, 12, 8, 8}, {8, 3, 3, 3}, {"Relu", {}, true}, true, false, {1, 1, 1, 1}, {1, 1}, {1, 1}, 4},
    {"depthwise", {1, 16, 9, 9}, {16, 1, 3, 3}, {"Relu", {}, true}, true, true, {1, 1, 1, 1}, {1, 1}, {1, 1}, 16},
    {"dilations", {1, 4, 11, 11}, {5, 4, 3, 3}, {"Relu", {}, true}, true, false, {2, 2, 2, 2}, {1, 1}, {2, 2}},
    {"same_upper", {1, 3, 10, 11}, {4, 3, 4, 3}, {"Relu", {}, true}, false, false, {}, {2, 2}, {1, 1}, 1, "SAME_UPPER"},
    {"line", {2, 6, 21}, {5, 6, 5}, {"Relu", {}, true}, true, false, {2, 2}, {1}, {1}},
    {"empty", {0, 3, 9, 9}, {4, 3, 3, 3}, {"Relu", {}, true}},
};

Problem make(const Conv& row, Random& random, Fill fill) {
  Problem problem{"FusedConv",
                  {{"activation", std::string(row.activation.name)},
                   {"auto_pad", std::string(row.auto_pad)},
                   {"dilations", row.dilations},
                   {"group", row.group},
                   {"kernel_shape", Extents(row.w.begin() + 2, row.w.end())},
                   {"strides", row.strides}},
                  {}};
  if (!row.pads.empty()) problem.attributes.push_back({"pads", row.pads});
  if (!row.activation.parameters.empty())
    problem.attributes.push_back({"activation_params", row.activation.parameters});
  const auto tensor = [&](const Extents& extents) { return random_tensor(random, BP_DTYPE_FLOAT, extents, fill); };
  problem.arguments = {tensor(row.x), constant(tensor(row.w))};
  problem.arguments.push_back(row.bias ? constant(tensor({row.w[0]})) : Argument());
  if (row.z) problem.arguments.emplace_back(tensor({row.x[0], row.w[0], row.x[2], row.x[3]}));
  while (!problem.arguments.back().tensor) problem.arguments.pop_back();
  problem.exact_sums = fill == Fill::kWhole;
  return problem;
}

struct Integers {
  const char* variant;
  Extents a, b;
  bool columns = false, zeros = true, bias = false, known = true;
};
const Integers kIntegers[] = {
    {"plain", {4, 12}, {12, 7}},
    {"bias", {4, 12}, {12, 7}, false, true, true},
    {"columns", {5, 33}, {33, 9}, true, true, true},
    {"no_zero_points", {5, 33}, {33, 9}, true, false},
    {"no_zero_points_but_bias", {3, 16}, {16, 8}, false, false, true},
    {"batch", {2, 3, 16}, {16, 8}, true, true, true},
    {"row", {1, 64}, {64, 33}, false, true, true},
    {"block", {17, 128}, {128, 48}, true, true, true},
    {"given_weights", {4, 12}, {12, 7}, true, true, true, false},
    {"no_rows", {0, 12}, {12, 7}},
};

// MatMulIntegerToFloat, or with `dynamic` DynamicQuantizeMatMul. `of_a` is the type of A, which is FLOAT if `dynamic`.
Problem make(const Integers& row, Random& random, bool dynamic, bp_dtype_t of_a, bp_dtype_t of_b, bp_dtype_t real) {
  const auto bytes = [&](bp_dtype_t type, Extents extents, int64_t low, int64_t high) {
    Array array(type, std::move(extents));
    const int64_t shift = type == BP_DTYPE_INT8 ? 128 : 0;
    for (double& x : array.values) x = static_cast<double>(random.integer(low, high) - shift);
    return to_tensor(array);
  };
  const auto scales = [&](Extents extents) {
    Array array(real, std::move(extents));
    for (double& x : array.values) x = random.uniform(0.5, 2) / 64;
    return to_tensor(array);
  };
  const int64_t width = row.b.back();
  const Extents columns = row.columns ? Extents{width} : Extents{};
  const auto optional = [&](bool is_there, onnx::Tensor tensor) {
    return is_there ? Argument(std::move(tensor), row.known) : Argument();
  };
  Problem problem{dynamic ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat", {}, {}};
  std::vector<Argument>& arguments = problem.arguments;
  arguments.emplace_back(dynamic ? random_tensor(random, BP_DTYPE_FLOAT, row.a, Fill::kWide)
                                 : bytes(of_a, row.a, 0, 255));
  arguments.push_back(optional(true, bytes(of_b, row.b, 0, 255)));
  if (!dynamic) arguments.push_back(optional(true, scales({})));
  arguments.push_back(optional(true, scales(columns)));
  if (!dynamic) arguments.push_back(optional(row.zeros, bytes(of_a, {}, 100, 150)));
  arguments.push_back(optional(row.zeros, bytes(of_b, columns, 100, 150)));
  arguments.push_back(optional(row.bias, random_tensor(random, real, {width}, Fill::kWide)));
  while (!arguments.back().tensor) arguments.pop_back();
  return problem;
}

std::string named(const std::string& variant, Fill fill) {
  return variant + (fill == Fill::kWhole ? "_whole" : "");
}

void add_integers(OpCases& cases, const Integers& row) {
  for (const bp_dtype_t of_b : kBytes) {
    cases.add_to(kMicrosoft, "DynamicQuantizeMatMul", of_b, row.variant,
                 [=, &row](Random& random) { return make(row, random, true, BP_DTYPE_FLOAT, of_b, BP_DTYPE_FLOAT); });
    for (const bp_dtype_t of_a : kBytes) {
      for (const bp_dtype_t real : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
        const std::string variant = std::string(row.variant) + (of_b == BP_DTYPE_INT8 ? "_by_int8" : "_by_uint8") +
                                    (real == BP_DTYPE_FLOAT16 ? "_float16" : "");
        cases.add_to(kMicrosoft, "MatMulIntegerToFloat", of_a, variant,
                     [=, &row](Random& random) { return make(row, random, false, of_a, of_b, real); });
      }
    }
  }
}

}  // namespace

void add_fused_products_cases(OpCases& cases) {
  for (const Fill fill : {Fill::kAroundZero, Fill::kWhole}) {
    for (const MatMul& row : kMatMuls) {
      for (const bp_dtype_t dtype : real_types()) {
        cases.add_to(kMicrosoft, "FusedMatMul", dtype, named(row.variant, fill),
                     [=, &row](Random& random) { return make(row, random, dtype, fill); });
      }
    }
    for (const Gemm& row : kGemms) {
      if (fill == Fill::kWhole && !row.activation.exact) continue;
      for (const int64_t k : {int64_t{6}, int64_t{65}}) {
        cases.add_to(kMicrosoft, "FusedGemm", BP_DTYPE_FLOAT,
                     named(row.variant + std::string("_k") + std::to_string(k), fill),
                     [=, &row](Random& random) { return make(row, random, k, fill); });
      }
    }
    for (const Conv& row : kConvs) {
      if (fill == Fill::kWhole && !row.activation.exact) continue;
      cases.add_to(kMicrosoft, "FusedConv", BP_DTYPE_FLOAT, named(row.variant, fill),
                   [=, &row](Random& random) { return make(row, random, fill); });
    }
  }
  for (const Integers& row : kIntegers) add_integers(cases, row);
}

}  // namespace backplane::conform
