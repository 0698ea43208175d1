// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

#include <cmath>

namespace backplane::conform {
namespace {

constexpr std::string_view kQuant = "quant";
constexpr bp_dtype_t kBytes[] = {BP_DTYPE_UINT8, BP_DTYPE_INT8};

// Random numbers from the whole range of an integer type.
onnx::Tensor whole_range(Random& random, bp_dtype_t dtype, Extents extents) {
  Array array(dtype, std::move(extents));
  const bool wide = dtype == BP_DTYPE_UINT16 || dtype == BP_DTYPE_INT16,
             is_signed = dtype == BP_DTYPE_INT8 || dtype == BP_DTYPE_INT16;
  const int64_t count = wide ? 65536 : 256, low = is_signed ? -count / 2 : 0;
  for (double& x : array.values) x = static_cast<double>(random.integer(low, low + count - 1));
  return to_tensor(array);
}
onnx::Tensor near_middle(Random& random, bp_dtype_t dtype, Extents extents) {
  Array array(dtype, std::move(extents));
  const int64_t middle = dtype == BP_DTYPE_INT8 || dtype == BP_DTYPE_INT16 ? 0 : dtype == BP_DTYPE_UINT8 ? 128 : 32768;
  for (double& x : array.values) x = static_cast<double>(middle + random.integer(-20, 20));
  return to_tensor(array);
}
onnx::Tensor scales(Random& random, bp_dtype_t dtype, Extents extents, double about) {
  Array array(dtype, std::move(extents));
  for (double& x : array.values) x = about * random.uniform(0.5, 2);
  return to_tensor(array);
}

struct Layout {
  const char* name;
  Extents x, parameters;
  int64_t axis, block;
};
const Layout kLayouts[] = {{"tensor", {3, 5, 7}, {}, 1, 0},   {"channels", {2, 5, 3, 3}, {5}, 1, 0},
                           {"last_axis", {4, 9}, {9}, -1, 0}, {"rows", {6, 11}, {6}, 0, 0},
                           {"blocks", {3, 12}, {3, 3}, 1, 4}, {"scalar", {}, {}, 1, 0},
                           {"long", {1, 4099}, {}, 1, 0},     {"empty", {0, 3}, {}, 1, 0}};

void add_linear(OpCases& cases) {
  for (const bp_dtype_t dtype : {BP_DTYPE_UINT8, BP_DTYPE_INT8, BP_DTYPE_UINT16, BP_DTYPE_INT16}) {
    const bool wide = dtype == BP_DTYPE_UINT16 || dtype == BP_DTYPE_INT16;
    for (const Layout& layout : kLayouts) {
      for (const bp_dtype_t real : {BP_DTYPE_FLOAT, BP_DTYPE_FLOAT16}) {
        // 16-bit results need more fraction bits than FLOAT16 has.
        if (wide && real == BP_DTYPE_FLOAT16) continue;
        const std::string variant = std::string(layout.name) + (real == BP_DTYPE_FLOAT ? "" : "_float16");
        const double about = wide ? 1.0 / 4096 : 1.0 / 16;
        cases.add_to(kQuant, "QuantizeLinear", dtype, variant, [=](Random& random) {
          return Problem{"QuantizeLinear",
                         {{"axis", layout.axis},
                          {"block_size", layout.block},
                          {"output_dtype", int64_t{0}},
                          {"precision", int64_t{0}},
                          {"saturate", int64_t{1}}},
                         {random_tensor(random, real, layout.x, Fill::kWide),
                          constant(scales(random, real, layout.parameters, about)),
                          constant(near_middle(random, dtype, layout.parameters))}};
        });
        cases.add_to(kQuant, "DequantizeLinear", dtype, variant, [=](Random& random) {
          return Problem{
              "DequantizeLinear",
              {{"axis", layout.axis}, {"block_size", layout.block}, {"output_dtype", int64_t{0}}},
              {whole_range(random, dtype, layout.x), constant(scales(random, real, layout.parameters, about)),
               constant(near_middle(random, dtype, layout.parameters))}};
        });
      }
    }
  }
  for (const Fill fill : {Fill::kWide, Fill::kPositive, Fill::kAroundZero}) {
    for (const Extents& extents : {Extents{7, 13}, Extents{1}, Extents{3, 1031}}) {
      const std::string variant = std::string(fill == Fill::kWide       ? "wide"
                                              : fill == Fill::kPositive ? "positive"
                                                                        : "around_zero") +
                                  "_" + std::to_string(count_of(extents));
      cases.add_to(kQuant, "DynamicQuantizeLinear", BP_DTYPE_FLOAT, variant, [=](Random& random) {
        return Problem{"DynamicQuantizeLinear", {}, {random_tensor(random, BP_DTYPE_FLOAT, extents, fill)}, 3};
      });
    }
  }
}

struct Product {
  const char* name;
  Extents a, b;
};
const Product kProducts[] = {{"small", {4, 5}, {5, 3}},      {"odd", {17, 33}, {33, 9}},
                             {"long", {3, 1024}, {1024, 5}}, {"block", {32, 64}, {64, 48}},
                             {"row", {1, 128}, {128, 33}},   {"batch", {2, 4, 5}, {2, 5, 6}},
                             {"shared", {3, 4, 5}, {5, 6}}};

void add_products(OpCases& cases) {
  for (const Product& row : kProducts) {
    for (const bp_dtype_t a : kBytes) {
      for (const bp_dtype_t b : kBytes) {
        const std::string variant = std::string(row.name) + (b == BP_DTYPE_INT8 ? "_by_int8" : "_by_uint8");
        for (const bool zeros : {false, true}) {
          cases.add_to(kQuant, "MatMulInteger", a, variant + (zeros ? "_zeros" : ""), [=](Random& random) {
            Problem problem{
                "MatMulInteger", {}, {whole_range(random, a, row.a), constant(whole_range(random, b, row.b))}};
            if (!zeros) return problem;
            problem.arguments.push_back(constant(near_middle(random, a, {})));
            problem.arguments.push_back(
                constant(near_middle(random, b, row.b.size() == 2 ? Extents{row.b[1]} : Extents{})));
            return problem;
          });
        }
        for (const bool by_column : {false, true}) {
          if (by_column && row.b.size() != 2) continue;
          cases.add_to(kQuant, "QLinearMatMul", a, variant + (by_column ? "_by_column" : ""), [=](Random& random) {
            const double k = static_cast<double>(row.a.back());
            const Extents columns = by_column ? Extents{row.b[1]} : Extents{};
            return Problem{
                "QLinearMatMul",
                {},
                {whole_range(random, a, row.a), constant(scales(random, BP_DTYPE_FLOAT, {}, 1.0 / 64)),
                 constant(near_middle(random, a, {})), constant(whole_range(random, b, row.b)),
                 constant(scales(random, BP_DTYPE_FLOAT, columns, 1.0 / 64)), constant(near_middle(random, b, columns)),
                 constant(scales(random, BP_DTYPE_FLOAT, {}, std::sqrt(k) / 64)),
                 constant(near_middle(random, a, {}))}};
          });
        }
      }
    }
  }
}

struct Conv {
  const char* name;
  Extents x, w, strides, pads, dilations;
  int64_t group;
};
const Conv kConvs[] = {{"3x3", {1, 3, 9, 9}, {4, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
                       {"padded", {2, 3, 8, 7}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                       {"strided", {1, 5, 7, 7}, {6, 5, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 1},
                       {"dilated", {1, 4, 10, 10}, {3, 4, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 1},
                       {"depthwise", {1, 8, 9, 9}, {8, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 8},
                       {"grouped", {1, 6, 7, 7}, {4, 3, 3, 3}, {1, 1}, {1, 0, 0, 1}, {1, 1}, 2},
                       {"wide", {1, 32, 6, 6}, {17, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1}};

Attributes conv_attributes(const Conv& row) {
  return {{"auto_pad", std::string("NOTSET")},           {"dilations", row.dilations}, {"group", row.group},
          {"kernel_shape", Extents{row.w[2], row.w[3]}}, {"pads", row.pads},           {"strides", row.strides}};
}

void add_convs(OpCases& cases) {
  for (const Conv& row : kConvs) {
    for (const bp_dtype_t x : kBytes) {
      for (const bp_dtype_t w : kBytes) {
        const std::string variant = std::string(row.name) + (w == BP_DTYPE_INT8 ? "_by_int8" : "_by_uint8");
        for (const bool zeros : {false, true}) {
          cases.add_to(kQuant, "ConvInteger", x, variant + (zeros ? "_zeros" : ""), [=](Random& random) {
            Problem problem{"ConvInteger",
                            conv_attributes(row),
                            {whole_range(random, x, row.x), constant(whole_range(random, w, row.w))}};
            if (!zeros) return problem;
            problem.arguments.push_back(constant(near_middle(random, x, {})));
            problem.arguments.push_back(constant(near_middle(random, w, {})));
            return problem;
          });
        }
        for (const bool by_channel : {false, true}) {
          cases.add_to(kQuant, "QLinearConv", x, variant + (by_channel ? "_by_channel" : ""), [=](Random& random) {
            const auto terms = static_cast<double>(row.w[1] * row.w[2] * row.w[3]);
            const Extents channels = by_channel ? Extents{row.w[0]} : Extents{};
            Problem problem{"QLinearConv",
                            conv_attributes(row),
                            {whole_range(random, x, row.x), constant(scales(random, BP_DTYPE_FLOAT, {}, 1.0 / 64)),
                             constant(near_middle(random, x, {})), constant(whole_range(random, w, row.w)),
                             constant(scales(random, BP_DTYPE_FLOAT, channels, 1.0 / 64)),
                             constant(near_middle(random, w, channels)),
                             constant(scales(random, BP_DTYPE_FLOAT, {}, std::sqrt(terms) / 64)),
                             constant(near_middle(random, x, {}))}};
            if (!by_channel) return problem;
            Array bias(BP_DTYPE_INT32, {row.w[0]});
            for (double& b : bias.values) b = static_cast<double>(random.integer(-5000, 5000));
            problem.arguments.push_back(constant(to_tensor(bias)));
            return problem;
          });
        }
      }
    }
  }
}

}  // namespace

void add_quantize_cases(OpCases& cases) {
  add_linear(cases);
  add_products(cases);
  add_convs(cases);
}

}  // namespace backplane::conform
