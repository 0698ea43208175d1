// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble, and the operators that it supersedes: TreeEnsembleClassifier, TreeEnsembleRegressor.
#include <set>

#include "backplane/sdk/fence.hpp"
#include "kernels/ml/trees.h"
#include "runtime/memory.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using ml::PostTransform;

// ---- TreeEnsemble and TreeEnsembleRegressor: one or more numbers per row

struct Ensemble {
  ml::Forest forest;
  int64_t targets = 0;
  ml::Aggregate aggregate = ml::Aggregate::kSum;
  PostTransform post = PostTransform::kNone;
  std::vector<double> base;

  void predict(std::span<const double> row, std::span<double> out) const {
    std::vector<ml::Score> scores(out.size());
    ml::aggregate(forest, aggregate, row, scores);
    for (size_t t = 0; t < out.size(); ++t) out[t] = scores[t].value + (base.empty() ? 0 : base[t]);
    // Only PROBIT applies to a single score; the other transforms are for the scores of several classes.
    if (out.size() > 1 || post == PostTransform::kProbit) ml::transform(post, out);
  }
};

std::string check(Ensemble& ensemble) {
  if (ensemble.targets < 1 || ensemble.targets > INT32_MAX)
    return "n_targets is " + std::to_string(ensemble.targets) + "; it must be 1 to 2^31 - 1";
  if (!ensemble.base.empty() && ensemble.base.size() != static_cast<size_t>(ensemble.targets)) {
    return "base_values has " + std::to_string(ensemble.base.size()) + " entries, but there are " +
           std::to_string(ensemble.targets) + " targets";
  }
  return ensemble.forest.check(ensemble.targets);
}

// Throws sdk::Error if attributes are invalid or contradict each other.
Ensemble read_ensemble(const Node& node) {
  constexpr PostTransform kTransforms[] = {PostTransform::kNone, PostTransform::kSoftmax, PostTransform::kLogistic,
                                           PostTransform::kSoftmaxZero, PostTransform::kProbit};
  int64_t aggregate = node.attr("aggregate_function", int64_t{1}), post = node.attr("post_transform", int64_t{0});
  if (aggregate < 0 || aggregate > 3)
    throw sdk::Error(BP_INVALID_MODEL, "aggregate_function is " + std::to_string(aggregate) + "; it must be 0 to 3");
  if (post < 0 || post > 4)
    throw sdk::Error(BP_INVALID_MODEL, "post_transform is " + std::to_string(post) + "; it must be 0 to 4");
  Ensemble ensemble{ml::read_forest(node),
                    node.attr("n_targets", int64_t{1}),
                    static_cast<ml::Aggregate>(aggregate),
                    kTransforms[post],
                    {}};
  if (std::string wrong = check(ensemble); !wrong.empty()) throw sdk::Error(BP_INVALID_MODEL, wrong);
  return ensemble;
}

Ensemble read_regressor(const Node& node) {
  std::string name = node.attr("aggregate_function", "SUM");
  ml::Aggregate aggregate = name == "AVERAGE" ? ml::Aggregate::kAverage
                            : name == "MIN"   ? ml::Aggregate::kMin
                            : name == "MAX"   ? ml::Aggregate::kMax
                                              : ml::Aggregate::kSum;
  Ensemble ensemble{ml::read_old_forest(node, "target"), node.attr("n_targets", int64_t{1}), aggregate,
                    ml::post_transform(node), ml::numbers_of(node, "base_values", "base_values_as_tensor")};
  if (std::string wrong = check(ensemble); !wrong.empty()) throw sdk::Error(BP_INVALID_MODEL, wrong);
  return ensemble;
}

// Returns no() with the message of the error if `read` throws, else yes().
Verdict readable(const Node& node, auto read) {
  try {
    read(node);
    return yes();
  } catch (const sdk::Error& failure) {
    return no(BP_REASON_ATTRIBUTE, failure.text);
  }
}

Verdict supports_ensemble(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {just(BP_DTYPE_FLOAT) | just(BP_DTYPE_DOUBLE) | just(BP_DTYPE_FLOAT16)});
      !verdict)
    return verdict;
  return readable(node, read_ensemble);
}

Verdict supports_regressor(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  if (Verdict verdict = attribute_in(node, "aggregate_function", "SUM", {"AVERAGE", "SUM", "MIN", "MAX"}); !verdict)
    return verdict;
  if (Verdict verdict = ml::supports_post_transform(node); !verdict) return verdict;
  return readable(node, read_regressor);
}

std::string too_narrow(const ml::Table& table, const ml::Forest& forest) {
  return "the rows have " + std::to_string(table.columns) + " numbers, but the trees need " +
         std::to_string(forest.features);
}

std::unique_ptr<Kernel> make_ensemble(Ensemble read) {
  auto ensemble = std::make_shared<const Ensemble>(std::move(read));
  return make_kernel([ensemble](Tensors inputs) -> Plan {
    auto table = ml::table_of(inputs[0].shape);
    if (!table) return fail(ml::no_table(inputs[0].shape));
    if (table->columns < ensemble->forest.features) return fail(too_narrow(*table, ensemble->forest));
    return make_plan({Shape{table->rows, ensemble->targets}}, [ensemble, table](Tensors in, Tensors out) {
      auto work = static_cast<int64_t>(ensemble->forest.roots.size()) * 16;
      ml::for_each_row(in[0], *table, work, [&](int64_t r, std::span<const double> row) {
        require_memory(ensemble->targets, sizeof(double) + sizeof(ml::Score));
        std::vector<double> scores(static_cast<size_t>(ensemble->targets));
        ensemble->predict(row, scores);
        dispatch<Floats>(out[0].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          T* y = out[0].as<T>() + r * ensemble->targets;
          for (double score : scores) *y++ = static_cast<T>(static_cast<compute_t<T>>(score));
        });
      });
    });
  });
}

