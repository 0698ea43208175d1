// SPDX-License-Identifier: Apache-2.0
#include "kernels/ml/support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "backplane/sdk/fence.hpp"
#include "runtime/memory.h"
#include "runtime/watch.h"

namespace backplane::cpu::ml {

std::optional<Table> table_of(const Shape& shape) {
  if (shape.rank() == 1) return Table{1, shape[0]};
  if (shape.rank() == 2) return Table{shape[0], shape[1]};
  return std::nullopt;
}

std::string no_table(const Shape& shape) {
  return "the input has extents " + to_string(shape) + "; they must be [C] or [N, C]";
}

void read_numbers(const Tensor& tensor, int64_t first, int64_t count, double* out) {
  dispatch<Numbers>(tensor.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = tensor.as<const T>() + first;
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(static_cast<compute_t<T>>(in[i]));
  });
}

std::vector<double> numbers(const Tensor& tensor) {
  require_memory(tensor.shape.elements(), sizeof(double));
  std::vector<double> list(static_cast<size_t>(tensor.shape.elements()));
  read_numbers(tensor, 0, tensor.shape.elements(), list.data());
  return list;
}

std::vector<int64_t> classes_of(const Table& table) {
  require_memory(table.rows, sizeof(int64_t));
  return std::vector<int64_t>(static_cast<size_t>(table.rows));
}

std::optional<Value> tensor_attribute(const Node& node, std::string_view name) {
  const bp_attribute_t* attribute = node.find(name);
  if (attribute == nullptr || attribute->type != BP_ATTR_TENSOR || attribute->count != 1) return std::nullopt;
  const bp_graph_t& graph = node.graph();
  uint32_t index = *static_cast<const uint32_t*>(attribute->data);
  const bp_weight_t* weight = bp_graph_weight(&graph, index);
  const void* data = weight->data;
  if (data == nullptr && weight->bytes > 0) {
    sdk::Detail detail;
    detail.check(graph.api->weight_map(&graph, index, &data, detail.get()),
                 "the tensor in attribute '" + std::string(name) + "' cannot be read");
  }
  Shape shape;
  for (uint32_t d = 0; d < weight->rank; ++d) shape.push_back(graph.dims[weight->first_dim + d].extent);
  std::shared_ptr<std::byte> memory = allocate(static_cast<int64_t>(weight->bytes));
  if (weight->bytes > 0) std::memcpy(memory.get(), data, weight->bytes);
  Tensor tensor{weight->dtype, shape, memory.get()};
  if (weight->dtype == BP_DTYPE_STRING) {
    if (std::string wrong = check_texts(tensor, weight->bytes); !wrong.empty())
      throw sdk::Error(BP_INVALID_MODEL, wrong);
  }
  return Value::of(tensor, std::move(memory));
}

std::vector<double> numbers_of(const Node& node, std::string_view list, std::string_view tensor) {
  if (std::optional<Value> value = tensor_attribute(node, tensor)) {
    if ((set_of(Numbers{}) >> value->tensor.dtype & 1) == 0)
      throw sdk::Error(BP_INVALID_MODEL, "the tensor in attribute '" + std::string(tensor) + "' has data type " +
                                             dtype_name(value->tensor.dtype) + ", which is not numeric");
    return numbers(value->tensor);
  }
  std::vector<float> floats = node.floats(list);
  return {floats.begin(), floats.end()};
}

Labels::Labels(const Node& node, std::string_view int_name, std::string_view text_name)
    : ints(node.ints(int_name)), texts(node.texts(text_name)) {}

Value Labels::make(std::span<const int64_t> classes) const {
  Shape shape{static_cast<int64_t>(classes.size())};
  if (!texts.empty()) {
    std::vector<std::string_view> chosen;
    require_memory(std::ssize(classes), sizeof(std::string_view));
    chosen.reserve(classes.size());
    Pace pace;
    for (int64_t c : classes) {
      pace.spend(4);
      chosen.push_back(texts[static_cast<size_t>(c)]);
    }
    return make_texts(shape, chosen);
  }
  Value value = Value::allocate(BP_DTYPE_INT64, shape);
  for (size_t i = 0; i < classes.size(); ++i)
    value.tensor.as<int64_t>()[i] = ints.empty() ? classes[i] : ints[static_cast<size_t>(classes[i])];
  return value;
}

namespace {

constexpr std::array<std::string_view, 5> kTransforms = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};

// The probit function √2·erf⁻¹(2p − 1), with Winitzki's approximation of erf⁻¹, as in ONNX Runtime.
double probit(double p) {
  double x = 2 * p - 1;
  double sign = x < 0 ? -1.0 : 1.0;
  double log = std::log((1 - x) * (1 + x));
  double a = 2 / (std::numbers::pi * 0.147) + 0.5 * log;
  return std::numbers::sqrt2 * sign * std::sqrt(-a + std::sqrt(a * a - log / 0.147));
}

void softmax(std::span<double> scores, bool keeps_zeros) {
  double most = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& score : scores) {
    // SOFTMAX_ZERO: scores near 0 stay near 0 and do not count in the sum.
    bool is_zero = keeps_zeros && std::abs(score) <= 1e-7;
    score = is_zero ? score * std::exp(-most) : std::exp(score - most);
    if (!is_zero) sum += score;
  }
  for (double& score : scores) score = sum == 0 ? 0.5 : score / sum;
}

}  // namespace

Verdict supports_post_transform(const Node& node) {
  return attribute_in(node, "post_transform", "NONE", {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"});
}

PostTransform post_transform(const Node& node) {
  auto found = std::ranges::find(kTransforms, node.attr("post_transform", "NONE"));
  return static_cast<PostTransform>(found - kTransforms.begin());
}

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

void transform(PostTransform what, std::span<double> scores) {
  if (scores.empty()) return;
  switch (what) {
    case PostTransform::kNone:
      return;
    case PostTransform::kLogistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::kSoftmax:
      return softmax(scores, false);
    case PostTransform::kSoftmaxZero:
      return softmax(scores, true);
    case PostTransform::kProbit:
      for (double& score : scores) score = probit(score);
  }
}

std::vector<double> two_classes(PostTransform what, double score, bool first_is_opposite) {
  if (what == PostTransform::kLogistic) return {logistic(-score), logistic(score)};
  std::vector<double> scores = {first_is_opposite ? -score : 1 - score, score};
  if (what == PostTransform::kProbit) transform(what, scores);
  return scores;
}

}  // namespace backplane::cpu::ml
