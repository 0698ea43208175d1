// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>

namespace backplane::conform {
namespace {

using Types = std::vector<bp_dtype_t>;
const Types kReal(real_types().begin(), real_types().end()),
    kArithmetic = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT32, BP_DTYPE_INT64},
    kBool = {BP_DTYPE_BOOL};

struct Row {
  const char* op;
  Types types;
  Fill left, right;
  bool special;
  Attributes attributes = {};
};

const std::vector<Row>& rows() {
  static const std::vector<Row> kTable = {
      {"Add", kArithmetic, Fill::kMagnitudes, Fill::kMagnitudes, true},
      {"Sub", kArithmetic, Fill::kMagnitudes, Fill::kMagnitudes, true},
      {"Mul", kArithmetic, Fill::kMagnitudes, Fill::kMagnitudes, true},
      {"Div", kArithmetic, Fill::kWide, Fill::kPositive, true},
      {"Pow", kReal, Fill::kPositive, Fill::kWide, false},
      {"Max", kArithmetic, Fill::kWide, Fill::kWide, true},
      {"Min", kArithmetic, Fill::kWide, Fill::kWide, true},
      {"Sum", kReal, Fill::kWide, Fill::kWide, false},
      {"Mod", {BP_DTYPE_INT32, BP_DTYPE_INT64}, Fill::kWide, Fill::kPositive, false, {{"fmod", int64_t{0}}}},
      {"Equal",
       {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT32, BP_DTYPE_INT64, BP_DTYPE_BOOL},
       Fill::kWhole,
       Fill::kWhole,
       true},
      {"Greater", kArithmetic, Fill::kWhole, Fill::kWhole, true},
      {"GreaterOrEqual", kArithmetic, Fill::kWhole, Fill::kWhole, true},
      {"Less", kArithmetic, Fill::kWhole, Fill::kWhole, true},
      {"LessOrEqual", kArithmetic, Fill::kWhole, Fill::kWhole, true},
      {"And", kBool, Fill::kWide, Fill::kWide, false},
      {"Or", kBool, Fill::kWide, Fill::kWide, false},
      {"Xor", kBool, Fill::kWide, Fill::kWide, false},
  };
  return kTable;
}

struct Shapes {
  const char* variant;
  Extents left, right;
};
const Shapes kShapes[] = {
    {"same", {3, 5}, {3, 5}},
    {"same_long", {4, 1033}, {4, 1033}},
    {"row", {6, 7}, {7}},
    {"column", {6, 7}, {6, 1}},
    {"outer", {5, 1}, {1, 9}},
    {"channel", {2, 3, 4, 5}, {3, 1, 1}},
    {"inner", {2, 3, 4, 5}, {3, 1, 5}},
    {"scalar_right", {3, 8}, {}},
    {"scalar_left", {}, {3, 8}},
    {"grow_left", {7}, {2, 3, 7}},
    {"scalars", {}, {}},
    {"empty", {0, 5}, {5}},
};

Problem problem(const Row& row, onnx::Tensor left, Argument right) {
  return {row.op, row.attributes, {std::move(left), std::move(right)}};
}

}  // namespace