std::unique_ptr<Kernel> create_ensemble(const Node& node) {
  return make_ensemble(read_ensemble(node));
}
std::unique_ptr<Kernel> create_regressor(const Node& node) {
  return make_ensemble(read_regressor(node));
}

// ---- TreeEnsembleClassifier

struct Classifier {
  ml::Forest forest;
  ml::Labels labels;
  std::vector<double> base;
  PostTransform post;
  size_t classes;
  bool is_binary = false;  // there are two classes, but the leaves have weights for one of them only
  bool all_positive = true;

  // Returns the class of a row, and writes the scores to `out`.
  int64_t predict(std::span<const double> row, std::vector<double>& out) const;

 private:
  int64_t decide(std::span<ml::Score> scores, std::vector<double>& out) const;
};

Classifier read_classifier(const Node& node) {
  Classifier model{ml::read_old_forest(node, "class"), ml::Labels(node, "classlabels_int64s", "classlabels_strings"),
                   ml::numbers_of(node, "base_values", "base_values_as_tensor"), ml::post_transform(node), 0};
  model.classes = model.labels.count();
  std::string wrong = model.classes == 0 ? "classlabels_int64s and classlabels_strings are empty"
                                         : model.forest.check(static_cast<int64_t>(model.classes));
  if (model.base.size() > model.classes)
    wrong = "base_values has " + std::to_string(model.base.size()) + " entries for " + std::to_string(model.classes) +
            " classes; it must not have more";
  if (!wrong.empty()) throw sdk::Error(BP_INVALID_MODEL, wrong);
  std::set<int64_t> spoken_of;
  for (const auto& leaf : model.forest.leaves) {
    for (const auto& [target, weight] : leaf) {
      spoken_of.insert(target);
      model.all_positive = model.all_positive && weight >= 0;
    }
  }
  model.is_binary = model.classes == 2 && spoken_of.size() == 1;
  // A model with a single class decides between the labels 0 and 1.
  if (model.classes == 1) {
    if (!model.labels.texts.empty()) model.labels.texts = {"0", "1"};
    model.labels.ints = {0, 1};
  }
  return model;
}

// Decides between two classes by the score of the second, or of the first if the second has none, as in ONNX Runtime.
// In a binary model without negative weights, scores are probabilities and the threshold is 0.5; in other models it is
// 0.
int64_t Classifier::decide(std::span<ml::Score> scores, std::vector<double>& out) const {
  for (size_t c = 0; c < base.size(); ++c) scores[c].value += base[c];
  bool has_second = scores.size() == 2 && scores[1].has;
  double weight = scores[has_second ? 1 : 0].value;
  if (has_second || (scores.size() == 2 && base.size() == 2)) {
    out = {scores[0].value, scores[1].value};
    ml::transform(post, out);
  } else if (is_binary) {
    out = ml::two_classes(post, weight, !all_positive);
  } else {
    out = {weight};
    if (post == PostTransform::kProbit) ml::transform(post, out);
  }
  return weight > (is_binary && all_positive ? 0.5 : 0.0) ? 1 : 0;
}

int64_t Classifier::predict(std::span<const double> row, std::vector<double>& out) const {
  std::vector<ml::Score> scores(classes);
  ml::aggregate(forest, ml::Aggregate::kSum, row, scores);
  if (classes == 1 || is_binary) return decide(scores, out);
  int64_t best = -1;
  for (size_t c = 0; c < classes; ++c) {
    if (c < base.size()) scores[c] = {scores[c].value + base[c], true};
    if (scores[c].has && (best < 0 || scores[c].value > scores[static_cast<size_t>(best)].value))
      best = static_cast<int64_t>(c);
    out.push_back(scores[c].value);
  }
  ml::transform(post, out);
  // With two classes, returns the class with the larger score. With more, considers only the classes that have a base
  // value or a weight in a leaf that the row reaches.
  return classes == 2 ? std::ranges::max_element(out) - out.begin() : std::max<int64_t>(best, 0);
}

Verdict supports_classifier(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  if (Verdict verdict = expect_operands(node, 1, 2); !verdict) return verdict;
  if (Verdict verdict = ml::supports_post_transform(node); !verdict) return verdict;
  return readable(node, read_classifier);
}

std::unique_ptr<Kernel> create_classifier(const Node& node) {
  return make_value_kernel([model = read_classifier(node)](Values in, Values out) -> Failed {
    const Tensor& x = in[0].tensor;
    auto table = ml::table_of(x.shape);
    if (!table) return ml::no_table(x.shape);
    if (table->columns < model.forest.features) return too_narrow(*table, model.forest);
    auto width = static_cast<int64_t>(model.classes);
    out[1] = Value::allocate(BP_DTYPE_FLOAT, Shape{table->rows, width});
    std::vector<int64_t> classes = ml::classes_of(*table);
    auto work = static_cast<int64_t>(model.forest.roots.size()) * 16;
    ml::for_each_row(x, *table, work, [&](int64_t r, std::span<const double> row) {
      std::vector<double> scores;
      classes[static_cast<size_t>(r)] = model.predict(row, scores);
      ml::write_floats(scores, out[1].tensor.as<float>() + r * width);
    });
    out[0] = model.labels.make(classes);
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> tree_ensemble_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "TreeEnsemble", 5, supports_ensemble, create_ensemble},
      {kDomain, "TreeEnsembleClassifier", 1, supports_classifier, create_classifier, kTexts},
      {kDomain, "TreeEnsembleRegressor", 1, supports_regressor, create_regressor},
  };
  return kRows;
}

}  // namespace backplane::cpu
