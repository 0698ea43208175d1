// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

constexpr bp_dtype_t kBytes[] = {BP_DTYPE_UINT8, BP_DTYPE_INT8};

// Draws the inputs of a problem: tensors of 8-bit values of one type, scales and zero points.
struct Draw {
  Random& random;
  bp_dtype_t dtype;

  onnx::Tensor bytes(Extents extents, int64_t low, int64_t high) const {
    const int64_t shift = dtype == BP_DTYPE_INT8 ? 128 : 0;
    Array array(dtype, std::move(extents));
    for (double& x : array.values) x = static_cast<double>(random.integer(low, high) - shift);
    return to_tensor(array);
  }
  Argument values(Extents extents) const { return bytes(std::move(extents), 0, 255); }
  // Appends a scale from half of `about` to twice of it, and a zero point.
  void step(std::vector<Argument>& to, double about) const {
    Array scale(BP_DTYPE_FLOAT, {});
    scale.values[0] = about * random.uniform(0.5, 2);
    to.push_back(constant(to_tensor(scale)));
    to.push_back(constant(bytes({}, 100, 150)));
  }
};

struct Binary {
  const char* variant;
  Extents a, b;
  bool constant_b = false, result_zero_point = true;
};
const Binary kBinaries[] = {
    {"plain", {2, 3, 16}, {2, 3, 16}},
    {"odd", {7, 13}, {7, 13}},
    {"channels", {2, 5, 4, 3}, {5, 1, 1}, true},
    {"row", {4, 33}, {33}},
    {"both", {3, 1, 7}, {5, 1}},
    {"scalar", {3, 9}, {}, true},
    {"scalars", {}, {}},
    {"long", {1, 4099}, {1, 4099}},
    {"no_result_zero_point", {5, 9}, {5, 9}, false, false},
    {"empty", {0, 4}, {4}},
};

struct Pool {
  const char* variant;
  Extents x, kernel, pads, strides;
  bool counts_padding = false, ceil = false;
  const char* auto_pad = "NOTSET";
};
const Pool kPools[] = {
    {"plain", {1, 3, 8, 8}, {2, 2}, {0, 0, 0, 0}, {2, 2}},
    {"padded", {2, 4, 9, 7}, {3, 3}, {1, 1, 1, 1}, {2, 2}},
    {"padding_counts", {2, 4, 9, 7}, {3, 3}, {1, 1, 1, 1}, {2, 2}, true},
    {"overlap", {1, 17, 6, 6}, {3, 3}, {1, 0, 0, 1}, {1, 1}},
    // Windows that do not cover the last elements, unless `ceil_mode` is set.
    {"floor", {1, 2, 8, 6}, {3, 3}, {0, 0, 0, 0}, {2, 2}},
    {"ceil", {1, 2, 8, 8}, {3, 3}, {0, 0, 0, 0}, {2, 2}, false, true},
    {"uneven", {1, 3, 6, 9}, {2, 4}, {1, 0, 0, 2}, {1, 3}, true},
    {"same_upper", {1, 2, 7, 5}, {2, 2}, {}, {2, 2}, false, false, "SAME_UPPER"},
    {"same_lower", {1, 2, 7, 5}, {2, 2}, {}, {2, 2}, false, false, "SAME_LOWER"},
    {"line", {2, 3, 19}, {3}, {1, 1}, {2}},
    {"empty", {0, 2, 6, 6}, {2, 2}, {0, 0, 0, 0}, {2, 2}},
};

Problem make(const Pool& row, const Draw& draw) {
  Problem problem{"QLinearAveragePool",
                  {{"auto_pad", std::string(row.auto_pad)},
                   {"ceil_mode", int64_t{row.ceil}},
                   {"channels_last", int64_t{0}},
                   {"count_include_pad", int64_t{row.counts_padding}},
                   {"kernel_shape", row.kernel},
                   {"strides", row.strides}},
                  {draw.values(row.x)}};
  if (!row.pads.empty()) problem.attributes.push_back({"pads", row.pads});
  draw.step(problem.arguments, 1.0 / 16);
  draw.step(problem.arguments, 1.0 / 32);
  return problem;
}