void add_binary_cases(OpCases& cases) {
  for (const Row& row : rows()) {
    for (const bp_dtype_t dtype : row.types) {
      for (const Shapes& shapes : kShapes) {
        cases.add(row.op, dtype, shapes.variant, [=](Random& random) {
          onnx::Tensor left = random_tensor(random, dtype, shapes.left, row.left);
          return problem(row, std::move(left), random_tensor(random, dtype, shapes.right, row.right));
        });
      }
      cases.add(row.op, dtype, "constant", [=](Random& random) {
        onnx::Tensor left = random_tensor(random, dtype, {4, 6}, row.left);
        return problem(row, std::move(left), constant(random_tensor(random, dtype, {6}, row.right)));
      });
    }
    if (!row.special) continue;
    const auto n = static_cast<int64_t>(special_values(BP_DTYPE_FLOAT).size());
    cases.add_real(row.op, "special", [=](Random& random, bp_dtype_t dtype) {  // all pairs of values
      onnx::Tensor left = random_tensor(random, dtype, {n, 1}, Fill::kSpecial);
      return problem(row, std::move(left), random_tensor(random, dtype, {1, n}, Fill::kSpecial));
    });
  }
  for (const char* op : {"Max", "Min", "Sum"}) {
    for (const size_t count : {size_t{1}, size_t{3}, size_t{5}}) {
      cases.add_real(op, "of" + std::to_string(count), [=](Random& random, bp_dtype_t dtype) {
        Problem many{op, {}, {}};
        for (size_t i = 0; i < count; ++i) {
          many.arguments.emplace_back(
              random_tensor(random, dtype, i % 2 == 0 ? Extents{3, 9} : Extents{9}, Fill::kWide));
        }
        return many;
      });
    }
  }
  for (const bp_dtype_t dtype : kArithmetic) {
    cases.add("Mod", dtype, "fmod", [=](Random& random) {
      onnx::Tensor left = random_tensor(random, dtype, {5, 11}, Fill::kWide);
      return Problem{
          "Mod", {{"fmod", int64_t{1}}}, {std::move(left), random_tensor(random, dtype, {11}, Fill::kPositive)}};
    });
  }
  // Divisors of both signs. Without `fmod`, a remainder has the sign of the divisor; with `fmod`, it has the sign of
  // the dividend.
  for (const bp_dtype_t dtype : {BP_DTYPE_INT32, BP_DTYPE_INT64}) {
    const auto operands = [=](Random& random) {
      Array left(dtype, {7, 9}), right(dtype, {7, 9});
      for (double& x : left.values) x = static_cast<double>(random.integer(-20, 20));
      for (double& x : right.values) x = static_cast<double>(random.integer(1, 7) * (random.integer(0, 1) * 2 - 1));
      return std::vector<Argument>{to_tensor(left), to_tensor(right)};
    };
    cases.add_to(kExtended, "Div", dtype, "signs", [=](Random& random) {
      return Problem{"Div", {}, operands(random)};
    });
    for (const int64_t fmod : {int64_t{0}, int64_t{1}}) {
      cases.add_to(kExtended, "Mod", dtype, "signs_fmod" + std::to_string(fmod), [=](Random& random) {
        return Problem{"Mod", {{"fmod", fmod}}, operands(random)};
      });
    }
  }
  // Remainders of real numbers, without `fmod`. Every step is exact, however a device computes them.
  for (const bp_dtype_t dtype : real_types()) {
    const auto remainder = [](onnx::Tensor left, onnx::Tensor right) {
      return Problem{.op = "Mod",
                     .attributes = {{"fmod", int64_t{0}}},
                     .arguments = {std::move(left), std::move(right)},
                     .since = 28};
    };
    cases.add_to(kExtended, "Mod", dtype, "signs_fmod0", [=](Random& random) {
      Array left(dtype, {7, 9}), right(dtype, {7, 9});
      for (double& x : left.values) x = static_cast<double>(random.integer(-20, 20)) / 4;
      for (double& x : right.values) x = static_cast<double>(random.integer(1, 7) * (random.integer(0, 1) * 2 - 1)) / 4;
      return remainder(to_tensor(left), to_tensor(right));
    });
    cases.add_to(kExtended, "Mod", dtype, "special_fmod0", [=](Random&) {
      const std::vector<double> values = {0.0, -0.0, 1.5, -1.5, 2, -2, INFINITY, -INFINITY, NAN};
      const auto n = static_cast<int64_t>(values.size());
      return remainder(reals(dtype, {n, 1}, values), reals(dtype, {1, n}, values));
    });
    cases.mark_once();
    cases.add_to(kExtended, "Mod", dtype, "zeros_fmod0", [=](Random&) {
      return remainder(reals(dtype, {2, 1}, {0.0, -0.0}), reals(dtype, {1, 4}, {2, -2, INFINITY, -INFINITY}));
    });
    cases.mark_once();
  }
  // Negative bases, for which a power cannot be computed from a logarithm alone, and exponents of another type.
  for (const bp_dtype_t dtype : real_types()) {
    for (const bp_dtype_t exponent : {dtype, bp_dtype_t{BP_DTYPE_INT32}, bp_dtype_t{BP_DTYPE_INT64}}) {
      cases.add_to(kExtended, "Pow", dtype, exponent == dtype ? "signs" : "signs_" + std::to_string(exponent),
                   [=](Random& random) {
                     Array base(dtype, {6, 8}), whole(exponent, {6, 8});
                     for (double& x : base.values) x = random.uniform(0.25, 3) * (random.integer(0, 1) == 0 ? 1 : -1);
                     for (double& x : whole.values) x = static_cast<double>(random.integer(-3, 5));
                     return Problem{"Pow", {}, {to_tensor(base), to_tensor(whole)}};
                   });
    }
  }
  const Shapes slopes[] = {{"one", {2, 3, 7}, {1}}, {"channel", {2, 3, 7}, {3, 1}}, {"same", {4, 9}, {4, 9}}};
  for (const Shapes& shapes : slopes) {
    cases.add_real("PRelu", shapes.variant, [=](Random& random, bp_dtype_t dtype) {
      onnx::Tensor left = random_tensor(random, dtype, shapes.left, Fill::kWide);
      return Problem{
          "PRelu", {}, {std::move(left), constant(random_tensor(random, dtype, shapes.right, Fill::kAroundZero))}};
    });
  }
}

}  // namespace backplane::conform
