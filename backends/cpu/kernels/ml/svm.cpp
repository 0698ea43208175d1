// SPDX-License-Identifier: Apache-2.0
// SVMClassifier, SVMRegressor, computed as in libsvm. A model without support vectors is linear.
#include <cmath>
#include <numeric>

#include "kernels/ml/support.h"

namespace backplane::cpu {
namespace {

using ml::kDomain;
using Row64 = std::span<const double>;

struct KernelFunction {
  enum { kLinear, kPoly, kRbf, kSigmoid } kind = kLinear;
  double gamma = 0, offset = 0, degree = 0;

  explicit KernelFunction(const Node& node) {
    std::string name = node.attr("kernel_type", "LINEAR");
    kind = name == "POLY" ? kPoly : name == "RBF" ? kRbf : name == "SIGMOID" ? kSigmoid : kLinear;
    std::vector<float> p = node.floats("kernel_params");
    if (p.size() == 3) gamma = p[0], offset = p[1], degree = p[2];
  }
  static double dot(Row64 a, const float* b) { return std::transform_reduce(a.begin(), a.end(), b, 0.0); }
  double operator()(Row64 x, const float* vector) const {
    switch (kind) {
      case kLinear:
        return dot(x, vector);
      case kPoly:
        return std::pow(gamma * dot(x, vector) + offset, degree);
      case kSigmoid:
        return std::tanh(gamma * dot(x, vector) + offset);
      case kRbf:
        break;
    }
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) sum += (x[i] - vector[i]) * (x[i] - vector[i]);
    return std::exp(-gamma * sum);
  }
};

Verdict supports_svm(const Node& node) {
  if (Verdict verdict = accepts(node, 1, {ml::kFeatures}); !verdict) return verdict;
  if (Verdict verdict = attribute_in(node, "kernel_type", "LINEAR", {"LINEAR", "POLY", "RBF", "SIGMOID"}); !verdict)
    return verdict;
  size_t params = node.floats("kernel_params").size();
  if (params != 0 && params != 3)
    return no(BP_REASON_ATTRIBUTE, "kernel_params has " + std::to_string(params) + " entries; it must have 0 or 3");
  if (node.floats("rho").empty()) return no(BP_REASON_ATTRIBUTE, "rho is empty");
  return ml::supports_post_transform(node);
}

Failed wrong_width(const ml::Table& table, size_t width) {
  if (table.columns == static_cast<int64_t>(width)) return std::nullopt;
  return "the rows have " + std::to_string(table.columns) + " numbers, but the model expects " + std::to_string(width);
}

// ---- SVMRegressor

Verdict supports_regressor(const Node& node) {
  if (Verdict verdict = supports_svm(node); !verdict) return verdict;
  int64_t supports = node.attr("n_supports", int64_t{0});
  size_t vectors = node.floats("support_vectors").size(), coefficients = node.floats("coefficients").size();
  if (supports < 0 || (supports > 0 && (vectors % static_cast<size_t>(supports) != 0 ||
                                        coefficients != static_cast<size_t>(supports)))) {
    return no(BP_REASON_ATTRIBUTE, "n_supports is " + std::to_string(supports) + " with " + std::to_string(vectors) +
                                       " numbers in support_vectors and " + std::to_string(coefficients) +
                                       " coefficients, which do not fit each other");
  }
  return yes();
}

std::unique_ptr<Kernel> create_regressor(const Node& node) {
  struct Model {
    KernelFunction kernel;
    std::vector<float> vectors, coefficients;
    size_t supports, width;
    float rho;
    bool one_class;
    ml::PostTransform post;

    float predict(Row64 x) const {
      double sum = rho;
      if (supports == 0) sum += KernelFunction::dot(x, coefficients.data());
      for (size_t s = 0; s < supports; ++s) sum += coefficients[s] * kernel(x, vectors.data() + s * width);
      if (one_class) return sum > 0 ? 1 : -1;
      if (post == ml::PostTransform::kProbit) ml::transform(post, {&sum, 1});
      return static_cast<float>(sum);
    }
  };
  Model model{KernelFunction(node),
              node.floats("support_vectors"),
              node.floats("coefficients"),
              static_cast<size_t>(node.attr("n_supports", int64_t{0})),
              0,
              node.floats("rho")[0],
              node.attr("one_class", int64_t{0}) != 0,
              ml::post_transform(node)};
  model.width = model.supports == 0 ? model.coefficients.size() : model.vectors.size() / model.supports;
  return make_kernel([model](Tensors inputs) -> Plan {
    auto table = ml::table_of(inputs[0].shape);
    if (!table) return fail(ml::no_table(inputs[0].shape));
    if (Failed wrong = wrong_width(*table, model.width)) return fail(*wrong);
    return make_plan({Shape{table->rows, 1}}, [model, table](Tensors in, Tensors out) {
      auto work = static_cast<int64_t>(model.width * std::max<size_t>(1, model.supports));
      ml::for_each_row(in[0], *table, work, [&](int64_t r, Row64 row) { out[0].as<float>()[r] = model.predict(row); });
    });
  });
}

// ---- SVMClassifier

struct Classifier {
  KernelFunction kernel;
  ml::Labels labels;
  std::vector<float> vectors, coefficients, rho, prob_a, prob_b;
  std::vector<int64_t> per_class;
  ml::PostTransform post;
  size_t classes = 0, supports = 0, width = 0;
  bool all_positive = true;

