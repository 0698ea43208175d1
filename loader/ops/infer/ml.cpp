// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml: classical machine learning. Inputs are [C] or [N, C].
#include <algorithm>

#include "ops/infer/rules.h"

namespace backplane::ops {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

Scalar rows(Context& c) {
  return !c.ranked(0) ? Scalar() : c.rank(0) == 1 ? Scalar(1) : c.dim(0, 0);
}

// Outputs: labels [N] of the class labels' data type, and scores [N, classes].
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

// With two labels, a single row of coefficients yields two columns of scores.
Status linear_classifier(Context& c) {
  BP_TRY(labelled(c));
  size_t labels = std::max(c.texts("classlabels_strings").size(), c.integers("classlabels_ints").size());
  size_t outputs = c.count("intercepts");
  if (outputs > 1) return c.set_shape(1, {rows(c), static_cast<int64_t>(outputs)});
  return labels == 2 ? c.set_shape(1, {rows(c), 2}) : Status();
}

// Outputs scores [N, classes]; with support vectors, no probabilities and more than two classes, one score for each
// pair of classes.
Status svm_classifier(Context& c) {
  BP_TRY(labelled(c));
  auto classes =
      static_cast<int64_t>(std::max(c.texts("classlabels_strings").size(), c.integers("classlabels_ints").size()));
  bool is_pairs = c.count("vectors_per_class") > 0 && c.count("prob_a") == 0 && classes > 2;
  return c.set_shape(1, {rows(c), is_pairs ? classes * (classes - 1) / 2 : classes});
}

Status tree_classifier(Context& c) {
  return classifier(c, "classlabels_int64s", "classlabels_strings");
}

model::Type tensor_type(bp_dtype_t dtype, int32_t rank) {
  model::Type type;
  type.kind = BP_KIND_TENSOR;
  type.dtype = dtype;
  type.rank = rank;
  type.dims.assign(static_cast<size_t>(rank), bp_dim_t{-1, BP_NONE, 0});
  return type;
}

// Returns a sequence with one map for each row.
Status zip_map(Context& c) {
  model::Type map;
  map.kind = BP_KIND_MAP;
  map.dtype = c.texts("classlabels_strings").empty() ? BP_DTYPE_INT64 : BP_DTYPE_STRING;
  map.element = std::make_shared<model::Type>(tensor_type(BP_DTYPE_FLOAT, 0));
  model::Type sequence;
  sequence.kind = BP_KIND_SEQUENCE;
  sequence.element = std::make_shared<model::Type>(std::move(map));
  c.copy_type(0, sequence);
  return {};
}

Status cast_map(Context& c) {
  std::string_view target = c.text("cast_to");
  c.set_dtype(0, target == "TO_STRING" ? BP_DTYPE_STRING : target == "TO_INT64" ? BP_DTYPE_INT64 : BP_DTYPE_FLOAT);
  return c.set_shape(0, {1, c.text("map_form") == "SPARSE" ? Scalar(c.integer("max_map")) : Scalar()});
}

Status dict_vectorizer(Context& c) {
  if (c.input(0).element) c.set_dtype(0, c.input(0).element->dtype);
  size_t words = std::max(c.texts("string_vocabulary").size(), c.integers("int64_vocabulary").size());
  return c.set_shape(0, {1, static_cast<int64_t>(words)});
}

Status array_features(Context& c) {
  if (!c.ranked(0)) return {};
  Shape shape = c.shape(0);
  if (shape.empty()) return c.fail("input X is a scalar, but it must have an axis to pick from");
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
  constexpr Form kForms[] = {
      {"values_strings", BP_DTYPE_STRING}, {"values_int64s", BP_DTYPE_INT64}, {"values_floats", BP_DTYPE_FLOAT}};
  for (const Form& form : kForms) {
    if (c.has_attribute(form.values)) c.set_dtype(0, form.dtype);
  }
  if (const model::Weight* values = c.tensor("values_tensor")) c.set_dtype(0, values->dtype);
  return same_shape(c);
}

Status feature_vectorizer(Context& c) {
  int64_t width = 0;
  for (int64_t part : c.integers("inputdimensions")) {
    if (part < 0 || __builtin_add_overflow(width, part, &width)) {
      return c.fail("inputdimensions has " + std::to_string(part) +
                    ", but the widths of inputs must be at least 0, and their sum below 2^63");
    }
  }
  return c.set_shape(0, {rows(c), width ? Scalar(width) : Scalar()});
}

}  // namespace

std::span<const RuleRow> ml_rules() {
  static constexpr RuleRow kRows[] = {
      {kMl, "ArrayFeatureExtractor", array_features},
      {kMl, "Binarizer", same_shape},
      {kMl, "CastMap", cast_map},
      {kMl, "CategoryMapper", category_mapper},
      {kMl, "DictVectorizer", dict_vectorizer},
      {kMl, "FeatureVectorizer", feature_vectorizer},
      {kMl, "Imputer", same_shape},
      {kMl, "LabelEncoder", label_encoder},
      {kMl, "LinearClassifier", linear_classifier},
      {kMl, "LinearRegressor", linear_regressor},
      {kMl, "Normalizer", same_shape},
      {kMl, "OneHotEncoder", one_hot},
      {kMl, "SVMClassifier", svm_classifier},
      {kMl, "SVMRegressor", svm_regressor},
      {kMl, "Scaler", same_shape},
      {kMl, "TreeEnsemble", tree_ensemble},
      {kMl, "TreeEnsembleClassifier", tree_classifier},
      {kMl, "TreeEnsembleRegressor", tree_ensemble},
      {kMl, "ZipMap", zip_map},
  };
  return kRows;
}

}  // namespace backplane::ops
