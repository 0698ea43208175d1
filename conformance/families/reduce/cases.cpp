// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <algorithm>

namespace backplane::conform {
namespace {

struct Row {
  const char* name;
  Extents x;
  std::optional<Extents> axes;
  bool keep, noop = false;
};
const Row kRows[] = {
    {"last", {3, 4, 9}, Extents{-1}, true},   {"first", {5, 7}, Extents{0}, false},
    {"middle", {2, 5, 6}, Extents{1}, true},  {"two", {2, 3, 4, 5}, Extents{1, 3}, false},
    {"all", {3, 5, 2}, std::nullopt, true},   {"all_gone", {3, 5}, std::nullopt, false},
    {"long", {2, 1999}, Extents{1}, false},   {"noop", {3, 4}, Extents{}, true, true},
    {"ones", {1, 6, 1}, Extents{0, 2}, true}, {"empty_kept", {0, 3}, Extents{1}, false},
};

// The number of elements that are reduced to one.
int64_t terms_of(const Row& row) {
  int64_t terms = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(row.x.size()); ++i) {
    const auto is_i = [&](int64_t axis) { return normal_axis(axis, static_cast<int64_t>(row.x.size())) == i; };
    if (!row.axes || std::ranges::any_of(*row.axes, is_i)) terms *= row.x[static_cast<size_t>(i)];
  }
  return std::max<int64_t>(1, terms);
}

}  // namespace

void add_reduce_cases(OpCases& cases) {
  struct Op {
    const char* name;
    Fill fill;  // of all but ReduceProd
    std::vector<bp_dtype_t> types;
  };
  const std::vector<bp_dtype_t> with_ints = {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16, BP_DTYPE_BFLOAT16, BP_DTYPE_INT32,
                                             BP_DTYPE_INT64},
                                only_float(real_types().begin(), real_types().end());
  const Op ops[] = {{"ReduceSum", Fill::kAroundZero, with_ints},
                    {"ReduceL1", Fill::kAroundZero, only_float},
                    {"ReduceSumSquare", Fill::kAroundZero, only_float},
                    {"ReduceMean", Fill::kAroundZero, only_float},
                    {"ReduceL2", Fill::kAroundZero, only_float},
                    {"ReduceLogSumExp", Fill::kWide, only_float},
                    {"ReduceMax", Fill::kWide, with_ints},
                    {"ReduceMin", Fill::kWide, with_ints},
                    {"ReduceProd", Fill::kPositive, only_float}};
  for (const Op& op : ops) {
    for (const bp_dtype_t dtype : op.types) {
      for (const Row& row : kRows) {
        if (row.noop && std::string_view(op.name) != "ReduceSum" && std::string_view(op.name) != "ReduceMax") continue;
        if (std::string_view(row.name) == "long" && std::string_view(op.name) == "ReduceProd") continue;
        cases.add(op.name, dtype, row.name, [=](Random& random) {
          const bool multiplies = std::string_view(op.name) == "ReduceProd";
          Problem problem{op.name,
                          {{"keepdims", int64_t{row.keep}}, {"noop_with_empty_axes", int64_t{row.noop}}},
                          {multiplies ? random_factors(random, dtype, row.x, terms_of(row))
                                      : random_tensor(random, dtype, row.x, op.fill)}};
          if (row.axes) problem.arguments.push_back(constant(integers(*row.axes)));
          problem.drawn_around_zero = std::string_view(op.name) == "ReduceSum";
          return problem;
        });
      }
    }
  }
  cases.add_real("ReduceSum", "whole", [](Random& random, bp_dtype_t dtype) {
    return Problem{"ReduceSum",
                   {{"keepdims", int64_t{0}}, {"noop_with_empty_axes", int64_t{0}}},
                   {random_tensor(random, dtype, {3, 777}, Fill::kWhole), constant(integers({1}))},
                   1,
                   true};
  });
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const int64_t axis : {int64_t{0}, int64_t{1}, int64_t{-1}}) {
      for (const int64_t last : {int64_t{0}, int64_t{1}}) {
        for (const Fill fill : {Fill::kWide, Fill::kWhole}) {  // kWhole has many equal elements
          cases.add_real(
              op, "axis" + std::to_string(axis) + (last != 0 ? "_last" : "") + (fill == Fill::kWhole ? "_ties" : ""),
              [=](Random& random, bp_dtype_t dtype) {
                return Problem{op,
                               {{"axis", axis}, {"keepdims", int64_t{axis != 0}}, {"select_last_index", last}},
                               {random_tensor(random, dtype, {4, 21, 5}, fill)}};
              });
        }
      }
    }
  }
}

}  // namespace backplane::conform
