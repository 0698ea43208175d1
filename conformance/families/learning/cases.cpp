// SPDX-License-Identifier: Apache-2.0
#include "cases/cases.h"

namespace backplane::conform {
namespace {

void add(OpCases& cases, const char* op, const std::string& variant, std::function<Problem(Random&)> make) {
  cases.add_to(kExtended, op, BP_DTYPE_FLOAT, variant, std::move(make));
}
onnx::Tensor numbers(Random& random, Extents extents, Fill fill = Fill::kWide) {
  return random_tensor(random, BP_DTYPE_FLOAT, std::move(extents), fill);
}
onnx::Tensor step_number(int64_t value) {
  Array array(BP_DTYPE_INT64, {});
  array.values[0] = static_cast<double>(value);
  return to_tensor(array);
}

void add_optimizers(OpCases& cases) {
  const auto arguments = [](Random& random, int64_t t, size_t states) {
    std::vector<Argument> all = {floats({}, {0.125f}), step_number(t)};
    all.emplace_back(numbers(random, {3, 7}, Fill::kAroundZero));
    all.emplace_back(numbers(random, {3, 7}, Fill::kAroundZero));
    for (size_t i = 0; i < states; ++i) all.emplace_back(numbers(random, {3, 7}, Fill::kPositive));
    return all;
  };
  for (const int64_t t : {int64_t{0}, int64_t{3}}) {
    const std::string variant = "step" + std::to_string(t);
    add(cases, "Adagrad", variant, [=](Random& random) {
      return Problem{"Adagrad",
                     {{"decay_factor", 0.125f}, {"epsilon", 0.125f}, {"norm_coefficient", 0.01f}},
                     arguments(random, t, 1),
                     2};
    });
    for (const char* mode : {"standard", "nesterov"}) {
      add(cases, "Momentum", variant + "_" + mode, [=](Random& random) {
        return Problem{"Momentum",
                       {{"alpha", 0.75f}, {"beta", 0.5f}, {"mode", std::string(mode)}, {"norm_coefficient", 0.01f}},
                       arguments(random, t, 1),
                       2};
      });
    }
    add(cases, "Adam", variant, [=](Random& random) {
      return Problem{"Adam",
                     {{"alpha", 0.75f},
                      {"beta", 0.875f},
                      {"epsilon", 0.125f},
                      {"norm_coefficient", 0.01f},
                      {"norm_coefficient_post", 0.25f}},
                     arguments(random, t, 2),
                     3};
    });
  }
}

}  // namespace

void add_learning_cases(OpCases& cases) {
  add(cases, "Binarizer", "plain", [](Random& random) {
    return Problem{"Binarizer", {{"threshold", 0.5f}}, {numbers(random, {5, 7}, Fill::kAroundZero)}};
  });
  for (const bool columns : {false, true}) {
    const std::string variant = columns ? "columns" : "one";
    add(cases, "Scaler", variant, [=](Random& random) {
      const std::vector<float> offset = columns ? std::vector<float>{1, -2, 0.5f} : std::vector<float>{1.5f},
                               scale = columns ? std::vector<float>{0.1f, 3, -2} : std::vector<float>{0.3f};
      return Problem{"Scaler", {{"offset", offset}, {"scale", scale}}, {numbers(random, {6, 3})}};
    });
    add(cases, "Imputer", variant, [=](Random& random) {
      const std::vector<float> values = columns ? std::vector<float>{10, 20, 30} : std::vector<float>{-7};
      return Problem{"Imputer",
                     {{"imputed_value_floats", values}, {"replaced_value_float", 2.0f}},
                     {numbers(random, {9, 3}, Fill::kWhole)}};
    });
  }
  for (const char* norm : {"MAX", "L1", "L2"}) {
    // Positive numbers only, because implementations disagree on the norm MAX of negative numbers.
    add(cases, "Normalizer", norm, [=](Random& random) {
      return Problem{"Normalizer", {{"norm", std::string(norm)}}, {numbers(random, {5, 9}, Fill::kPositive)}};
    });
  }
  for (const int64_t targets : {int64_t{1}, int64_t{3}}) {
    add(cases, "LinearRegressor", "targets" + std::to_string(targets), [=](Random& random) {
      std::vector<float> coefficients, intercepts;
      for (int64_t i = 0; i < targets * 6; ++i) coefficients.push_back(static_cast<float>(random.uniform(-1, 1)));
      for (int64_t i = 0; i < targets; ++i) intercepts.push_back(static_cast<float>(random.uniform(-1, 1)));
      return Problem{"LinearRegressor",
                     {{"coefficients", coefficients},
                      {"intercepts", intercepts},
                      {"post_transform", std::string("NONE")},
                      {"targets", targets}},
                     {numbers(random, {5, 6})}};
    });
  }
  add(cases, "ArrayFeatureExtractor", "columns", [](Random& random) {
    return Problem{"ArrayFeatureExtractor", {}, {numbers(random, {4, 9}), integers({7, 0, 3})}};
  });
  add(cases, "FeatureVectorizer", "three", [](Random& random) {
    onnx::Tensor a = numbers(random, {4, 2}), b = numbers(random, {4, 5});
    return Problem{"FeatureVectorizer",
                   {{"inputdimensions", Extents{2, 5, 1}}},
                   {std::move(a), std::move(b), numbers(random, {4, 1})}};
  });
  cases.add_to(kExtended, "OneHotEncoder", BP_DTYPE_INT64, "unknown_ones", [](Random& random) {
    return Problem{"OneHotEncoder",
                   {{"cats_int64s", Extents{3, -1, 5, 0}}, {"zeros", int64_t{1}}},
                   {random_tensor(random, BP_DTYPE_INT64, {3, 8}, Fill::kWide)}};
  });
  add_optimizers(cases);
}

}  // namespace backplane::conform