  explicit Classifier(const Node& node)
      : kernel(node),
        labels(node, "classlabels_ints", "classlabels_strings"),
        vectors(node.floats("support_vectors")),
        coefficients(node.floats("coefficients")),
        rho(node.floats("rho")),
        prob_a(node.floats("prob_a")),
        prob_b(node.floats("prob_b")),
        per_class(node.ints("vectors_per_class")),
        post(ml::post_transform(node)),
        classes(labels.count()) {
    for (int64_t n : per_class) supports += static_cast<size_t>(n);
    if (classes > 0) width = supports == 0 ? coefficients.size() / classes : vectors.size() / supports;
    all_positive = std::ranges::all_of(coefficients, [](float c) { return c >= 0; });
  }

  size_t pairs() const { return classes * (classes - 1) / 2; }
  bool is_probability() const { return supports > 0 && !prob_a.empty(); }
  size_t outputs() const { return supports == 0 || is_probability() || classes <= 2 ? classes : pairs(); }

  // Returns a message if the attributes contradict each other, else an empty string.
  std::string wrong() const {
    if (classes == 0) return "classlabels_ints and classlabels_strings are empty";
    if (std::ranges::any_of(per_class, [](int64_t n) { return n < 0 || n > INT32_MAX; }))
      return "vectors_per_class has an entry that is not 0 to 2^31 - 1";
    if (supports == 0)
      return coefficients.size() % classes != 0 ? std::to_string(coefficients.size()) + " coefficients do not fit " +
                                                      std::to_string(classes) + " classes"
                                                : "";
    if (classes < 2 || per_class.size() != classes)
      return "vectors_per_class has " + std::to_string(per_class.size()) + " entries for " + std::to_string(classes) +
             " class labels; there must be two or more labels, and an entry for each";
    if (vectors.size() % supports != 0)
      return "support_vectors has " + std::to_string(vectors.size()) +
             " elements, which is not a multiple of the sum of vectors_per_class, " + std::to_string(supports);
    const auto too_short = [](const std::string& name, size_t found, size_t least) {
      return name + " has " + std::to_string(found) + " entries; it must have at least " + std::to_string(least);
    };
    if (coefficients.size() < (classes - 1) * supports)
      return too_short("coefficients", coefficients.size(), (classes - 1) * supports);
    if (rho.size() < pairs()) return too_short("rho", rho.size(), pairs());
    if (prob_a.size() != prob_b.size())
      return "prob_a has " + std::to_string(prob_a.size()) + " entries, but prob_b has " +
             std::to_string(prob_b.size());
    if (!prob_a.empty() && prob_a.size() < pairs()) return too_short("prob_a", prob_a.size(), pairs());
    return "";
  }