void add_unary(OpCases& cases, bp_dtype_t dtype) {
  const auto add = [&](const std::string& variant, const Extents& extents, bool result_zero_point = true) {
    cases.add_to(kMicrosoft, "QLinearSigmoid", dtype, variant, [=](Random& random) {
      const Draw draw{random, dtype};
      Problem problem{"QLinearSigmoid", {}, {draw.values(extents)}};
      draw.step(problem.arguments, 1.0 / 16);
      draw.step(problem.arguments, 1.0 / 128);
      if (!result_zero_point) problem.arguments.pop_back();
      return problem;
    });
    for (const float alpha : {0.01f, 0.25f}) {
      cases.add_to(kMicrosoft, "QLinearLeakyRelu", dtype, variant + (alpha > 0.1f ? "_steep" : ""),
                   [=](Random& random) {
                     const Draw draw{random, dtype};
                     Problem problem{"QLinearLeakyRelu", {{"alpha", alpha}}, {draw.values(extents)}};
                     draw.step(problem.arguments, 1.0 / 16);
                     draw.step(problem.arguments, 1.0 / 16);
                     if (!result_zero_point) problem.arguments.pop_back();
                     return problem;
                   });
    }
  };
  add("plain", {2, 3, 16});
  add("odd", {7, 13});
  add("scalar", {});
  add("long", {1, 4099});
  add("no_result_zero_point", {5, 9}, false);
  add("empty", {3, 0});
}

void add_concat(OpCases& cases, bp_dtype_t dtype) {
  const auto add = [&](const char* variant, int64_t axis, const std::vector<Extents>& parts, bool same = false) {
    cases.add_to(kMicrosoft, "QLinearConcat", dtype, variant, [=](Random& random) {
      const Draw draw{random, dtype};
      Problem problem{"QLinearConcat", {{"axis", axis}}, {}};
      draw.step(problem.arguments, 1.0 / 16);
      for (const Extents& part : parts) {
        const std::vector<Argument> of_result(problem.arguments.begin(), problem.arguments.begin() + 2);
        problem.arguments.push_back(draw.values(part));
        if (same)
          problem.arguments.insert(problem.arguments.end(), of_result.begin(), of_result.end());
        else
          draw.step(problem.arguments, 1.0 / 16);
      }
      return problem;
    });
  };
  add("plain", 1, {{2, 3, 5}, {2, 4, 5}});
  add("last", -1, {{3, 4}, {3, 1}, {3, 9}});
  add("first", 0, {{2, 7}, {1, 7}});
  add("one", 0, {{5}});
  add("same_scales", 1, {{1, 3, 4, 4}, {1, 5, 4, 4}}, true);
  add("empty_part", 1, {{2, 0}, {2, 6}});
}

}  // namespace

void add_qlinear_cases(OpCases& cases) {
  for (const bp_dtype_t dtype : kBytes) {
    for (const char* op : {"QLinearAdd", "QLinearMul"}) {
      for (const Binary& row : kBinaries) {
        cases.add_to(kMicrosoft, op, dtype, row.variant, [=, &row](Random& random) {
          const Draw draw{random, dtype};
          Problem problem{op, {}, {draw.values(row.a)}};
          draw.step(problem.arguments, 1.0 / 16);
          problem.arguments.push_back(draw.values(row.b));
          problem.arguments.back().constant = row.constant_b;
          draw.step(problem.arguments, 1.0 / 16);
          draw.step(problem.arguments, op == std::string_view("QLinearAdd") ? 1.0 / 10 : 1.0 / 3);
          if (!row.result_zero_point) problem.arguments.pop_back();
          return problem;
        });
      }
    }
    add_unary(cases, dtype);
    add_concat(cases, dtype);
    for (const Pool& row : kPools) {
      cases.add_to(kMicrosoft, "QLinearAveragePool", dtype, row.variant, [=, &row](Random& random) {
        return make(row, {random, dtype});
      });
    }
    for (const Extents& extents : {Extents{2, 3, 7, 7}, Extents{1, 33, 5, 3}, Extents{1, 2, 19}}) {
      for (const int64_t last : {int64_t{0}, int64_t{1}}) {
        const std::string variant =
            "rank" + std::to_string(extents.size()) + "_" + std::to_string(extents[1]) + (last != 0 ? "_last" : "");
        cases.add_to(kMicrosoft, "QLinearGlobalAveragePool", dtype, variant, [=](Random& random) {
          const Draw draw{random, dtype};
          Problem problem{"QLinearGlobalAveragePool", {{"channels_last", last}}, {draw.values(extents)}};
          draw.step(problem.arguments, 1.0 / 16);
          draw.step(problem.arguments, 1.0 / 64);
          return problem;
        });
      }
    }
  }
}

}  // namespace backplane::conform
