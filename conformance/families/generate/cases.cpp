// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

onnx::Tensor number(bp_dtype_t dtype, double value) {
  return reals(dtype, {}, {value});
}
onnx::Tensor whole_number(bp_dtype_t dtype, int64_t value) {
  Array array(dtype, {});
  array.values[0] = static_cast<double>(value);
  return to_tensor(array);
}

}  // namespace

void add_generate_cases(OpCases& cases) {
  for (const Extents& extents : {Extents{3, 5}, Extents{7}, Extents{2, 0}}) {
    cases.add_to(kExtended, "ConstantOfShape", BP_DTYPE_INT64, "zeros_" + std::to_string(count_of(extents)),
                 [=](Random&) {
                   return Problem{"ConstantOfShape", {}, {constant(integers(extents))}};
                 });
  }
  for (const int64_t k : {int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{9}}) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_INT32, BP_DTYPE_FLOAT16}) {
      cases.add_to(kExtended, "EyeLike", dtype, "k" + std::to_string(k), [=](Random& random) {
        return Problem{
            "EyeLike", {{"dtype", int64_t{dtype}}, {"k", k}}, {random_tensor(random, dtype, {4, 6}, Fill::kWide)}};
      });
    }
  }
  cases.add_to(kExtended, "Range", BP_DTYPE_FLOAT, "up", [](Random& random) {
    const double start = random.uniform(-4, 4);
    return Problem{"Range",
                   {},
                   {constant(number(BP_DTYPE_FLOAT, start)), constant(number(BP_DTYPE_FLOAT, start + 9.5)),
                    constant(number(BP_DTYPE_FLOAT, 0.75))}};
  });
  cases.add_to(kExtended, "Range", BP_DTYPE_INT64, "down", [](Random&) {
    return Problem{"Range",
                   {},
                   {constant(whole_number(BP_DTYPE_INT64, 10)), constant(whole_number(BP_DTYPE_INT64, -5)),
                    constant(whole_number(BP_DTYPE_INT64, -3))}};
  });
  cases.add_to(kExtended, "Range", BP_DTYPE_INT32, "nothing", [](Random&) {
    return Problem{"Range",
                   {},
                   {constant(whole_number(BP_DTYPE_INT32, 3)), constant(whole_number(BP_DTYPE_INT32, 3)),
                    constant(whole_number(BP_DTYPE_INT32, 1))}};
  });
  for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_INT64}) {
    for (const Extents& extents : {Extents{}, Extents{3, 0}, Extents{4, 7}}) {
      cases.add_to(kExtended, "Size", dtype, "of_" + std::to_string(count_of(extents)), [=](Random& random) {
        return Problem{"Size", {}, {random_tensor(random, dtype, extents, Fill::kWide)}};
      });
    }
  }
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    for (const int64_t periodic : {int64_t{0}, int64_t{1}}) {
      for (const int64_t count : {int64_t{1}, int64_t{10}, int64_t{401}}) {
        cases.add_to(kExtended, op, BP_DTYPE_INT64,
                     std::string(periodic != 0 ? "periodic" : "symmetric") + std::to_string(count), [=](Random&) {
                       return Problem{op,
                                      {{"output_datatype", int64_t{BP_DTYPE_FLOAT}}, {"periodic", periodic}},
                                      {constant(whole_number(BP_DTYPE_INT64, count))}};
                     });
      }
    }
  }
  for (const int64_t filters : {int64_t{8}, int64_t{20}}) {
    cases.add_to(kExtended, "MelWeightMatrix", BP_DTYPE_INT64, "filters" + std::to_string(filters), [=](Random&) {
      return Problem{"MelWeightMatrix",
                     {{"output_datatype", int64_t{BP_DTYPE_FLOAT}}},
                     {constant(whole_number(BP_DTYPE_INT64, filters)), constant(whole_number(BP_DTYPE_INT64, 256)),
                      constant(whole_number(BP_DTYPE_INT64, 16000)), constant(number(BP_DTYPE_FLOAT, 0)),
                      constant(number(BP_DTYPE_FLOAT, 8000))}};
    });
  }
  cases.add_to(kExtended, "MelWeightMatrix", BP_DTYPE_INT64, "lower_edge", [=](Random&) {
    return Problem{"MelWeightMatrix",
                   {{"output_datatype", int64_t{BP_DTYPE_FLOAT}}},
                   {constant(whole_number(BP_DTYPE_INT64, 8)), constant(whole_number(BP_DTYPE_INT64, 256)),
                    constant(whole_number(BP_DTYPE_INT64, 16000)), constant(number(BP_DTYPE_FLOAT, 300)),
                    constant(number(BP_DTYPE_FLOAT, 6000))}};
  });
  for (const int64_t axis : {int64_t{-1}, int64_t{0}, int64_t{1}}) {
    for (const bp_dtype_t dtype : {BP_DTYPE_FLOAT, BP_DTYPE_INT32, BP_DTYPE_INT64, BP_DTYPE_BFLOAT16}) {
      cases.add_to(kExtended, "OneHot", dtype, "axis" + std::to_string(axis), [=](Random& random) {
        Array indices(BP_DTYPE_INT64, {3, 4});
        for (double& x : indices.values) x = static_cast<double>(random.integer(-8, 8));
        Array values(dtype, {2});
        values.values = {2, 5};
        return Problem{"OneHot",
                       {{"axis", axis}},
                       {to_tensor(indices), constant(whole_number(BP_DTYPE_INT64, 7)), to_tensor(values)}};
      });
    }
  }
}

}  // namespace backplane::conform