  void vote(Row64 x, std::span<double> scores, std::span<int> votes) const;
  void couple(std::span<const double> scores, std::span<double> probabilities) const;
  int64_t predict(Row64 x, std::span<float> out) const;
};

// Decides between each pair of classes i < j, as libsvm does. Row j - 1 of the coefficients is used for the vectors of
// class i, and row i for those of class j.
void Classifier::vote(Row64 x, std::span<double> scores, std::span<int> votes) const {
  std::vector<double> kernels(supports);
  for (size_t s = 0; s < supports; ++s) kernels[s] = kernel(x, vectors.data() + s * width);
  size_t pair = 0, first_i = 0;
  for (size_t i = 0; i < classes; ++i) {
    auto count_i = static_cast<size_t>(per_class[i]);
    size_t first_j = first_i + count_i;
    for (size_t j = i + 1; j < classes; ++j, ++pair) {
      auto count_j = static_cast<size_t>(per_class[j]);
      double sum = rho[pair];
      for (size_t s = first_i; s < first_i + count_i; ++s) sum += coefficients[(j - 1) * supports + s] * kernels[s];
      for (size_t s = first_j; s < first_j + count_j; ++s) sum += coefficients[i * supports + s] * kernels[s];
      scores[pair] = sum;
      ++votes[sum > 0 ? i : j];
      first_j += count_j;
    }
    first_i += count_i;
  }
}

// Computes the probabilities of classes from those of pairs (Wu, Lin, Weng: "Probability Estimates for Multi-class
// Classification by Pairwise Coupling", JMLR 2004, algorithm 2), with libsvm's bounds and stopping rule.
void Classifier::couple(std::span<const double> scores, std::span<double> p) const {
  size_t k = classes;
  std::vector<double> r(k * k), q(k * k), qp(k);
  for (size_t i = 0, pair = 0; i < k; ++i) {
    for (size_t j = i + 1; j < k; ++j, ++pair) {
      double probability = 1 - ml::logistic(scores[pair] * prob_a[pair] + prob_b[pair]);
      r[i * k + j] = std::clamp(probability, 1e-7, 1 - 1e-7);
      r[j * k + i] = 1 - r[i * k + j];
    }
  }
  for (size_t t = 0; t < k; ++t) {
    p[t] = 1.0 / static_cast<double>(k);
    for (size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  }
  for (int round = 0; round < 100; ++round) {
    double pqp = 0, most = 0;
    for (size_t t = 0; t < k; ++t) {
      qp[t] = std::inner_product(p.begin(), p.end(), &q[t * k], 0.0);
      pqp += p[t] * qp[t];
    }
    for (double value : qp) most = std::max(most, std::abs(value - pqp));
    if (most < 0.005 / static_cast<double>(k)) return;
    for (size_t t = 0; t < k; ++t) {
      double step = (pqp - qp[t]) / q[t * k + t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / ((1 + step) * (1 + step));
      for (size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
}

// Writes the scores to `out` and returns the index of the chosen class.
int64_t Classifier::predict(Row64 x, std::span<float> out) const {
  std::vector<double> scores(supports == 0 ? classes : pairs());
  std::vector<int> votes(classes);
  if (supports == 0) {
    for (size_t c = 0; c < classes; ++c) scores[c] = KernelFunction::dot(x, coefficients.data() + c * width) + rho[0];
  } else {
    vote(x, scores, votes);
  }
  if (is_probability()) {
    std::vector<double> probabilities(classes);
    couple(scores, probabilities);
    scores = std::move(probabilities);
  }
  int64_t best = supports == 0 ? std::ranges::max_element(scores) - scores.begin()
                               : std::ranges::max_element(votes) - votes.begin();
  double weight = supports == 0 ? scores[static_cast<size_t>(best)] : 0;
  if (scores.size() == 1 && out.size() == 2) {
    scores = ml::two_classes(post, scores[0], post == ml::PostTransform::kNone);
  } else if (scores.size() > 1 || post == ml::PostTransform::kProbit) {
    ml::transform(post, scores);
  }
  ml::write_floats(scores, out.data());
  // In a linear model with two classes and one rho, the second class is also chosen if the larger score is at least 0.5
  // (in a model without negative coefficients) or positive (in other models).
  if (supports == 0 && classes == 2 && rho.size() == 1 && (all_positive ? weight >= 0.5 : weight > 0)) return 1;
  return best;
}

Verdict supports_classifier(const Node& node) {
  if (Verdict verdict = supports_svm(node); !verdict) return verdict;
  if (Verdict verdict = expect_operands(node, 1, 2); !verdict) return verdict;
  std::string wrong = Classifier(node).wrong();
  return wrong.empty() ? yes() : no(BP_REASON_ATTRIBUTE, wrong);
}

std::unique_ptr<Kernel> create_classifier(const Node& node) {
  return make_value_kernel([model = Classifier(node)](Values in, Values out) -> Failed {
    const Tensor& x = in[0].tensor;
    auto table = ml::table_of(x.shape);
    if (!table) return ml::no_table(x.shape);
    if (Failed wrong = wrong_width(*table, model.width)) return wrong;
    size_t width = model.outputs();
    out[1] = Value::allocate(BP_DTYPE_FLOAT, Shape{table->rows, static_cast<int64_t>(width)});
    std::vector<int64_t> classes = ml::classes_of(*table);
    auto work = static_cast<int64_t>(model.width * std::max(model.classes, model.supports));
    ml::for_each_row(x, *table, work, [&](int64_t r, Row64 row) {
      float* scores = out[1].tensor.as<float>() + r * static_cast<int64_t>(width);
      classes[static_cast<size_t>(r)] = model.predict(row, {scores, width});
    });
    out[0] = model.labels.make(classes);
    return std::nullopt;
  });
}

}  // namespace

[[gnu::cold]] std::span<const Row> svm_rows() {
  static constexpr Row kRows[] = {
      {kDomain, "SVMClassifier", 1, supports_classifier, create_classifier, kTexts},
      {kDomain, "SVMRegressor", 1, supports_regressor, create_regressor},
  };
  return kRows;
}

}  // namespace backplane::cpu
