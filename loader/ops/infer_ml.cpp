// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: classical machine learning. Inputs are [C] or [N, C].
#include <algorithm>

#include "ops/rules.h"

namespace backplane::ops {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

Scalar rows(Context& c) {
  return !c.ranked(0) ? Scalar() : c.rank(0) == 1 ? Scalar(1) : c.dim(0, 0);
}

// Labels [N] of the class labels' type, scores [N, classes].
Status classifier(Context& c, std::string_view ints, std::string_view strings) {
  size_t names = c.texts(strings).size(), numbers = c.integers(ints).size();
  c.set_dtype(0, names ? BP_DTYPE_STRING : BP_DTYPE_INT64);
  BP_TRY(c.set_shape(0, {rows(c)}));
  size_t classes = std::max(names, numbers);
  return c.set_shape(1, {rows(c), classes > 1 ? Scalar(static_cast<int64_t>(classes)) : Scalar()});
}

Status labelled(Context& c) {
  return classifier(c, "classlabels_ints", "classlabels_strings");
}

Status linear_regressor(Context& c) {
  return c.set_shape(0, {rows(c), c.integer("targets")});
}
Status svm_regressor(Context& c) {
  return c.set_shape(0, {rows(c), 1});
}
Status tree_ensemble(Context& c) {
  return c.set_shape(0, {rows(c), c.integer("n_targets")});
}

Status array_features(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  if (shape.empty()) return c.fail("input X is a number, but it must have an axis to pick from");
  if (shape.size() == 1) shape.insert(shape.begin(), Scalar(1));
  Scalar picks;
  if (c.ranked(1)) picks = c.math().product(c.shape(1));
  shape.back() = picks;
  return c.set_shape(0, shape);
}

Status one_hot(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  shape.push_back(static_cast<int64_t>(std::max(c.integers("cats_int64s").size(), c.texts("cats_strings").size())));
  return c.set_shape(0, shape);
}

Status category_mapper(Context& c) {
  if (c.input(0).dtype) c.set_dtype(0, c.input(0).dtype == BP_DTYPE_STRING ? BP_DTYPE_INT64 : BP_DTYPE_STRING);
  return same_shape(c);
}

Status label_encoder(Context& c) {
  struct Form {
    std::string_view values;
    bp_dtype_t dtype;
  };
  constexpr Form forms[] = {
      {"values_strings", BP_DTYPE_STRING}, {"values_int64s", BP_DTYPE_INT64}, {"values_floats", BP_DTYPE_FLOAT}};
  for (const Form& form : forms) {
    if (c.has_attribute(form.values)) c.set_dtype(0, form.dtype);
  }
  if (const model::Weight* values = c.tensor("values_tensor")) c.set_dtype(0, values->dtype);
  return same_shape(c);
}

Status feature_vectorizer(Context& c) {
  int64_t width = 0;
  for (int64_t part : c.integers("inputdimensions")) {
    if (part < 0 || __builtin_add_overflow(width, part, &width)) {
      return c.fail("inputdimensions has " + std::to_string(part) + ", but it must be the width of an input");
    }
  }
  return c.set_shape(0, {rows(c), width ? Scalar(width) : Scalar()});
}

constexpr RuleRow kRows[] = {
    {kMl, "ArrayFeatureExtractor", array_features},
    {kMl, "Binarizer", same_shape},
    {kMl, "CategoryMapper", category_mapper},
    {kMl, "FeatureVectorizer", feature_vectorizer},
    {kMl, "Imputer", same_shape},
    {kMl, "LabelEncoder", label_encoder},
    {kMl, "LinearClassifier", labelled},
    {kMl, "LinearRegressor", linear_regressor},
    {kMl, "Normalizer", same_shape},
    {kMl, "OneHotEncoder", one_hot},
    {kMl, "SVMClassifier", labelled},
    {kMl, "SVMRegressor", svm_regressor},
    {kMl, "Scaler", same_shape},
    {kMl, "TreeEnsemble", tree_ensemble},
};

}  // namespace

std::span<const RuleRow> ml_rules() {
  return kRows;
}

}  // namespace backplane::ops
