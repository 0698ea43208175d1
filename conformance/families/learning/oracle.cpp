// SPDX-License-Identifier: Apache-2.0
// Oracles of classical machine learning on numbers, and of optimizer steps.
#include <algorithm>

#include "judge/tracked.h"

namespace backplane::conform {
namespace {

void require_float32(const Array& x) {
  require_known(x.dtype == BP_DTYPE_FLOAT, "the oracle supports only FLOAT");
}
// Returns element `i` of a list, or its only element.
double entry(const std::vector<double>& list, size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

References binarizer(const Call& call) {
  Array result = call.in(0);
  require_float32(result);
  for (double& x : result.values) x = x > call.real("threshold") ? 1 : 0;
  return {Reference(std::move(result), Rule::exact())};
}

// (x - offset) · scale, with one offset and scale for each column or for all.
References scaler(const Call& call) {
  const Array& x = call.in(0, 1);
  require_float32(x);
  const std::vector<double> offset = call.reals("offset"), scale = call.reals("scale");
  const auto columns = static_cast<size_t>(x.extents.back());
  for (const auto* list : {&offset, &scale})
    require(list->size() == 1 || (list->size() == columns && columns > 0),
            "offset and scale must have one number for all columns, or one for each of one or more columns");
  std::vector<Tracked> elements;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t column = i % columns;
    elements.push_back((Tracked(x.values[i]) - Tracked(entry(offset, column))) * Tracked(entry(scale, column)));
  }
  return {tracked_reference(x.dtype, x.extents, elements)};
}

References normalizer(const Call& call) {
  const Array& x = call.in(0, 1);
  require_float32(x);
  require_known(x.rank() == 2, "the oracle supports only matrices");
  const std::string_view kind = call.text("norm");
  require(kind == "MAX" || kind == "L1" || kind == "L2", "the norm is not known");
  const int64_t columns = x.extents[1];
  std::vector<Tracked> elements;
  for (int64_t row = 0; row < x.extents[0]; ++row) {
    TrackedSum sum(x.dtype);
    double most = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double size = std::fabs(x.at({row, c}));
      most = std::fmax(most, size);
      sum.add(size, kind == "L2" ? size : 1);
    }
    const Tracked length = kind == "MAX" ? Tracked(most) : kind == "L1" ? sum.result() : sqrt(sum.result());
    require(length.value > 0, "the norm of a row is not positive");
    for (int64_t c = 0; c < columns; ++c) elements.push_back(Tracked(x.at({row, c})) / length);
  }
  return {tracked_reference(x.dtype, x.extents, elements)};
}

// Replaces each element that equals `replaced_value_float`, which may be NaN, by the value of its column.
References imputer(const Call& call) {
  Array result = call.in(0, 1);
  require_float32(result);
  const std::vector<double> values = call.reals("imputed_value_floats");
  const double replaced = call.real("replaced_value_float");
  const auto columns = static_cast<size_t>(result.extents.back());
  require(values.size() == 1 || (values.size() == columns && columns > 0),
          "there must be one value for all columns, or one for each of one or more columns");
  for (size_t i = 0; i < result.values.size(); ++i) {
    double& x = result.values[i];
    if (std::isnan(replaced) ? std::isnan(x) : x == replaced) x = entry(values, i % columns);
  }
  return {Reference(std::move(result), Rule::bits())};
}

// x·coefficientsᵀ + intercepts.
References linear_regressor(const Call& call) {
  const Array& x = call.in(0, 2);
  require_float32(x);
  require_known(x.rank() == 2 && (call.text("post_transform").empty() || call.text("post_transform") == "NONE"),
                "the oracle supports only matrices without a transform");
  const std::vector<double> coefficients = call.reals("coefficients"), intercepts = call.reals("intercepts");
  const int64_t targets = call.integer("targets", 1), columns = x.extents[1];
  require(targets > 0 && targets < 4096 && static_cast<int64_t>(coefficients.size()) == targets * columns &&
              (intercepts.empty() || static_cast<int64_t>(intercepts.size()) == targets),
          "targets must be from 1 to 4095, with one coefficient for each target and column, "
          "and no intercepts or one for each target");
  std::vector<Tracked> elements;
  for (int64_t row = 0; row < x.extents[0]; ++row) {
    for (int64_t t = 0; t < targets; ++t) {
      TrackedSum sum(x.dtype);
      for (int64_t c = 0; c < columns; ++c) sum.add(x.at({row, c}), coefficients[static_cast<size_t>(t * columns + c)]);
      if (!intercepts.empty()) sum.add(intercepts[static_cast<size_t>(t)]);
      elements.push_back(sum.result());
    }
  }
  return {tracked_reference(x.dtype, {x.extents[0], targets}, elements)};
}

References array_feature_extractor(const Call& call) {
  const Array &x = call.in(0, 2), &chosen = call.in(1);
  require_known(x.rank() == 2 && !is_float(chosen.dtype),
                "the oracle supports only columns of matrices, chosen by integers");
  Array result(x.dtype, {x.extents[0], chosen.count()});
  for_each_index(result.extents, [&](const Index& at) {
    const int64_t column = whole(chosen.values[static_cast<size_t>(at[1])]);
    result.at(at) = x.at({at[0], column});
  });
  return {Reference(std::move(result), Rule::bits())};
}

References feature_vectorizer(const Call& call) {
  const std::vector<int64_t> sizes = call.ints("inputdimensions");
  require(call.input_count() > 0 && sizes.size() == call.input_count(),
          "there is no input, or not one size for each input");
  int64_t columns = 0;
  for (const int64_t size : sizes) {
    require(size > 0 && size < 4096, "a size is not from 1 to 4095");
    columns += size;
  }
  const int64_t rows = call.in(0, 2).extents[0];
  Array result(BP_DTYPE_FLOAT, {rows, columns});
  int64_t first = 0;
  for (size_t i = 0; i < call.input_count(); ++i) {
    const Array& x = call.in(i, 2);
    require_float32(x);
    require(x.extents == Extents{rows, sizes[i]},
            "an input must be a matrix with as many rows as the first and as many columns as its size");
    for_each_index(x.extents, [&](const Index& at) { result.at({at[0], first + at[1]}) = x.at(at); });
    first += sizes[i];
  }
  return {Reference(std::move(result), Rule::bits())};
}

// Adds a last axis with one entry for each category: 1 if the element equals the category, else 0.
References one_hot_encoder(const Call& call) {
  const Array& x = call.in(0);
  const std::vector<int64_t> categories = call.ints("cats_int64s");
  require_known(!categories.empty() && x.dtype == BP_DTYPE_INT64,
                "the oracle supports only INT64 elements, with the categories in cats_int64s");
  Extents shape = x.extents;
  shape.push_back(static_cast<int64_t>(categories.size()));
  Array result(BP_DTYPE_FLOAT, shape);
  for (size_t i = 0; i < x.values.size(); ++i) {
    bool is_known = false;
    for (size_t c = 0; c < categories.size(); ++c) {
      const bool is_that = x.values[i] == static_cast<double>(categories[c]);
      result.values[i * categories.size() + c] = is_that;
      is_known = is_known || is_that;
    }
    require(is_known || call.integer("zeros", 1) != 0, "an element belongs to no category");
  }
  return {Reference(std::move(result), Rule::exact())};
}

// --- Optimizers. Inputs: the rate R, the step T, then a tensor, its gradient and its state ---

struct Step {
  const Array &x, &gradient;
  Tracked rate;
};
Step step_of(const Call& call, size_t inputs, std::string_view decay) {
  require_known(call.input_count() == inputs && call.output_count() == inputs - 3,
                "the oracle supports only the step of one tensor, with all of its inputs and outputs");
  const Array& x = call.in(2);
  require_float32(x);
  for (size_t i = 3; i < inputs; ++i)
    require(call.in(i).dtype == x.dtype && call.in(i).extents == x.extents,
            "gradient or state does not fit the tensor");
  Tracked rate(call.single(0));
  if (!decay.empty()) rate = rate / (Tracked(1.0) + Tracked(call.single(1)) * Tracked(call.real(decay)));
  require(std::isfinite(rate.value), "the rate is not finite");
  return {x, call.in(3), rate};
}
Reference tensor_like(const Array& x, const std::vector<Tracked>& elements) {
  return tracked_reference(x.dtype, x.extents, elements);
}
// The gradient plus the gradient of the L2 penalty.
Tracked regularised(const Call& call, const Step& step, size_t i) {
  return Tracked(call.real("norm_coefficient")) * Tracked(step.x.values[i]) + Tracked(step.gradient.values[i]);
}

References adagrad(const Call& call) {
  const Step step = step_of(call, 5, "decay_factor");
  std::vector<Tracked> x, history;
  for (size_t i = 0; i < step.x.values.size(); ++i) {
    const Tracked gradient = regularised(call, step, i);
    history.push_back(Tracked(call.in(4).values[i]) + gradient * gradient);
    x.push_back(Tracked(step.x.values[i]) - step.rate * gradient / (sqrt(history[i]) + Tracked(call.real("epsilon"))));
  }
  return {tensor_like(step.x, x), tensor_like(step.x, history)};
}

References momentum(const Call& call) {
  const Step step = step_of(call, 5, "");
  const bool nesterov = call.text("mode") == "nesterov";
  require(nesterov || call.text("mode") == "standard", "the mode is not known");
  const Tracked alpha(call.real("alpha")), beta(call.single(1) > 0 ? call.real("beta") : 1);
  std::vector<Tracked> x, velocity;
  for (size_t i = 0; i < step.x.values.size(); ++i) {
    const Tracked gradient = regularised(call, step, i);
    velocity.push_back(alpha * Tracked(call.in(4).values[i]) + beta * gradient);
    x.push_back(Tracked(step.x.values[i]) - step.rate * (nesterov ? gradient + alpha * velocity[i] : velocity[i]));
  }
  return {tensor_like(step.x, x), tensor_like(step.x, velocity)};
}

References adam(const Call& call) {
  const Step step = step_of(call, 6, "");
  const Tracked alpha(call.real("alpha")), beta(call.real("beta"));
  const double t = call.single(1);
  Tracked rate = step.rate;
  if (t > 0) {
    // αᵗ and βᵗ, which are subtracted from 1, have the error bound of pow.
    const auto rest = [&](double base) {
      const double power = std::pow(base, t);
      return Tracked(1.0) - Tracked(power, power * 2 * (7.5 * std::fabs(t * std::log(base)) + 3));
    };
    rate = rate * sqrt(rest(beta.value)) / rest(alpha.value);
  }
  require(std::isfinite(rate.value), "the rate is not finite");
  const Tracked after = Tracked(1.0) - Tracked(call.real("norm_coefficient_post"));
  std::vector<Tracked> x, first, second;
  for (size_t i = 0; i < step.x.values.size(); ++i) {
    const Tracked gradient = regularised(call, step, i);
    first.push_back(alpha * Tracked(call.in(4).values[i]) + (Tracked(1.0) - alpha) * gradient);
    second.push_back(beta * Tracked(call.in(5).values[i]) + (Tracked(1.0) - beta) * gradient * gradient);
    const Tracked moved =
        Tracked(step.x.values[i]) - rate * first[i] / (sqrt(second[i]) + Tracked(call.real("epsilon")));
    x.push_back(after * moved);
  }
  return {tensor_like(step.x, x), tensor_like(step.x, first), tensor_like(step.x, second)};
}

constexpr std::string_view kMl = "ai.onnx.ml", kTraining = "ai.onnx.preview.training";
const Operator kOperators[] = {
    {"Binarizer", {1}, binarizer, kMl},
    {"Scaler", {1}, scaler, kMl},
    {"Normalizer", {1}, normalizer, kMl},
    {"Imputer", {1}, imputer, kMl},
    {"LinearRegressor", {1}, linear_regressor, kMl},
    {"ArrayFeatureExtractor", {1}, array_feature_extractor, kMl},
    {"FeatureVectorizer", {1}, feature_vectorizer, kMl},
    {"OneHotEncoder", {1}, one_hot_encoder, kMl},
    {"Adagrad", {1}, adagrad, kTraining},
    {"Momentum", {1}, momentum, kTraining},
    {"Adam", {1}, adam, kTraining},
};

}  // namespace

std::span<const Operator> learning_operators() {
  return kOperators;
}

}  // namespace backplane::conform
